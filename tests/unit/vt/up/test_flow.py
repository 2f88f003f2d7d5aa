"""The steps of ``vt up`` in their order: what ends it, what is asked, and what is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import Problem
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up import command

REF = StackRef(Path("/srv/checkout"), "demo", "dev", "acme-ml", "us-central1")


class Engine:
    """A ``pulumi`` that ends so; what it ran."""

    env: dict[str, str] = {}  # noqa: RUF012 - never changed

    def __init__(self, *codes: int, before: Any = None, after: Any = None) -> None:
        self.codes, self.deployments = list(codes), [before or {}, after or {}]
        self.ran: list[tuple[str, ...]] = []

    def backend_url(self) -> str:
        return "gs://state"

    def export_deployment(self, stack: str) -> Any:
        found = self.deployments.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def run_in_foreground(self, *arguments: str) -> int:
        self.ran.append(arguments)
        return self.codes.pop(0)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What each step answers, and the steps that were taken."""
    made = SimpleNamespace(dead=False, repairs=[], moved=[], taken=[])

    def take(name: str, answer: Callable[[], Any]) -> Callable[..., Any]:
        def step(*given: Any, **_: Any) -> Any:
            made.taken.append((name, *(each for each in given if isinstance(each, str))))
            return answer()

        return step

    monkeypatch.setattr(command.locks, "clear_dead", take("locks", lambda: made.dead))
    monkeypatch.setattr(command.locks, "remove_truncated", take("file", lambda: None))
    monkeypatch.setattr(command, "refused_repairs", take("repairs", lambda: made.repairs))
    monkeypatch.setattr(command, "find_moved_jobs", take("moved", lambda: made.moved))
    monkeypatch.setattr(command, "deployed_jobs", lambda deployment: deployment)
    monkeypatch.setattr(command, "clear_settled", take("settled", lambda: 5))
    monkeypatch.setattr(command, "report_orphaned_jobs", take("orphaned", lambda: None))
    monkeypatch.setattr("vertex_training_cli.up.command.refuse_if_lost", take("lost", lambda: None))
    return made


MADE = {"resources": [{"custom": True}]}


def bring_up(engine: Any, said: list[str]) -> int:
    return command.bring_up(REF, engine, ["--yes"], said.append)


def test_an_up_that_fails_is_told_and_nothing_is_looked_at_after_it(steps: SimpleNamespace) -> None:
    said: list[str] = []
    assert bring_up(Engine(255, before=MADE), said) == 255
    assert said == ["`pulumi up` ended with exit code 255"]
    assert [name for name, *_ in steps.taken][-1] == "moved"


def test_what_is_refused_is_told_and_nothing_runs(steps: SimpleNamespace) -> None:
    steps.repairs, steps.moved = [Problem("a is lost")], [Problem("b moves")]
    said: list[str] = []
    engine = Engine()
    assert bring_up(engine, said) == 3
    assert said == [
        "stack dev was not deployed. Nothing was changed.",
        "a is lost.",
        "b moves.",
    ]
    assert engine.ran == []
