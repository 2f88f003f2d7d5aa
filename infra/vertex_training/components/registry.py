"""The stack's Docker repository in Artifact Registry; none is made where one is given.

Makes no grant. Google's service agent pulls the images of a job, and it may read the repositories
of its own project; a grant to the job's account would have no effect (docs.cloud.google.com,
general/custom-service-account).
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.scope import Scope
from vertex_training.images import cleanup
from vertex_training.images.cleanup import CleanupPolicy
from vertex_training.settings.model import Registry as RegistrySettings
from vertex_training.stack import Stack


class Registry(pulumi.ComponentResource):
    """One Docker repository with a clean-up policy."""

    url: pulumi.Output[str]
    """Prefix of its images: ``REGION-docker.pkg.dev/PROJECT/REPOSITORY``."""
    repository_id: pulumi.Input[str]

    def __init__(self, scope: Scope, stack: Stack, *, after: Sequence[pulumi.Resource]) -> None:
        super().__init__("vertextraining:registry:Registry", scope.name, None, scope.opts)
        names, settings = stack.declared.names, stack.declared.registry
        self.url = pulumi.Output.from_input(names.repository())
        self.repository_id = names.repository_id()
        if settings.existing:
            self.register_outputs({"url": self.url})
            return
        repository = gcp.artifactregistry.Repository(
            f"{scope.name}-docker",
            project=names.project,
            location=names.region,
            repository_id=names.repository_id(),
            description=f"Training images of stack {names.stack}",
            format="DOCKER",
            docker_config=gcp.artifactregistry.RepositoryDockerConfigArgs(
                immutable_tags=settings.immutable_tags
            ),
            cleanup_policies=[
                _cleanup(policy) for policy in cleanup.declared(settings, stack.pinned_digests)
            ],
            kms_key_name=stack.declared.key_for("registry"),
            vulnerability_scanning_config=_scanning(settings),
            labels=names.labels(stack.declared.labels),
            opts=pulumi.ResourceOptions(parent=self, depends_on=after, protect=settings.protect),
        )
        self.repository_id = repository.repository_id
        self.url = pulumi.Output.concat(
            repository.location, "-docker.pkg.dev/", names.project, "/", repository.repository_id
        )
        self.register_outputs({"url": self.url})


def _scanning(
    settings: RegistrySettings,
) -> gcp.artifactregistry.RepositoryVulnerabilityScanningConfigArgs | None:
    """INHERITED: whatever is pushed is scanned, since the stack enables the API."""
    if settings.scanning is None:
        return None
    return gcp.artifactregistry.RepositoryVulnerabilityScanningConfigArgs(
        enablement_config="INHERITED" if settings.scanning else "DISABLED"
    )


def _cleanup(policy: CleanupPolicy) -> gcp.artifactregistry.RepositoryCleanupPolicyArgs:
    if policy.keep_count is not None:
        return gcp.artifactregistry.RepositoryCleanupPolicyArgs(
            id=policy.id,
            action=policy.action,
            most_recent_versions=gcp.artifactregistry.RepositoryCleanupPolicyMostRecentVersionsArgs(
                keep_count=policy.keep_count
            ),
        )
    condition = gcp.artifactregistry.RepositoryCleanupPolicyConditionArgs(
        tag_state=None if policy.tag_state == "ANY" else policy.tag_state,
        version_name_prefixes=policy.version_name_prefixes or None,
        older_than=f"{policy.older_than}s" if policy.older_than else None,
    )
    return gcp.artifactregistry.RepositoryCleanupPolicyArgs(
        id=policy.id, action=policy.action, condition=condition
    )
