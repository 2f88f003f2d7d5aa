"""Buckets, objects, packages of jobs, secrets, snapshots of queries, and the Docker repository.

Secrets have no values in the program, whose state would contain them: users add values with
``gcloud secrets versions add NAME --data-file=-``. Jobs get no grant on the repository: Google's
service agent pulls their images, and may read repositories of its own project
(general/custom-service-account).
"""

from collections.abc import Mapping
from typing import Any, Final, NotRequired, TypedDict, Unpack, overload

import pulumi
import pulumi_gcp as gcp
from pulumi import Input, Output

from vertex_training import naming
from vertex_training.components import ordering
from vertex_training.components.arguments import KEYWORDS, Arguments, Opts, set_outputs
from vertex_training.components.iam import Apis, grants_beside, make_grants
from vertex_training.components.identities import account_outputs
from vertex_training.components.ordering import Resources, Scope, child_options
from vertex_training.components.sections import BucketArgs
from vertex_training.images import cleanup
from vertex_training.images.cleanup import CleanupPolicy
from vertex_training.naming import CONTROL, IMAGE_BUILD, STAGING, Names
from vertex_training.plan.facts import package_object
from vertex_training.plan.grants import EXTRA_GRANTS, build_grants, extra_grants
from vertex_training.settings.model import Bucket, Settings
from vertex_training.snapshots.provider import Snapshot
from vertex_training.stack import Stack

DAY: Final = 24 * 3600
#: Folder of built packages, relative to the checkout.
FOLDER: Final = ".build/packages"


class Storage(pulumi.ComponentResource):
    """Buckets of a stack."""

    buckets: dict[str, "gcp.storage.Bucket"]
    """Buckets that the stack creates, by key, including ``staging`` and ``control``."""
    bucket_names: Mapping[str, Output[str]]
    """Names of all buckets by key, including existing buckets."""

    def __init__(
        self,
        scope: Scope,
        stack: Stack,
        *,
        key: Input[str] | None = None,
        own_buckets: bool = True,
        after: Resources,
    ) -> None:
        """Declare the buckets. ``key`` replaces the encryption key of the stack.

        ``own_buckets`` creates ``staging`` and ``control``. ``after`` are APIs that must be
        enabled.
        """
        super().__init__("vertextraining:storage:Storage", scope.name, None, scope.opts)
        settings = stack.declared
        self._name, self._names, self._after = scope.name, settings.names, after
        self._settings, buckets = settings, settings.buckets
        self._key = settings.key_for("buckets") if key is None else key
        self.buckets = {
            key: self._bucket(key, bucket)
            for key, bucket in {**(own(settings.names) if own_buckets else {}), **buckets}.items()
            if not bucket.existing
        }
        existing = {
            key: pulumi.Output.from_input(bucket.existing)
            for key, bucket in buckets.items()
            if bucket.existing
        }
        self.bucket_names = {key: bucket.name for key, bucket in self.buckets.items()} | existing
        self.objects = [
            gcp.storage.BucketObject(
                f"{scope.name}-{key}/{path}",
                bucket=self.buckets[key].name,
                name=path,
                source=pulumi.FileAsset(file),
                # A changed file replaces the object under the same name: deleting the old object
                # after creating the new object would delete the new object.
                opts=pulumi.ResourceOptions(parent=self, delete_before_replace=True),
            )
            for key, kept in stack.objects.items()
            for path, file in kept.items()
        ]
        self.register_outputs({"buckets": {k: b.url for k, b in self.buckets.items()}})

    def _bucket(self, key: str, bucket: Bucket) -> gcp.storage.Bucket:
        retention: gcp.storage.BucketRetentionPolicyArgsDict | None = None
        if kept := bucket.retention:
            retention = {"retention_period": str(kept.days * DAY), "is_locked": kept.locked}
        return gcp.storage.Bucket(
            f"{self._name}-{key}",
            name=self._names.bucket(key),
            project=self._names.project,
            location=self._names.region.upper(),  # the service returns regions in uppercase
            storage_class=bucket.storage_class,
            uniform_bucket_level_access=True,
            public_access_prevention="enforced",
            versioning={"enabled": bucket.versioning},
            soft_delete_policy={"retention_duration_seconds": bucket.soft_delete_days * DAY},
            retention_policy=retention,
            encryption={"default_kms_key_name": self._key} if self._key is not None else None,
            lifecycle_rules=_lifecycle(bucket),
            force_destroy=bucket.force_destroy,
            labels=self._names.labels({**self._settings.labels_of(bucket.team), **bucket.labels}),
            opts=child_options(self, self._after, protect=bucket.protect),
        )


