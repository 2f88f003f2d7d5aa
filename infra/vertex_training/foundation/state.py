"""The bucket for this environment's Pulumi state, and the key that encrypts its secrets.

The state is the only record of a stack's resources, and contains their encrypted secrets. So
``pulumi destroy`` cannot delete the bucket or the key except in the local cloud, and old
checkpoints remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_gcp as gcp

from vertex_training.foundation.settings import Settings

#: Seconds in a day.
DAY: Final = 24 * 3600
#: Name of the key in its key ring.
KEY: Final = "stack-secrets"


class State(pulumi.ComponentResource):
    """The state bucket, and the key that encrypts its secrets."""

    bucket: gcp.storage.Bucket
    key: gcp.kms.CryptoKey
    key_path: str
    """The key's resource name, known before the key exists."""

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        after: Sequence[pulumi.Resource],
    ) -> None:
        """Declare bucket and key, which depend on ``after``, such as enabled APIs."""
        super().__init__("vertextraining:bootstrap:State", name)
        child = pulumi.ResourceOptions(parent=self, depends_on=after, protect=not settings.is_local)
        self.bucket = _create_bucket(name, settings, child)
        self.key_path = (
            f"projects/{settings.project}/locations/{settings.region}/keyRings/"
            f"{settings.key_ring}/cryptoKeys/{KEY}"
        )
        self.key = _create_key(name, settings, child)
        self.register_outputs({"bucket": self.bucket.url, "key": self.key.id})


def _create_bucket(
    name: str, settings: Settings, opts: pulumi.ResourceOptions
) -> gcp.storage.Bucket:
    return gcp.storage.Bucket(
        f"{name}-bucket",
        name=settings.state_bucket,
        project=settings.project,
        location=settings.region.upper(),  # as the service returns it
        storage_class="STANDARD",
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        versioning={"enabled": True},
        soft_delete_policy={"retention_duration_seconds": settings.state.soft_delete_days * DAY},
        lifecycle_rules=[
            {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}},
            {
                "action": {"type": "Delete"},
                "condition": {
                    "days_since_noncurrent_time": settings.state.keep_noncurrent_days,
                    "with_state": "ARCHIVED",
                },
            },
        ],
        force_destroy=settings.is_local,
        labels=settings.names.labels(settings.labels),
        opts=opts,
    )


def _create_key(name: str, settings: Settings, opts: pulumi.ResourceOptions) -> gcp.kms.CryptoKey:
    ring = gcp.kms.KeyRing(
        f"{name}-keys",
        name=settings.key_ring,
        project=settings.project,
        location=settings.region,
        opts=opts,
    )
    return gcp.kms.CryptoKey(
        f"{name}-key",
        name=KEY,
        key_ring=ring.id,
        purpose="ENCRYPT_DECRYPT",
        # Old versions remain, so that data encrypted with them can be read.
        rotation_period=f"{settings.rotation_days * DAY}s",
        labels=settings.names.labels(settings.labels),
        opts=opts,
    )
