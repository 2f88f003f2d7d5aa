"""Jobs of Batch in ``vt local status``, ``logs`` and ``down``."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from localgcp.batch.records import BatchJob, BatchTable, State, TaskState
from localgcp.home import Home
from vertex_training_cli.cli import app

NAME = "projects/1/locations/us-central1/jobs/hello"


@pytest.fixture
def table(home: Home, monkeypatch: pytest.MonkeyPatch) -> BatchTable:
    """A job of two tasks: one is over, one waits."""
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    made = BatchTable(home)
    body = {"taskGroups": [{"taskCount": "2"}]}
    time = made.clock.text()
    row = BatchJob(NAME, "j-1", "local-x", "us-central1", body, State.QUEUED, [], time, time)
    assert made.insert(row)
    made.move_task("j-1", 0, TaskState.SUCCEEDED)
    return made


def test_down_cancels_what_waits_so_that_the_next_server_does_not_run_it(table: BatchTable) -> None:
    done = CliRunner().invoke(app, ["local", "down"])
    assert done.exit_code == 0, done.output
    assert "job hello of Batch was cancelled" in done.stdout + done.stderr
    found = table.get(NAME)
    assert found is not None
    assert found.state is State.CANCELLED