class Packages(pulumi.ComponentResource):
    """Packages of a stack, as source distributions in the staging bucket."""

    def __init__(self, scope: Scope, stack: Stack, storage: Storage) -> None:
        super().__init__("vertextraining:packages:Packages", scope.name, None, scope.opts)
        settings, folder = stack.declared, stack.root / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        # A job that continues after a change fetches its old code again when its machines start.
        # So new code does not delete old code.
        goes_on = bool(settings.schedules) or any(map(settings.finishes, settings.submitted))
        keeps_old = goes_on or None
        self.objects = {}
        for key, package in stack.packages.items():
            built = folder / package.file
            if not built.exists() or built.read_bytes() != package.content:
                built.write_bytes(package.content)
            self.objects[key] = gcp.storage.BucketObject(
                f"{scope.name}-{key}",
                bucket=storage.buckets[STAGING].name,
                name=package_object(package),
                source=pulumi.FileAsset(f"{FOLDER}/{package.file}"),
                content_type="application/gzip",
                opts=pulumi.ResourceOptions(parent=self, retain_on_delete=keeps_old),
            )
        self.register_outputs({"objects": {k: o.output_name for k, o in self.objects.items()}})


def made_buckets(settings: Settings, *, own_buckets: bool = True) -> list[str]:
    """Return the names of the buckets that a stack creates."""
    keys = [key for key, bucket in settings.buckets.items() if not bucket.existing]
    return [settings.names.bucket(key) for key in (*keys, *((STAGING, CONTROL) * own_buckets))]


def own(names: Names) -> dict[str, Bucket]:
    """Return the stack's own buckets. In the local cloud, a destroy also deletes their objects."""
    # Pulumi deletes the objects of old packages itself. Records are never deleted by age.
    days = {STAGING: 7, CONTROL: 365}
    throwaway = naming.is_local(names.project)
    return {
        key: Bucket.model_validate({"forceDestroy": throwaway, "keepNoncurrentDays": kept})
        for key, kept in days.items()
    }


def _lifecycle(bucket: Bucket) -> "list[gcp.storage.BucketLifecycleRuleArgsDict]":
    # Parts of unfinished uploads are invisible, but cost money.
    rules: list[gcp.storage.BucketLifecycleRuleArgsDict] = [
        {"action": {"type": "AbortIncompleteMultipartUpload"}, "condition": {"age": 7}}
    ]
    conditions: list[gcp.storage.BucketLifecycleRuleConditionArgsDict] = []
    if bucket.versioning:
        days = bucket.keep_noncurrent_days
        conditions.append({"days_since_noncurrent_time": days, "with_state": "ARCHIVED"})
    if bucket.delete_after_days is not None:
        conditions.append({"age": bucket.delete_after_days, "with_state": "LIVE"})
    return [*rules, *({"action": {"type": "Delete"}, "condition": c} for c in conditions)]


#: Arguments of the component: keys of a stack file.
FIELDS: Final = ("project", "region", "labels", "buckets")


class TrainingBucketsArgs(TypedDict):
    """Arguments of :class:`TrainingBuckets`."""

    project: NotRequired[Input[str]]
    """Id of the project that owns the buckets; default: project of the gcp provider."""
    region: NotRequired[Input[str]]
    """Region of the buckets and jobs; default: region of the gcp provider."""
    environment: NotRequired[Input[str]]
    """Suffix of the names (``PROJECT-KEY-ENVIRONMENT``); default: the Pulumi stack's name."""
    labels: NotRequired[Input[Mapping[str, Input[str]]]]
    """Labels of all buckets."""
    buckets: NotRequired[Input[Mapping[str, Input[BucketArgs]]]]
    """Buckets by key."""
    own_buckets: NotRequired[Input[bool]]
    """Create ``staging`` and ``control``, in one component of an environment; default: true."""
    encryption_key: NotRequired[Input[str]]
    """Cloud KMS key that encrypts all buckets. Cloud Storage must have the right to use the key.
    The key may be unknown in a preview."""


