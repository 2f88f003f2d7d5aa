"""The command line of ``vt jobs advance``: what it prints, asks for and ends with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from vertex_training_cli.cli import app
from vertex_training_cli.engine import stacks
from vertex_training_cli.jobs import advance as steps
from vertex_training_cli.jobs.advance import Action, Tick

STATE = {"resources": []}
NAME = "projects/1/locations/us-central1/customJobs/42"
SUBMITTED = Action("schedule", "train", "submitted", "is due", NAME, "20261130t060000z")
FAILED = Action("ladder", "train", "failed", "a \x1b[31mcode", failed=True)
MONDAY = datetime(2026, 11, 30, 6, tzinfo=UTC)


class _Ref:
    """A stack whose state is given."""

    root, stack, is_local = "/r", "dev", False

    def running_environment(self) -> Mapping[str, str]:
        return {"A": "b"}

    def connect_clients(self) -> None: ...


class _Pulumi:
    def __init__(self, root: str, env: Mapping[str, str]) -> None:
        assert (root, env) == ("/r", {"A": "b"})

    def export_deployment(self, stack: str) -> Mapping[str, Any]:
        assert stack == "dev"
        return STATE


Advance = Callable[..., Result]


@pytest.fixture
def ticks() -> list[Tick]:
    """What the steps were given."""
    return []


@pytest.fixture
def advance(ticks: list[Tick], monkeypatch: pytest.MonkeyPatch) -> Advance:
    """Runs the command; what is done is given."""
    monkeypatch.setattr(stacks, "find", lambda _name: _Ref())
    monkeypatch.setattr(steps, "PulumiCli", _Pulumi)

    def run(*words: str, done: tuple[Action, ...] = ()) -> Result:
        def actions(tick: Tick) -> Iterator[Action]:
            ticks.append(tick)
            yield from done

        monkeypatch.setattr(steps, "actions", actions)
        return CliRunner().invoke(app, ["jobs", "advance", *words])

    return run


def test_each_thing_is_a_line_and_what_failed_the_exit_code(advance: Advance) -> None:
    done = advance(done=(SUBMITTED,))
    line = "schedule train 20261130t060000z: is due (42)\n"
    assert (done.exit_code, done.stdout, done.stderr) == (0, line, "")
    both = advance(done=(FAILED, SUBMITTED))
    assert both.exit_code == 1
    assert both.stdout.splitlines()[1:] == [line.rstrip("\n")]
    assert "\x1b" not in both.stdout
    assert both.stdout.startswith("ladder train: a ")


def test_programs_get_every_field(advance: Advance) -> None:
    done = advance("--format", "json", done=(SUBMITTED, FAILED))
    assert (done.exit_code, done.stderr) == (1, "")
    assert json.loads(done.stdout) == [
        {"step": "schedule", "job": "train", "done": "submitted", "reason": "is due",
         "resource": NAME, "slot": "20261130t060000z", "failed": False},
        {"step": "ladder", "job": "train", "done": "failed", "reason": "a \x1b[31mcode",
         "resource": "", "slot": "", "failed": True},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "given", ["2026-11-30T06:00Z", "2026-11-30T06:00", "2026-11-30T07:00+01:00", "20261130T06"]
)
def test_a_rehearsal_goes_by_any_time_in_universal_time(
    advance: Advance, ticks: list[Tick], given: str
) -> None:
    assert advance("--dry-run", "--at", given).exit_code == 0
    assert (ticks[0].dry_run, ticks[0].at) == (True, MONDAY)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--at", "2026-11-30T06:00Z"),
            ("--at without --dry-run works only in the local cloud: schedules use Google's clock"),
        ),
        (("--at", "monday", "--dry-run"), "'monday' is not a time"),
    ],
)
def test_a_time_that_nothing_can_go_by_is_refused(
    advance: Advance, ticks: list[Tick], words: tuple[str, ...], told: str
) -> None:
    done = advance(*words)
    assert done.exit_code == 2
    assert told in " ".join(done.stderr.replace("│", " ").split())
    assert ticks == []
