"""The account that Cloud Build builds the stack's images as, and who may start builds.

Owns every grant of that account: it reads sources from the staging bucket, pushes to the stack's
repository and writes its log, and nothing else. Google's default accounts build nothing here: they
may read and write everything in the project. Makes no build: ``vt images build`` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.registry import Registry
from vertex_training.components.storage import Storage
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, Names
from vertex_training.plan import grants


class ImageBuilds(pulumi.ComponentResource):
    """The build account, its three grants, and those of the members that start builds."""

    email: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        names: Names,
        builders: Sequence[str],
        storage: Storage,
        registry: Registry,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``builders``: IAM members that may start builds; ``after``: APIs that must be enabled."""
        super().__init__("vertextraining:images:ImageBuilds", name, None, opts)
        self._name, self._names = name, names
        self._storage, self._registry = storage, registry
        self._child = pulumi.ResourceOptions(parent=self)
        account = gcp.serviceaccount.Account(
            f"{name}-account",
            project=names.project,
            account_id=names.account_id(IMAGE_BUILD),
            display_name=f"Builds of images ({names.stack})",
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.email = account.email
        # See TrainingAccount: a preview shows what a grant will be on.
        self._path = account.account_id.apply(lambda _: names.account(IMAGE_BUILD))
        self._grant_project("logs", grants.WRITE_LOGS, account.member)
        self._grant_staging("reads-source", grants.READ_OBJECTS, account.member)
        self._grant_repository("pushes", grants.PUSH_IMAGES, account.member)
        for member in dict.fromkeys(builders):
            self._allow_builds(member)
        self.register_outputs({"email": self.email})

    def _allow_builds(self, member: str) -> None:
        """What one member needs to start a build, follow its log and find its image."""
        self._grant_project(f"builder-{member}", grants.EDIT_BUILDS, member)
        self._grant_project(f"builder-logs-{member}", grants.READ_LOGS, member)
        self._grant_staging(f"builder-reads-{member}", grants.READ_OBJECTS, member)
        # It cannot overwrite: whoever may build cannot change the code packages of jobs.
        self._grant_staging(f"builder-adds-{member}", grants.ADD_OBJECTS, member, below=SOURCES)
        self._grant_repository(f"builder-pulls-{member}", grants.PULL_IMAGES, member)
        gcp.serviceaccount.IAMMember(
            f"{self._name}-builder-acts-{member}",
            service_account_id=self._path,
            role=grants.ACT_AS,
            member=member,
            opts=self._child,
        )

    def _grant_project(self, what: str, role: str, member: pulumi.Input[str]) -> None:
        gcp.projects.IAMMember(
            f"{self._name}-{what}",
            project=self._names.project,
            role=role,
            member=member,
            opts=self._child,
        )

    def _grant_staging(
        self, what: str, role: str, member: pulumi.Input[str], *, below: str = ""
    ) -> None:
        """A grant on the staging bucket, or on the objects ``below`` a prefix of it."""
        prefix = f"projects/_/buckets/{self._names.bucket(STAGING)}/objects/{below}"
        condition = gcp.storage.BucketIAMMemberConditionArgs(
            title="sources of images", expression=f"resource.name.startsWith('{prefix}')"
        )
        gcp.storage.BucketIAMMember(
            f"{self._name}-{what}",
            bucket=self._storage.buckets[STAGING].name,
            role=role,
            member=member,
            condition=condition if below else None,
            opts=self._child,
        )

    def _grant_repository(self, what: str, role: str, member: pulumi.Input[str]) -> None:
        """Nothing where another project has the repository: its owner grants this."""
        _, project, _, location, _, _ = self._names.repository_path().split("/")
        if project != self._names.project:
            return
        gcp.artifactregistry.RepositoryIamMember(
            f"{self._name}-{what}",
            project=project,
            location=location,
            repository=self._registry.repository_id,
            role=role,
            member=member,
            opts=self._child,
        )