class TrainingBuckets(pulumi.ComponentResource):
    """Buckets for training: regional, closed to the public, with uniform access.

    Also creates ``staging`` for code, and ``control`` for records, which ensure that each job is
    submitted once. Enables Cloud Storage.

    Example::

        buckets = TrainingBuckets(
            "buckets",
            {
                "project": "local-training",
                "region": "us-central1",
                "buckets": {"data": {}, "artifacts": {"delete_after_days": 30}},
            },
        )
        pulumi.export("data", buckets.urls["data"])
    """

    names: Output[Mapping[str, str]]
    """Bucket names by key, without ``gs://``."""
    urls: Output[Mapping[str, str]]
    """Bucket URIs (``gs://NAME``) by key."""
    control: Output[str]
    """Name of the bucket for records, for ``TrainingJob.control_bucket``."""

    @overload
    def __init__(self, name: str, /, args: TrainingBucketsArgs, opts: Opts = None) -> None: ...
    @overload
    def __init__(
        self, name: str, /, *, opts: Opts = None, **given: Unpack[TrainingBucketsArgs]
    ) -> None: ...
    def __init__(
        self, name: str, /, args: TrainingBucketsArgs = KEYWORDS, opts: Opts = None, **keywords: Any
    ) -> None:
        """Declare the buckets. Raises ArgumentsError with every mistake."""
        arguments = Arguments(f"TrainingBuckets '{name}'", opts)
        values = arguments.named(args, keywords, TrainingBucketsArgs.__annotations__)
        raw = arguments.section(Settings, values, FIELDS)
        key = values.get("encryption_key")
        if (known := arguments.known(key, ("encryption_key",))) is not None:
            raw["encryption"] = {"key": known, "covers": ["buckets"]}
            arguments.alias(("encryption_key",), ("encryption", "key"))
        own_buckets = arguments.flag(values, "own_buckets")
        stack = arguments.stack(raw, arguments.environment(values))
        arguments.claim(buckets=made_buckets(stack.declared, own_buckets=own_buckets))
        super().__init__("vertex-training:index:TrainingBuckets", name, arguments.inputs, opts)
        scope, names = Scope(name, self), stack.declared.names
        waits = arguments.prerequisites()
        apis = Apis(scope.child("apis"), names.project, ["storage"], after=waits)
        storage = Storage(scope, stack, key=key, own_buckets=own_buckets, after=apis.on("storage"))
        extra = extra_grants(stack.declared)
        grants_beside(EXTRA_GRANTS, scope.child("extra"), extra, [storage])
        by_key = {key: names.bucket(key) for key in (*stack.declared.buckets, STAGING, CONTROL)}
        by_key = stack.by_new_keys(("buckets",), by_key)
        urls = {key: f"gs://{bucket}" for key, bucket in by_key.items()}
        set_outputs(self, {"names": by_key, "urls": urls, "control": by_key[CONTROL]})


class Secrets(pulumi.ComponentResource):
    """Secrets of a stack, without values, replicated only in its region."""

    paths: dict[str, Output[str]]
    """Full names (``projects/P/secrets/S``), known in a preview."""

    def __init__(self, scope: Scope, settings: Settings, *, after: Resources) -> None:
        super().__init__("vertextraining:secrets:Secrets", scope.name, None, scope.opts)
        names = settings.names
        replication = _replication(names.region, settings.key_for("secrets"))
        created = {
            key: gcp.secretmanager.Secret(
                f"{scope.name}-{key}",
                project=names.project,
                secret_id=names.secret_id(key),
                replication=replication,
                annotations={"description": secret.description} if secret.description else None,
                labels=names.labels({**settings.labels_of(secret.team), **secret.labels}),
                opts=child_options(self, after, protect=secret.protect),
            )
            for key, secret in settings.secrets.items()
            if not secret.existing
        }
        # With `apply`, resources that use the path depend on the secret.
        self.paths = {
            key: created[key].secret_id.apply(lambda _, key=key: names.secret(key))
            if key in created
            else pulumi.Output.from_input(names.secret(key))
            for key in settings.secrets
        }
        self.register_outputs({"secrets": self.paths})


def _replication(region: str, key: str | None) -> "gcp.secretmanager.SecretReplicationArgsDict":
    replica: gcp.secretmanager.SecretReplicationUserManagedReplicaArgsDict = {"location": region}
    if key:
        replica["customer_managed_encryption"] = {"kms_key_name": key}
    return {"user_managed": {"replicas": [replica]}}


