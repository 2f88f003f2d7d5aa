"""The steps of ``vt up`` in their order: what ends it, what is asked, and what is said."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.errors import CommandError, OperatorError, Problem
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import objects
from vertex_training_cli.up import cancelled_jobs, flow

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

    monkeypatch.setattr(flow.locks, "clear_dead", take("locks", lambda: made.dead))
    monkeypatch.setattr(flow.attributes_file, "remove_truncated", take("file", lambda: None))
    monkeypatch.setattr(flow, "refused_repairs", take("repairs", lambda: made.repairs))
    monkeypatch.setattr(flow, "find_moved_jobs", take("moved", lambda: made.moved))
    monkeypatch.setattr(flow, "deployed_jobs", lambda deployment: deployment)
    monkeypatch.setattr(flow, "clear_settled", take("settled", lambda: 5))
    monkeypatch.setattr(flow, "report_orphaned_jobs", take("orphaned", lambda: None))
    monkeypatch.setattr(flow, "report_cancelled_jobs", take("cancelled", lambda: None))
    monkeypatch.setattr(flow.dataclasses, "replace", lambda pulumi, **_: pulumi)
    monkeypatch.setattr(
        "vertex_training_cli.up.lost_state.refuse_if_lost", take("lost", lambda: None)
    )
    return made


MADE = {"resources": [{"custom": True}]}
BEFORE = [("locks", "gs://state", "demo", "dev"), ("file", "gs://state", "demo", "dev")]


def bring_up(engine: Any, said: list[str], dead: list[str] | None = None) -> int:
    ended = dead if dead is not None else []
    return flow.bring_up(
        REF, engine, ["--yes"], said.append, on_dead_lock=lambda: ended.append("dead")
    )


def test_an_up_that_succeeds_clears_and_reports_afterwards(steps: SimpleNamespace) -> None:
    said: list[str] = []
    dead: list[str] = []
    engine = Engine(0, before=MADE, after=MADE)
    assert bring_up(engine, said, dead) == 5  # of the refresh that clears
    assert engine.ran == [("up", "--stack", "dev", "--yes")]
    assert steps.taken == [
        *BEFORE, ("repairs", "dev"), ("moved",), ("cancelled",), ("settled", "dev"), ("orphaned",),
    ]  # fmt: skip
    assert (said, dead) == ([], [])
    steps.dead = True
    bring_up(Engine(0), said, dead)
    assert dead == ["dead"]


def test_an_up_that_fails_is_told_and_nothing_is_looked_at_after_it(steps: SimpleNamespace) -> None:
    said: list[str] = []
    assert bring_up(Engine(255, before=MADE), said) == 255
    assert said == ["pulumi up ended with exit code 255"]
    assert [name for name, *_ in steps.taken][-1] == "cancelled"


def test_what_is_refused_is_told_and_nothing_runs(steps: SimpleNamespace) -> None:
    steps.repairs, steps.moved = [Problem("a is lost")], [Problem("b moves")]
    said: list[str] = []
    engine = Engine()
    assert bring_up(engine, said) == 3
    assert said == ["dev is not deployed; nothing was changed.", "a is lost.", "b moves."]
    assert engine.ran == []


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        (MADE, False),
        ({"resources": [{"custom": False}, {}]}, True),
        ({}, True),
        ({"resources": None}, True),
        (CommandError("no stack named dev"), False),
    ],
)
def test_a_state_without_resources_may_have_been_lost(
    steps: SimpleNamespace, before: Any, asked: bool
) -> None:
    bring_up(Engine(0, before=before), [])
    assert (("lost",) in steps.taken) is asked


@pytest.mark.parametrize(
    ("arguments", "refreshes"),
    [
        ([], None), (["--yes"], None), (["--refresh"], True), (["-r"], True), (["-yr"], True),
        (["--refresh=true"], True), (["-r=1"], True), (["--refresh=false"], False),
        (["--refresh=False"], False), (["-r=f"], False), (["-r=F"], False), (["-r=0"], False),
        (["--refresh", "--refresh=false"], False), (["--refresh=false", "-r"], True),
        (["--refreshing"], None), (["-ry"], None), (["--target", "-r-x"], None),
    ],
)  # fmt: skip
def test_a_line_or_the_project_lets_an_up_refresh(
    tmp_path: Path, arguments: list[str], refreshes: bool | None
) -> None:
    for options, usual in (("", False), ("options: {refresh: always}\n", True)):
        (tmp_path / "Pulumi.yaml").write_text(f"name: demo\nruntime: python\n{options}")
        expected = usual if refreshes is None else refreshes
        assert flow._refreshes(tmp_path, arguments) is expected


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ([], []),
        (["--yes", "--config-file", "a.yaml", "--x"], ["--config-file", "a.yaml"]),
        (["--config-file=a.yaml", "--config-file", "b"], ["--config-file=a.yaml"]),
        (["--config-files=a"], []),
    ],
)
def test_a_refresh_has_the_config_file_of_the_up(arguments: list[str], options: list[str]) -> None:
    assert flow._config_file(arguments) == options


URN = "urn:pulumi:dev::demo::a:b:C::"


def test_what_a_killed_run_had_begun_is_cleared_by_its_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = SimpleNamespace(
        open=["x"], clearable=True, settled=[f"{URN}a", f"{URN}b"], targets=[f"{URN}a", f"{URN}t"]
    )
    monkeypatch.setattr(flow.pending_creates, "find", lambda _: found)
    monkeypatch.setattr(flow.pending_creates, "explanation", lambda *_: "what is open")
    said: list[str] = []
    engine: Any = Engine(7)
    assert flow.clear_settled("dev", engine, ["--config-file=f"], {}, said.append) == 7
    assert engine.ran == [
        ("refresh", "--stack", "dev", "--yes", "--skip-preview", "--non-interactive",
         "--clear-pending-creates", "--config-file=f", "--target", f"{URN}a", "--target",
         f"{URN}t"),
    ]  # fmt: skip
    assert said == [
        "what is open",
        "a killed run had begun to create a, b, which is settled now: clearing its note",
    ]
    found.open, found.clearable = [], False
    said.clear()
    assert flow.clear_settled("dev", engine, [], {}, said.append) == 0
    assert (said, len(engine.ran)) == ([], 1)


@pytest.mark.parametrize(
    ("newest", "text"),
    [
        (timedelta(minutes=5), "its newest checkpoint is 5m old, in gs://b/a/checkpoints/"),
        (timedelta(minutes=-5), "its newest checkpoint is 0s old, in gs://b/a/checkpoints/"),
        (None, "it has no checkpoint in gs://b/a/checkpoints/"),
        (OperatorError("403"),
         "its output is in gs://b/a/; checkpoints cannot be looked for: 403"),
    ],
)  # fmt: skip
def test_a_checkpoint_of_a_cancelled_job_is_told(
    monkeypatch: pytest.MonkeyPatch, newest: Any, text: str
) -> None:
    now = datetime(2026, 11, 21, 10, tzinfo=UTC)
    asked: list[str] = []

    def listing(folder: str) -> Any:
        asked.append(folder)
        if isinstance(newest, Exception):
            raise newest
        return SimpleNamespace(newest=newest and now - newest)

    monkeypatch.setattr(cancelled_jobs, "datetime", SimpleNamespace(now=lambda _: now))
    monkeypatch.setattr(objects, "Objects", lambda _: SimpleNamespace(listing=listing))
    monkeypatch.setattr(StackRef, "connect_clients", lambda _: None)
    cancelled: Any = SimpleNamespace(output="gs://b/a/")
    assert cancelled_jobs._checkpoint(REF, cancelled) == text
    assert asked == ["gs://b/a/checkpoints/"]
    assert cancelled_jobs._checkpoint(REF, SimpleNamespace(output="")) == ""  # type: ignore[arg-type]
