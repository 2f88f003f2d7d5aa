"""Accounts that jobs run as, their grants, and who may act as them.

Owns every grant of a training account (``vertex_training.plan.stack_grants``). Does not own the
grants that let people and CI submit jobs at all; those come with the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pulumi
import pulumi_gcp as gcp

from vertex_training.components.iam import make_grants
from vertex_training.naming import Names
from vertex_training.plan.grants import GrantRequest
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
        grants: Iterable[GrantRequest],
        buckets: Mapping[str, pulumi.Input[str]],
        secrets: Mapping[str, pulumi.Input[str]],
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``buckets`` are the names, ``secrets`` the resource names of what it may name."""
        super().__init__("vertextraining:identities:TrainingAccount", name, None, opts)
        outputs = {f"b/{names.bucket(key)}": bucket for key, bucket in buckets.items()}
        outputs |= {names.secret(key): path for key, path in secrets.items()}
        if account.existing:
            self.email = self.address = pulumi.Output.from_input(account.existing)
        else:
            outputs |= self._make(name, key, names, account, after)
        make_grants(name, grants, pulumi.ResourceOptions(parent=self), outputs)
        self.register_outputs({"email": self.email})

    def _make(
        self,
        name: str,
        key: str,
        names: Names,
        account: ServiceAccount,
        after: Sequence[pulumi.Resource],
    ) -> dict[str, pulumi.Output[str]]:
        """Make the account; outputs by what grants name it."""
        made = gcp.serviceaccount.Account(
            f"{name}-account",
            project=names.project,
            account_id=names.account_id(key),
            display_name=f"Training jobs: {key} ({names.stack})",
            description=account.description or None,
            opts=pulumi.ResourceOptions(parent=self, depends_on=after),
        )
        self.email = made.email
        self.address = made.account_id.apply(lambda _: names.account_email(key))
        return account_outputs(made, names, key)


def account_outputs(
    account: gcp.serviceaccount.Account, names: Names, key: str
) -> dict[str, pulumi.Output[str]]:
    """Outputs of an account by what grants name it, as :func:`make_grants` takes them."""
    return {
        f"serviceAccount:{names.account_email(key)}": account.member,
        # Not `account.name`, which is the same but unknown before the account exists: a preview
        # shows what a grant will be on. ``apply`` keeps the grants after the account.
        names.account(key): account.account_id.apply(lambda _: names.account(key)),
    }
