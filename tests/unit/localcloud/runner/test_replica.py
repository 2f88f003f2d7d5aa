"""One process of a job: its end is heard of, with and without the system's help."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from localgcp.runner import replica
from localgcp.runner.joblog import JobLog
from localgcp.runner.replica import Ending


@pytest.fixture(params=["told", "asked"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux tells of the end of a process; a sandbox may refuse it."""

    def refused(*_: object) -> int:
        raise PermissionError

    if request.param == "asked":
        monkeypatch.setattr(os, "pidfd_open", refused, raising=False)


def run(folder: Path, command: str, cancelled: threading.Event | None = None) -> replica.Outcome:
    return replica.run(
        ["sh", "-c", command],
        env={"PATH": os.defpath},
        cwd=folder,
        log=JobLog(folder / "log"),
        notes=folder / "notes",
        cancelled=cancelled or threading.Event(),
    )


@pytest.mark.usefixtures("way")
def test_a_process_that_ends_by_itself_has_its_code(tmp_path: Path) -> None:
    assert run(tmp_path, "exit 3") == replica.Outcome(Ending.EXITED, 3)
    assert run(tmp_path, "sleep 0.6; kill -9 $$") == replica.Outcome(Ending.EXITED, 137)
