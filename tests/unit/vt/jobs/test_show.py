"""Tables of jobs: columns, marks, what is left out, and the facts of one job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from typer.testing import CliRunner

from vertex_training.errors import OperatorError
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import command

REF = StackRef(Path("/srv/checkout"), "p", "dev", "acme-ml", "us-central1")
PLACE = "projects/1/locations/us-central1"


def job(number: str, name: str, state: str = "SUCCEEDED", **more: Any) -> CustomJob:
    labels = {"vt-job": name, "vt-run": "2", "vt-request-id": "x", **more.pop("labels", {})}
    return CustomJob(
        name=f"{PLACE}/customJobs/{number}", labels=labels, state=JobState[f"JOB_STATE_{state}"],
        create_time="2026-11-21T10:00:00Z", **more,
    )  # fmt: skip


class Metrics:
    """What jobs measured, by the last part of their names."""

    def __init__(self, **measured: dict[str, float]) -> None:
        self.measured = measured

    def of_all(self, jobs: Any) -> dict[str, dict[str, float]]:
        return {each.name: self.metrics(each) for each in jobs}

    def metrics(self, job: Any) -> dict[str, float]:
        return self.measured.get(f"n{job.name.rpartition('/')[2]}", {})


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Prints a table of jobs; its lines without padding, and what was logged."""

    def tell(jobs: Any, limit: int = 10, *, ran: Any = (), **options: Any) -> Any:
        said: list[str] = []
        monkeypatch.setattr(
            command, "substitutes_of", lambda each, _: ["x"] if each.name[-1] in ran else []
        )
        command.print_jobs(jobs, REF, limit, log=said.append, **{"as_json": False, **options})
        out = capsys.readouterr().out
        return [" ".join(line.split()) for line in out.splitlines()], said

    return tell


def test_a_job_that_ran_on_something_else_is_marked(told) -> None:
    lines, said = told([job("8", "b"), job("7", "a")], ran="7")
    assert [line.split()[2] for line in lines[1:]] == ["SUCCEEDED", "SUCCEEDED*"]
    assert said == ["* not on the machine or Python that it asked for: `vt jobs show` says on what"]


def test_a_state_that_there_is_not_is_told_with_the_nearest() -> None:
    done = CliRunner().invoke(app, ["jobs", "list", "--state", "runing"], env={"COLUMNS": "100"})
    assert done.exit_code == 2, "called wrongly, whether or not there is a cloud"
    assert "there is no state 'runing': did you mean 'running'?" in done.output


def facts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], found: Any, *,
    ran: Any = (), why: Any = "", reader: Any = None,
) -> list[str]:  # fmt: skip
    def reason(*_: Any) -> str:
        if isinstance(why, Exception):
            raise why
        return why

    monkeypatch.setattr(command, "substitutes_of", lambda *_: list(ran))
    monkeypatch.setattr(command.deployed, "stop_reason", reason)
    monkeypatch.setattr(
        command.view, "facts", lambda *_: [("state", command.view.state(found)), ("id", "7")]
    )
    command.print_job(found, REF, as_json=False, reader=reader)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


GPUS = {"worker_pool_specs": [{"machine_spec": {"accelerator_count": 1}}]}


@pytest.mark.parametrize(
    ("state", "spec", "why", "line"),
    [
        ("CANCELLED", GPUS, "idle for 30m\x1b", ["why idle for 30m\ufffd"]),
        ("CANCELLING", GPUS, "idle", ["why idle"]),
        ("CANCELLED", GPUS, "", []),
        ("CANCELLED", GPUS, OperatorError("403"), ["why not known: 403"]),
        ("CANCELLED", {}, "idle", []),
        ("FAILED", GPUS, "idle", []),
    ],
)
def test_a_job_that_was_cancelled_says_why_if_its_record_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str, spec: Any,
    why: Any, line: list[str],
) -> None:  # fmt: skip
    found = job("7", "train", state, job_spec=spec)
    told = facts(monkeypatch, capsys, found, why=why)
    assert told == ["JOB train", f"state {state}", *line, "id 7"]


def test_a_job_says_on_what_it_ran_and_what_it_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = Metrics(n7={"loss\x1b": 0.25})
    told = facts(monkeypatch, capsys, job("7", "train"), ran=["a", "b"], reader=reader)
    assert told == ["JOB train", "state SUCCEEDED", "ran a; b", "id 7", "loss\ufffd 0.25"]
