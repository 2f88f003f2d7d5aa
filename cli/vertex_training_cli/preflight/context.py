"""Context of a preflight: the declared stack, the resources of its state, and the caller."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vertex_training.customjob.google.impersonation import VARIABLE, is_service_account
from vertex_training.errors import CommandError
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredResource, DeclaredStack, declare_stack
from vertex_training_cli.deploy import approval
from vertex_training_cli.engine.pulumi_cli import BACKEND, PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import ReadOnlyClient
from vertex_training_cli.status import print_line


@dataclass(frozen=True, slots=True)
class PreflightContext:
    """Input of all checks."""

    ref: StackRef
    """The stack, its project and region."""
    declared: DeclaredStack
    """Settings, requests of jobs, and every resource with its inputs."""
    client: ReadOnlyClient
    recorded: frozenset[tuple[str, str]] | None
    """Type and id of the resources in the state; None if the state could not be read."""
    backend: str = ""
    """Address of the state, ``gs://…`` on Google Cloud; empty without one."""
    asked_as: str = ""
    """Account of the requests, if another account deploys, whose rights are then unknown."""
    as_ci: bool = False
    """True for CI's account. Its roles from ``bootstrap`` have conditions."""

    @property
    def project(self) -> str:
        """Id of the stack's project."""
        return self.ref.project

    @property
    def number(self) -> str:
        """Number of the stack's project in the stack file."""
        return self.declared.stack.settings.project_number

    def of_type(self, token: str) -> Iterator[DeclaredResource]:
        """Yield the declared resources of a type."""
        return (resource for resource in self.declared.resources if resource.type == token)

    def is_made(self, resource: DeclaredResource) -> bool:
        """Return whether the stack created the resource: then its state contains the resource."""
        return (resource.type, resource.id) in (self.recorded or ())


def connect(ref: StackRef, account: str = "") -> tuple[PreflightContext, list[Answer]]:
    """Return the context of a stack, and unknown answers about its state.

    Raises:
        CommandError: there are no credentials, or the local cloud does not start.
        ConfigError: the stack's files have mistakes.
    """
    if account:
        if not is_service_account(account):
            raise CommandError(f"--as must be the address of a service account (got {account}).")
        if ref.is_local:
            raise CommandError("--as: the local cloud has no accounts. Omit --as.")
        os.environ[VARIABLE] = account  # every client of this process acts as it
    env = ref.environment(lambda text: print_line(f"vt: {text}"))
    client = ReadOnlyClient(rest.connect(ref))
    declared = declare_stack(ref.root, ref.stack)
    unread, recorded, backend = list[Answer](), None, env.get(BACKEND, "")
    try:
        recorded = _recorded(ref, env) if backend else None
    except CommandError as error:
        unread.append(question(backend, "state of the stack").unknown(str(error)))
    if not backend:
        of = question(f"state of {ref.stack}", "resources in the state")
        mend = f"set {BACKEND} to the address of the state"
        unread.append(of.unknown(f"{BACKEND} is not set", mend=mend))
    signed_in = account or approval.signed_in()[0]
    ci = os.environ.get(approval.DEPLOY_ACCOUNT, "")
    asks = signed_in if ci not in ("", signed_in) else ""
    as_ci = bool(ci) and not asks
    return PreflightContext(ref, declared, client, recorded, backend, asks, as_ci), unread


def _recorded(ref: StackRef, env: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return type and id of each resource in the state; empty if the stack was never deployed.

    Raises:
        CommandError: the state cannot be read.
    """
    pulumi = PulumiCli(ref.root, env)
    stacks: list[dict[str, Any]] = pulumi.read_json("stack", "ls", "--json")
    if ref.stack not in {str(stack["name"]).rpartition("/")[2] for stack in stacks}:
        return frozenset()
    resources = pulumi.export_deployment(ref.stack).get("resources") or ()
    return frozenset(
        (str(resource["type"]), str(resource["id"])) for resource in resources if resource.get("id")
    )
