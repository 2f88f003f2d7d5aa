"""``vt local up`` ends with what became of each job, and with an exit code that follows from it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.home.servers import ServerInfo
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import free_port
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.local import up

TIME = "2026-11-21T10:00:00.000000Z"
NAME = "projects/1/locations/us-central1/customJobs/"
STACK = "config: {gcp:project: local-x, gcp:region: us-central1}\n"
Up = Callable[..., int]


@pytest.fixture
def home(home: Home) -> Home:
    """A home whose checkout is a small project."""
    checkout = home.root / "checkout"
    checkout.mkdir()
    (checkout / "Pulumi.yaml").write_text("name: demo\nruntime: python\n")
    (checkout / "Pulumi.local.yaml").write_text(STACK)
    return replace(home, repo=checkout)


@pytest.fixture
def run(home: Home, monkeypatch: pytest.MonkeyPatch) -> Up:
    """``vt local up`` after an engine that ended with ``code`` and left these jobs.

    The record of a job without a state was deleted.
    """
    info = ServerInfo(4242, 2, free_port(), TIME)
    monkeypatch.setattr(lifecycle, "start", lambda _home, _report: info)
    monkeypatch.setattr(StackRef, "connect_clients", lambda _ref: None)

    def run_with(*states: JobState | None, code: int = 0, wait: bool = False) -> int:
        jobs = JobTable(home.database)
        for number, state in enumerate(states, 1):
            if state:
                jobs.insert(_record(str(number), state))
        _write_state(home, len(states))
        monkeypatch.setattr(up, "bring_up", lambda *_given, **_options: code)
        return up.run(home, "local", wait=wait, report=print)

    return run_with


def test_an_engine_that_failed_gives_the_exit_code_and_no_summary(
    run: Up, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(JobState.FAILED, code=7) == 7
    assert "RESOURCES" not in capsys.readouterr().out


@pytest.mark.parametrize("wait", [False, True])
def test_a_job_whose_record_was_deleted_is_named_and_is_no_failure(
    run: Up, capsys: pytest.CaptureFixture[str], wait: bool
) -> None:
    assert run(None, JobState.SUCCEEDED, wait=wait) == 0

    summary = capsys.readouterr().out.partition("RESOURCES")[2]
    assert "record deleted" in summary.partition("job-2")[0].partition("job-1")[2]


def _record(job_id: str, state: JobState) -> JobRecord:
    error = (1, "exit code 3") if state is JobState.FAILED else (None, None)
    return JobRecord(job_id, "local-x", "1", "us-central1", "train", {}, {}, state, TIME, TIME,
                     TIME, TIME, *error)  # fmt: skip


def _write_state(home: Home, count: int) -> None:
    names = {f"job-{number}": {"name": f"{NAME}{number}"} for number in range(1, count + 1)}
    stack = {"urn": "urn:pulumi:local::demo::pulumi:pulumi:Stack::demo-local", "custom": False,
             "type": "pulumi:pulumi:Stack", "outputs": {"jobs": names}}  # fmt: skip
    jobs = [
        {"urn": f"urn:pulumi:local::demo::x:y:CustomJob::{name}", "custom": True,
         "type": "x:y:CustomJob", "id": output["name"]}
        for name, output in names.items()
    ]  # fmt: skip
    folder = home.pulumi / ".pulumi" / "stacks" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    state = {"checkpoint": {"latest": {"resources": [stack, *jobs]}}}
    (folder / "local.json").write_text(json.dumps(state))
