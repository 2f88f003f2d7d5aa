"""One process of a job: how it is started, what ends it, and what is left of it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import CommandNotFoundError
from localgcp.runner import replica
from localgcp.runner.joblog import JobLog
from localgcp.runner.replica import Ending, Outcome


@pytest.fixture(autouse=True)
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at cancels and faults are frequent."""
    monkeypatch.setattr(replica, "_LOOK_SECONDS", 0.01)


def run(folder: Path, script: str, **given: Any) -> Outcome:
    env = {"PATH": os.defpath, "OWN": "1"}
    return replica.run(
        ["sh", "-c", script],
        env=given.pop("env", env),
        cwd=folder,
        log=JobLog(folder / "log"),
        notes=folder / "notes",
        cancelled=given.pop("cancelled", threading.Event()),
        **given,
    )


def log(folder: Path) -> str:
    return (folder / "log").read_text()


@pytest.mark.parametrize(
    ("code", "name"),
    [(137, "SIGKILL"), (143, "SIGTERM"), (139, "SIGSEGV"), (129, "SIGHUP"), (128, ""), (1, ""),
     (255, "")],
)  # fmt: skip
def test_a_code_stands_for_a_signal(code: int, name: str) -> None:
    assert replica.signal_name(code) == name


@pytest.mark.parametrize(
    ("command", "why"),
    [("/none/x", "No such file or directory"), (".", "Permission denied")],
)
def test_a_program_that_cannot_be_started_is_named(tmp_path: Path, command: str, why: str) -> None:
    with pytest.raises(CommandNotFoundError) as missing:
        replica.run(
            [command], env={}, cwd=tmp_path, log=JobLog(tmp_path / "log"), notes=tmp_path / "n",
            cancelled=threading.Event(),
        )  # fmt: skip
    assert str(missing.value) == f"{command}: {why}"


def test_a_process_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    outcome = run(tmp_path, "exec sleep 600", timeout_seconds=0.05)
    assert outcome == Outcome(Ending.TIMED_OUT, 143)
