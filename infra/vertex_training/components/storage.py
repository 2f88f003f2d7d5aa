"""Buckets, and the objects the stack keeps in them.

Owns the settings of every bucket: regional, closed to the public, uniform access; deleted objects
can be restored for a while and are then removed. Does not own the grants: see ``identities``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training import naming
from vertex_training.naming import Names
from vertex_training.settings.model import Bucket

DAY: Final = 24 * 3600


class Storage(pulumi.ComponentResource):
    """All buckets of a stack."""

    buckets: dict[str, gcp.storage.Bucket]
    """Those the stack makes, by key, with its own two: ``staging`` and ``control``."""
    bucket_names: Mapping[str, pulumi.Output[str]]
    """All of them, by key; also those that exist."""

    def __init__(
        self,
        name: str,
        *,
        names: Names,
        labels: Mapping[str | None, Mapping[str, str]],
        buckets: Mapping[str, Bucket],
        objects: Mapping[str, Mapping[str, str]],
        key: pulumi.Input[str] | None = None,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``labels`` are by team; None has those of what no team owns.

        ``objects``: bucket -> name -> file, by a path that starts at the checkout. ``key`` encrypts
        all of them; ``after`` are APIs that must be enabled.
        """
        super().__init__("vertextraining:storage:Storage", name, None, opts)
        self._name, self._names, self._labels, self._after = name, names, labels, after
        self._key = key
        self.buckets = {
            key: self._bucket(key, bucket)
            for key, bucket in {**own(names), **buckets}.items()
            if not bucket.existing
        }
        existing = {
            key: pulumi.Output.from_input(bucket.existing)
            for key, bucket in buckets.items()
            if bucket.existing
        }
        self.bucket_names = {key: made.name for key, made in self.buckets.items()} | existing
        self.objects = [
            self._object(key, path, file)
            for key, kept in objects.items()
            for path, file in kept.items()
        ]
        self.register_outputs({"buckets": {k: b.url for k, b in self.buckets.items()}})

    def _bucket(self, key: str, bucket: Bucket) -> gcp.storage.Bucket:
        return gcp.storage.Bucket(
            f"{self._name}-{key}",
            name=self._names.bucket(key),
            project=self._names.project,
            location=self._names.region.upper(),  # as the service spells it back
            storage_class=bucket.storage_class,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            versioning=gcp.storage.BucketVersioningArgs(enabled=bucket.versioning),
            soft_delete_policy=gcp.storage.BucketSoftDeletePolicyArgs(
                retention_duration_seconds=bucket.soft_delete_days * DAY
            ),
            retention_policy=_retention(bucket),
            encryption=gcp.storage.BucketEncryptionArgs(default_kms_key_name=self._key)
            if self._key is not None
            else None,
            lifecycle_rules=_lifecycle(bucket),
            force_destroy=bucket.force_destroy,
            labels=self._names.labels({**self._labels[bucket.team], **bucket.labels}),
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=self._after, protect=bucket.protect
            ),
        )

    def _object(self, key: str, path: str, file: str) -> gcp.storage.BucketObject:
        return gcp.storage.BucketObject(
            f"{self._name}-{key}/{path}",
            bucket=self.buckets[key].name,
            name=path,
            source=pulumi.FileAsset(file),
            opts=pulumi.ResourceOptions(
                parent=self,
                # A new file replaces the object under the same name. Created first and deleted
                # after, the old one's deletion would take the new one with it.
                delete_before_replace=True,
            ),
        )


def own(names: Names) -> dict[str, Bucket]:
    """The buckets that every stack has. A local stack's can be deleted with their objects."""

    def keep(days: int) -> Bucket:
        throwaway = naming.is_local(names.project)
        return Bucket.model_validate({"forceDestroy": throwaway, "keepNoncurrentDays": days})

    return {
        # Old packages are not needed once no job uses them; Pulumi deletes the objects itself.
        naming.STAGING: keep(days=7),
        # The memory of what was submitted: never deleted by age.
        naming.CONTROL: keep(days=365),
    }


def _retention(bucket: Bucket) -> gcp.storage.BucketRetentionPolicyArgs | None:
    given = bucket.retention
    if given is None:
        return None
    period = str(given.days * DAY)
    return gcp.storage.BucketRetentionPolicyArgs(retention_period=period, is_locked=given.locked)


def _lifecycle(bucket: Bucket) -> list[gcp.storage.BucketLifecycleRuleArgs]:
    rule, action = gcp.storage.BucketLifecycleRuleArgs, gcp.storage.BucketLifecycleRuleActionArgs
    condition = gcp.storage.BucketLifecycleRuleConditionArgs
    rules = [
        # Parts of uploads that never finished are invisible, and paid for.
        rule(action=action(type="AbortIncompleteMultipartUpload"), condition=condition(age=7))
    ]
    if bucket.versioning:
        days = bucket.keep_noncurrent_days
        old = condition(days_since_noncurrent_time=days, with_state="ARCHIVED")
        rules.append(rule(action=action(type="Delete"), condition=old))
    if bucket.delete_after_days is not None:
        aged = condition(age=bucket.delete_after_days, with_state="LIVE")
        rules.append(rule(action=action(type="Delete"), condition=aged))
    return rules
