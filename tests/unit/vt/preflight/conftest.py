"""A stack like prod, in an empty project of the local cloud, and preflights of it."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from localgcp.apis.server import serve
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, Store
from localgcp.projects import local_project_number
from localgcp.reads.serving import Reads
from tests.fixture_project import copy_project
from vertex_training_cli.declared import DeclaredStack, declare_stack
from vertex_training_cli.drift.rest import RestClient
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.preflight import parts
from vertex_training_cli.preflight.answers import Answer, Verdict
from vertex_training_cli.preflight.asking import ReadOnlyClient
from vertex_training_cli.preflight.context import PreflightContext

PROJECT, HOST = "local-ml-prod", "local-net-prod"
#: What the fixture's stack has -> what the local cloud takes.
NAMES = {
    "acme-ml-prod": PROJECT,
    "acme-net-prod": HOST,
    "acme-ml-dev": "local-ml-dev",
    "109876543210": local_project_number(PROJECT),
    "345678901234": local_project_number(HOST),
}
#: APIs that are on before a first deployment.
FIRST = ("serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com")


@dataclass
class Rehearsal:
    """The stack, and the cloud that is asked."""

    ref: StackRef
    declared: DeclaredStack
    store: Store
    client: RestClient
    add_fault: Callable[[str], Any]
    """Adds a fault by the words of ``vt local fault add``."""
    recorded: frozenset[str] = frozenset()

    def context(self) -> PreflightContext:
        client = ReadOnlyClient(self.client)
        return PreflightContext(self.ref, self.declared, client, self.recorded)

    def answers(self) -> list[Answer]:
        return parts.ask_all(self.context())

    def found(self, *verdicts: Verdict) -> list[tuple[str, str]]:
        """Subject and answer of those with one of ``verdicts``."""
        return [(a.subject, a.answer) for a in self.answers() if a.verdict in verdicts]

    @property
    def refused(self) -> list[tuple[str, str]]:
        return self.found(Verdict.REFUSED)


@pytest.fixture(scope="session")
def prod(tmp_path_factory: pytest.TempPathFactory) -> tuple[StackRef, DeclaredStack]:
    """The fixture's stack ``prod`` in a project of the local cloud, recorded once."""
    root = copy_project(tmp_path_factory.mktemp("prod"))
    file = root / "Pulumi.prod.yaml"
    text = file.read_text(encoding="utf-8")
    for name, ours in NAMES.items():
        text = text.replace(name, ours)
    file.write_text(text, encoding="utf-8")
    return StackRef(root, "vertex-training", "prod", PROJECT, "us-central1"), declare_stack(
        root, "prod"
    )


@pytest.fixture
def rehearsal(
    tmp_path: Path,
    prod: tuple[StackRef, DeclaredStack],
    vt: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rehearsal]:
    home = Home(tmp_path / "cloud", tmp_path)
    home.create()
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    store = Store(home.database)
    for project in (PROJECT, HOST):
        for api in FIRST:
            store.put(SERVICE, f"{project}/{api}", project, {}, {})
    reads = Reads(store, FaultTable(home.faults), threading.Event())
    server = serve([], 0, folder=tmp_path, also=reads.answer)
    session = requests.Session()
    session.trust_env = False

    def add_fault(words: str) -> None:
        done = vt("local", "fault", "add", *shlex.split(words))
        assert done.exit_code == 0, done.output

    yield Rehearsal(*prod, store, RestClient(session, f"127.0.0.1:{server.port}"), add_fault)
    session.close()
    server.stop(None).wait()
