"""Accounts that jobs run as, their grants, and who may act as them.

Owns every grant of a training account, each on one bucket or one secret. Two grants cannot be made
on anything narrower than the project: writing logs and calling Vertex AI. Does not own the grants
that let people and CI submit jobs at all; those come with the project.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.naming import STAGING, Names
from vertex_training.plan import grants
from vertex_training.settings.model import ServiceAccount


class TrainingAccount(pulumi.ComponentResource):
    """One account that jobs run as, and its grants."""

    email: pulumi.Output[str]
    """Its address as the service has it."""
    address: pulumi.Output[str]
    """The same, known before the account exists."""

    def __init__(
        self,
        name: str,
        *,
        key: str,
        names: Names,
        account: ServiceAccount,
        uses_packages: bool,
        submitters: Sequence[str],
        elsewhere: Container[tuple[str, str]] = (),
        buckets: Mapping[str, pulumi.Input[str]],
        secrets: Mapping[str, pulumi.Input[str]],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``uses_packages``: whether a job of this account fetches code from the staging bucket.

        ``elsewhere``: section and key of what other projects own. Their owners make the grants.
        ``buckets`` are the names, ``secrets`` the resource names of what the account may name.
        """
        super().__init__("vertextraining:identities:TrainingAccount", name, None, opts)
        self._name, self._child = name, pulumi.ResourceOptions(parent=self)
        self._elsewhere, self._buckets = elsewhere, buckets
        if account.existing:
            self.email = self.address = pulumi.Output.from_input(account.existing)
            self._member = pulumi.Output.from_input(f"serviceAccount:{account.existing}")
            self._path = pulumi.Output.from_input(names.account(key))
        else:
            self._make(key, names, account, after)
        reads = [*account.reads, *([STAGING] if uses_packages else [])]
        self._grant_buckets(reads, account.writes)
        self._grant_secrets({secret: secrets[secret] for secret in account.secrets})
        self._grant_project("logs", grants.WRITE_LOGS, names.project)
        if account.calls_vertex:
            self._grant_project("vertex", grants.CALL_VERTEX, names.project)
        for member in dict.fromkeys(submitters):
            if ("serviceAccounts", key) not in elsewhere:
                self._allow_act_as(member)
        self.register_outputs({"email": self.email})

    def _make(
        self, key: str, names: Names, account: ServiceAccount, after: Sequence[pulumi.Resource]
    ) -> None:
        made = gcp.serviceaccount.Account(
            f"{self._name}-account",
            project=names.project,
            account_id=names.account_id(key),
            display_name=f"Training jobs: {key} ({names.stack})",
            description=account.description or None,
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.email, self._member = made.email, made.member
        # Not `made.name`, which is the same but unknown before the account exists: a preview
        # shows what a grant will be on. ``apply`` keeps the grants after the account.
        self._path = made.account_id.apply(lambda _: names.account(key))
        self.address = made.account_id.apply(lambda _: names.account_email(key))

    def _grant_buckets(self, reads: Sequence[str], writes: Sequence[str]) -> None:
        for bucket in dict.fromkeys(reads):
            if bucket not in writes:  # writing includes reading
                self._grant_bucket("reads", bucket, grants.READ_OBJECTS)
        for bucket in dict.fromkeys(writes):
            self._grant_bucket("writes", bucket, grants.WRITE_OBJECTS)

    def _grant_bucket(self, verb: str, bucket: str, role: str) -> None:
        if ("buckets", bucket) in self._elsewhere:
            return
        gcp.storage.BucketIAMMember(
            f"{self._name}-{verb}-{bucket}",
            bucket=self._buckets[bucket],
            role=role,
            member=self._member,
            opts=self._child,
        )

    def _grant_secrets(self, paths: Mapping[str, pulumi.Input[str]]) -> None:
        for secret, path in paths.items():
            if ("secrets", secret) not in self._elsewhere:
                gcp.secretmanager.SecretIamMember(
                    f"{self._name}-reads-secret-{secret}",
                    secret_id=path,
                    role=grants.READ_SECRET,
                    member=self._member,
                    opts=self._child,
                )

    def _grant_project(self, what: str, role: str, project: str) -> None:
        gcp.projects.IAMMember(
            f"{self._name}-{what}",
            project=project,
            role=role,
            member=self._member,
            opts=self._child,
        )

    def _allow_act_as(self, member: str) -> None:
        gcp.serviceaccount.IAMMember(
            f"{self._name}-submitter-{member}",
            service_account_id=self._path,
            role=grants.ACT_AS,
            member=member,
            opts=self._child,
        )