class Registry(pulumi.ComponentResource):
    """Docker repository with clean-up policies."""

    url: Output[str]
    """Prefix of image URIs: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    repository_id: Input[str]

    def __init__(self, scope: Scope, stack: Stack, *, after: Resources) -> None:
        super().__init__("vertextraining:registry:Registry", scope.name, None, scope.opts)
        names, settings = stack.declared.names, stack.declared.registry
        self.url = pulumi.Output.from_input(names.repository())
        self.repository_id = names.repository_id()
        if settings.existing:
            self.register_outputs({"url": self.url})
            return
        # INHERITED scans every image, since the stack enables the API.
        mode = "INHERITED" if settings.scanning else "DISABLED"
        scanning: gcp.artifactregistry.RepositoryVulnerabilityScanningConfigArgsDict | None = (
            None if settings.scanning is None else {"enablement_config": mode}
        )
        repository = gcp.artifactregistry.Repository(
            f"{scope.name}-docker",
            project=names.project,
            location=names.region,
            repository_id=names.repository_id(),
            description=f"Training images of stack {names.stack}",
            format="DOCKER",
            docker_config={"immutable_tags": settings.immutable_tags},
            cleanup_policies=[
                _cleanup(policy) for policy in cleanup.declared(settings, stack.pinned_digests)
            ],
            kms_key_name=stack.declared.key_for("registry"),
            vulnerability_scanning_config=scanning,
            labels=names.labels(stack.declared.labels),
            opts=child_options(self, after, protect=settings.protect),
        )
        self.repository_id = repository.repository_id
        self.url = pulumi.Output.concat(
            repository.location, "-docker.pkg.dev/", names.project, "/", repository.repository_id
        )
        self.register_outputs({"url": self.url})


class ImageBuilds(pulumi.ComponentResource):
    """Account that builds the stack's images in Cloud Build, and grants to start builds.

    The account may only read sources from the staging bucket, push to the stack's repository and
    write its log. Google's default accounts, which have access to the whole project, are not used.
    """

    email: Output[str]

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        storage: Storage,
        registry: Registry,
        *,
        after: Resources,
    ) -> None:
        """Declare the account and its grants. ``after`` are APIs that must be enabled."""
        super().__init__("vertextraining:images:ImageBuilds", scope.name, None, scope.opts)
        names = settings.names
        account = gcp.serviceaccount.Account(
            f"{scope.name}-account",
            project=names.project,
            account_id=names.account_id(IMAGE_BUILD),
            display_name=f"Builds of images ({names.stack})",
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.email = account.email
        outputs: dict[str, Input[str]] = {
            **account_outputs(account, names, IMAGE_BUILD),
            f"b/{names.bucket(STAGING)}": storage.buckets[STAGING].name,
            names.repository_path(): registry.repository_id,
        }
        options = pulumi.ResourceOptions(parent=self)
        make_grants(scope.name, build_grants(settings), options, outputs)
        self.register_outputs({"email": self.email})


def _cleanup(policy: CleanupPolicy) -> "gcp.artifactregistry.RepositoryCleanupPolicyArgsDict":
    named: gcp.artifactregistry.RepositoryCleanupPolicyArgsDict = {
        "id": policy.id,
        "action": policy.action,
    }
    if policy.keep_count is not None:
        return {**named, "most_recent_versions": {"keep_count": policy.keep_count}}
    condition: gcp.artifactregistry.RepositoryCleanupPolicyConditionArgsDict = {}
    if policy.tag_state != "ANY":
        condition["tag_state"] = policy.tag_state
    if policy.version_name_prefixes:
        condition["version_name_prefixes"] = policy.version_name_prefixes
    if policy.older_than:
        condition["older_than"] = f"{policy.older_than}s"
    return {**named, "condition": condition}


class Snapshots(pulumi.ComponentResource):
    """Snapshots of a stack. Jobs depend on this component and so read only complete snapshots."""

    snapshots: Mapping[str, Snapshot]

    def __init__(self, scope: Scope, stack: Stack, after: Resources) -> None:
        """Declare the snapshots ``after`` the BigQuery API and the buckets."""
        super().__init__("vertextraining:snapshots:Snapshots", scope.name, None, scope.opts)
        self.snapshots = {
            key: Snapshot(
                f"{scope.name}-{key}",
                request=request,
                control_bucket=stack.declared.names.bucket(CONTROL),
                impersonate=ordering.submitter_of(self),
                opts=pulumi.ResourceOptions(parent=self, depends_on=after),
            )
            for key, request in stack.snapshots.items()
        }
        self.register_outputs({})


def make_snapshots(scope: Scope, stack: Stack, apis: Apis, storage: Storage) -> list[Snapshots]:
    """Declare the snapshots; return an empty list if the stack has no snapshots."""
    if not stack.snapshots:
        return []
    return [Snapshots(scope.child("snapshots"), stack, [*apis.on("bigquery"), storage])]


def snapshot_outputs(stack: Stack, made: Mapping[str, Snapshot]) -> dict[str, object]:
    """Return folder and manifest of each snapshot in ``made``, by current keys."""
    folders = stack.by_new_keys(("snapshots",), stack.snapshots)
    return {
        key: {"folder": folders[key].uri, "manifest": snapshot.manifest}
        for key, snapshot in made.items()
    }
