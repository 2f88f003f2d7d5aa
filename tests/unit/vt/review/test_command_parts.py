"""What ``vt review`` shows while a preview runs, and with whose eyes it looks for moved jobs."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rich.console

from tests.unit.vt.review import plans
from vertex_training_cli.engine import pulumi_cli, stacks
from vertex_training_cli.jobs import moved
from vertex_training_cli.review import command


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_shows_how_far_a_preview_is(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []

    class Console:
        def __init__(self, *, stderr: bool) -> None:
            shown.append(stderr)

        @contextmanager
        def status(self, text: str) -> Iterator[Any]:
            shown.append(text)
            yield SimpleNamespace(update=shown.append)

    monkeypatch.setattr(rich.console, "Console", Console)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: is_terminal))
    with command._progress("dev") as on_event:
        on_event(3)
    wanted = [True, "previewing dev", "previewing dev: 3 events"]
    assert shown == (wanted if is_terminal else [])


def test_jobs_that_move_are_looked_for_in_the_state_of_the_cloud(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ref = SimpleNamespace(preview_target=lambda *, offline: SimpleNamespace(env={"off": offline}))
    monkeypatch.setattr(
        stacks, "find_unchecked", lambda *place: place == (Path("/x"), "dev") and ref
    )
    monkeypatch.setattr(pulumi_cli, "PulumiCli", lambda *how: how)
    monkeypatch.setattr(moved, "find_moved_jobs", lambda *how: how)
    plan = plans.plan(plans.create(plans.JOB, "training-a", **plans.job("a")))
    found: Any = command._moved_jobs(Path("/x"), "dev", plan)
    assert found == (ref, moved.planned_from(plan), (Path("/x"), {"off": False}))


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_report_can_be_printed_whatever_the_encoding_of_the_output(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # text that is not encoded at all
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, name, io.TextIOWrapper(written, encoding="ascii"))
    command._write_utf8()
    print("5 \u2192 \ud800", file=getattr(sys, name), flush=True)
    assert written.getvalue() == b"5 \xe2\x86\x92 \\ud800\n"
