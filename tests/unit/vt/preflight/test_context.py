"""What a preflight begins with: the state, the account that asks, and what could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import planned
from vertex_training.catalog.resource_types import BUCKET, SECRET
from vertex_training.errors import CommandError
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight import context
from vertex_training_cli.preflight.context import PreflightContext, question

REF = StackRef(Path("/acme"), "vertex-training", "prod", "acme-ml-prod", "us-central1")
LOCAL = StackRef(Path("/acme"), "vertex-training", "local", "local-training", "us-central1")
STATE = "gs://acme-state"
DATA = DeclaredResource(BUCKET, "data", {"name": "acme-data"})
DEPLOY = "ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com"
AS = "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT"
ROW = {"type": BUCKET, "id": "acme-data"}
DEPLOYED: Any = {"resources": [ROW, {"type": "pulumi:pulumi:Stack"}, {"type": SECRET, "id": ""}]}


class Pulumi:
    """An engine that has these stacks, and their states."""

    stacks: tuple[str, ...] = ("organization/vertex-training/prod", "dev")
    state = DEPLOYED

    def __init__(self, root: Path, env: dict[str, str]) -> None:
        assert (root, env["PULUMI_BACKEND_URL"]) == (REF.root, STATE)

    def read_json(self, *words: str) -> Any:
        assert words == ("stack", "ls", "--json")
        return [{"name": name} for name in self.stacks]

    def export_deployment(self, stack: str) -> Any:
        assert stack == "prod"
        if isinstance(self.state, Exception):
            raise self.state
        return self.state


Connect = Callable[..., tuple[PreflightContext, list[Any]]]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """``connect`` of the stack with a state at ``backend``, as somebody who is signed in."""
    declared = DeclaredStack(planned(), {}, (DATA,))
    monkeypatch.setattr(context, "PulumiCli", Pulumi)
    monkeypatch.setattr(
        context, "declare_stack", lambda *given: {(REF.root, "prod"): declared}[given]
    )
    monkeypatch.setattr(context.rest, "connect", lambda ref: f"client of {ref.stack}")
    for name in (AS, "VT_DEPLOY_ACCOUNT"):
        monkeypatch.delenv(name, raising=False)

    def connected(
        *account: str, backend: str | None = STATE, signed_in: str = ""
    ) -> tuple[PreflightContext, list[Any]]:
        env = {} if backend is None else {"PULUMI_BACKEND_URL": backend}
        monkeypatch.setattr(StackRef, "environment", lambda _, _tell: env)
        monkeypatch.setattr(context.approval, "signed_in", lambda: (signed_in, "provider"))
        return context.connect(REF, *account)

    return connected


@pytest.mark.parametrize(
    ("stacks", "state"),
    [
        (("organization/vertex-training/dev", "prod2"), None),
        ((), None),
        (("prod",), {"resources": None}),
        (("prod",), {}),
    ],
)
def test_a_stack_that_was_never_deployed_has_made_nothing(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, stacks: tuple[str, ...], state: Any
) -> None:
    monkeypatch.setattr(Pulumi, "stacks", stacks)
    monkeypatch.setattr(Pulumi, "state", state)
    found, unread = connect()
    assert (found.recorded, unread) == (frozenset(), [])


def test_a_state_that_cannot_be_read_is_told_and_nothing_is_known_of_it(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pulumi, "state", CommandError("the bucket is not there."))
    found, unread = connect()
    assert (found.recorded, found.backend) == (None, STATE)
    assert unread == [question(STATE, "state of the stack").unknown("the bucket is not there.")]
    assert not found.is_made(DATA)


@pytest.mark.parametrize("backend", [None, ""])
def test_without_a_named_state_it_says_what_to_set(connect: Connect, backend: str | None) -> None:
    found, unread = connect(backend=backend)
    assert (found.recorded, found.backend) == (None, "")
    of = question("state of prod", "resources in the state")
    mend = "set PULUMI_BACKEND_URL to the address of the state"
    assert unread == [of.unknown("PULUMI_BACKEND_URL is not set", mend=mend)]


@pytest.mark.parametrize(
    ("deploys", "account", "signed_in", "checked_as", "as_ci"),
    [
        ("", "", "", "", False),
        ("", "", "kim@example.com", "", False),
        (DEPLOY, "", DEPLOY, "", True),
        (DEPLOY, DEPLOY, "kim@example.com", "", True),
        (DEPLOY, "", "ci-plan@acme", "ci-plan@acme", False),
        (DEPLOY, "", "", "", True),
    ],
)
def test_rights_are_those_of_the_account_that_deploys(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, deploys: str, account: str, signed_in: str,
    checked_as: str, as_ci: bool,
) -> None:  # fmt: skip
    if deploys:
        monkeypatch.setenv("VT_DEPLOY_ACCOUNT", deploys)
    monkeypatch.setenv(AS, "before")
    found, _ = connect(*([account] if account else []), signed_in=signed_in)
    assert (found.checked_as, found.as_ci) == (checked_as, as_ci)
    assert os.environ[AS] == (account or "before")


def test_an_account_is_a_service_account_and_the_local_cloud_has_none(connect: Connect) -> None:
    with pytest.raises(CommandError) as refused:
        connect("user:kim@example.com")
    assert (
        refused.value.message
        == "--as must be the address of a service account (got user:kim@example.com)."
    )
    with pytest.raises(CommandError) as refused:
        context.connect(LOCAL, DEPLOY)
    assert refused.value.message == "--as: the local cloud has no accounts. Omit --as."
    assert AS not in os.environ
