"""Docker repository in Artifact Registry, and the account that builds its images.

Jobs get no grant on the repository: Google's service agent pulls their images, and may read
repositories of its own project (general/custom-service-account).
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.iam import make_grants
from vertex_training.components.identities import account_outputs
from vertex_training.components.ordering import Scope, child_options
from vertex_training.components.storage import Storage
from vertex_training.images import cleanup
from vertex_training.images.cleanup import CleanupPolicy
from vertex_training.naming import IMAGE_BUILD, STAGING
from vertex_training.plan.stack_grants import build_grants
from vertex_training.settings.model import Settings
from vertex_training.stack import Stack


class Registry(pulumi.ComponentResource):
    """Docker repository with clean-up policies."""

    url: pulumi.Output[str]
    """Prefix of image URIs: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    repository_id: pulumi.Input[str]

    def __init__(self, scope: Scope, stack: Stack, *, after: Sequence[pulumi.Resource]) -> None:
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

    email: pulumi.Output[str]

    def __init__(
        self,
        scope: Scope,
        settings: Settings,
        storage: Storage,
        registry: Registry,
        *,
        after: Sequence[pulumi.Resource],
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
        outputs: dict[str, pulumi.Input[str]] = {
            **account_outputs(account, names, IMAGE_BUILD),
            f"b/{names.bucket(STAGING)}": storage.buckets[STAGING].name,
            names.repository_path(): registry.repository_id,
        }
        options = pulumi.ResourceOptions(parent=self)
        make_grants(scope.name, build_grants(settings), options, outputs)
        self.register_outputs({"email": self.email})


def _cleanup(policy: CleanupPolicy) -> gcp.artifactregistry.RepositoryCleanupPolicyArgsDict:
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
