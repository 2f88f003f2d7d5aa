"""Tables of jobs: columns, marks, what is left out, and the facts of one job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState
from typer.testing import CliRunner

from vertex_training.errors import OperatorError
from vertex_training_cli.cli import app
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import show

REF = StackRef(Path("/srv/checkout"), "p", "dev", "acme-ml", "us-central1")
PLACE = "projects/1/locations/us-central1"


def job(number: str, name: str, state: str = "SUCCEEDED", **more: Any) -> CustomJob:
    labels = {"vt-job": name, "vt-run": "2", "vt-request-id": "x", **more.pop("labels", {})}
    return CustomJob(
        name=f"{PLACE}/customJobs/{number}", labels=labels, state=JobState[f"JOB_STATE_{state}"],
        create_time="2026-11-21T10:00:00Z", **more,
    )  # fmt: skip


TUNING = HyperparameterTuningJob(
    name=f"{PLACE}/hyperparameterTuningJobs/9", display_name="search",
    state=JobState.JOB_STATE_RUNNING, create_time="2026-11-21T11:00:00Z",
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
            show, "substitutes_of", lambda each, _: ["x"] if each.name[-1] in ran else []
        )
        show.table_of(jobs, REF, limit, log=said.append, **{"as_json": False, **options})
        out = capsys.readouterr().out
        return [" ".join(line.split()) for line in out.splitlines()], said

    return tell


def test_a_list_has_a_row_for_each_job_and_says_how_many_are_left_out(told) -> None:
    jobs = [TUNING, job("8", "train", "FAILED"), job("7", "train")]
    lines, said = told(jobs, 2)
    assert lines == [
        "JOB RUN STATE CREATED DURATION ID",
        "search (tuning) RUNNING 2026-11-21 11:00:00 9",
        "train 2 FAILED 2026-11-21 10:00:00 8",
    ]
    assert said == ["1 older ones are not shown (--limit)"]


def test_a_job_that_ran_on_something_else_is_marked(told) -> None:
    lines, said = told([job("8", "b"), job("7", "a")], ran="7")
    assert [line.split()[2] for line in lines[1:]] == ["SUCCEEDED", "SUCCEEDED*"]
    assert said == ["* not on the machine or Python that it asked for: `vt jobs show` says on what"]


def test_metrics_are_columns_up_to_four(told) -> None:
    jobs = [job("8", "b"), job("7", "a")]
    reader = Metrics(n8={"loss": 0.25, "acc": 1.0}, n7={"acc": 0.5, "c": 3, "d": 4, "e": 5})
    lines, _ = told(jobs, reader=reader)
    assert lines[0].endswith("ID loss acc c d")
    assert lines[1].endswith("8 0.25 1")
    assert lines[2].endswith("7 0.5 3 4")


def test_columns_of_slots_and_rungs_are_there_where_a_job_has_one(told) -> None:
    slotted = job("8", "b", labels={"vt-slot": "20261121t1000"})
    lines, _ = told([slotted, job("7", "a")])
    assert lines[0] == "JOB RUN SLOT STATE CREATED DURATION ID"


def test_jobs_of_several_stacks_are_told_apart(told) -> None:
    def of(number: str, stack: str) -> CustomJob:
        own = {"vt-request-id": "x", "vt-job": "train", "vt-run": "1", "vt-stack": stack}
        return job(number, "a", labels=own)

    lines, _ = told([of("9", "vision"), of("8", "speech"), job("7", "by hand")])
    assert lines[0] == "JOB STACK RUN STATE CREATED DURATION ID"
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["train", "vision", "1"],
        ["train", "speech", "1"],
    ]
    lines, _ = told([of("9", "vision")])
    assert lines[0] == "JOB RUN STATE CREATED DURATION ID"


def test_without_jobs_it_says_so(told) -> None:
    assert told([]) == ([], ["no such jobs"])


def test_a_list_for_scripts_has_metrics_only_where_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(show, "substitutes_of", lambda *_: ["x"])
    jobs = [job("8", "b"), job("7", "a")]
    show.table_of(jobs, REF, 1, as_json=True, log=print)
    [entry] = json.loads(capsys.readouterr().out)
    assert (entry["job"], entry["substitutes"], "metrics" in entry) == ("b", ["x"], False)
    reader: Any = Metrics(n8={"loss": 0.25})
    show.table_of(jobs, REF, 2, as_json=True, log=print, reader=reader)
    found = json.loads(capsys.readouterr().out)
    assert [each["metrics"] for each in found] == [{"loss": 0.25}, {}]


@pytest.mark.parametrize(
    ("text", "word"),
    [("running", "RUNNING"), ("JOB_STATE_FAILED", "FAILED"), ("Succeeded", "SUCCEEDED")],
)
def test_a_state_is_meant_with_or_without_its_prefix(text: str, word: str) -> None:
    assert show.known_state(text) == word


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

    monkeypatch.setattr(show, "substitutes_of", lambda *_: list(ran))
    monkeypatch.setattr(show.ladders, "stop_reason", reason)
    monkeypatch.setattr(
        show.view, "facts", lambda *_: [("state", show.view.state(found)), ("id", "7")]
    )
    show.one(found, REF, as_json=False, reader=reader)
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


def test_a_tuning_job_has_a_table_of_its_trials(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = {"id": "1", "state": "SUCCEEDED", "customJob": "x/5",
             "parameters": [{"parameterId": "lr", "value": 0.1}]}  # fmt: skip
    monkeypatch.setattr(show.view, "message", lambda _: {"trials": [trial]})
    told = facts(monkeypatch, capsys, TUNING, reader=Metrics(n9={"loss": 1.0}))
    assert told == [
        "TUNING JOB search", "state RUNNING", "id 7", "", "TRIAL STATE lr id", "1 SUCCEEDED 0.1 5",
    ]  # fmt: skip


def test_only_a_job_of_the_local_cloud_may_run_on_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from localgcp.home import Home
    from localgcp.runner import substitutes

    local = StackRef(Path(), "p", "local", "local-x", "us-central1")
    monkeypatch.setattr(Home, "find", lambda **_: "home")
    monkeypatch.setattr(substitutes, "read", lambda home, id_: [f"{home} {id_}", "same"])
    assert show.substitutes_of(job("7", "a"), local) == ["home 7", "same"]
    assert show.substitutes_of(job("7", "a"), REF) == []
    trials = [{"customJob": "x/5"}, {}, {"customJob": "x/6"}]
    monkeypatch.setattr(show.view, "message", lambda _: {"trials": trials})
    assert show.substitutes_of(TUNING, local) == ["home 5", "same", "home 6"]


def test_jobs_side_by_side_are_rows_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    from vertex_training_cli.jobs.compare import Compared

    found = [Compared("a\x1b", "1", "7", "RUNNING", "1m", "$1", {}, {"loss": 0.5})]
    show.compared(found, as_json=False)
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines == ["a\ufffd 1", "id 7", "state RUNNING", "duration 1m", "cost $1", "loss 0.5"]
    show.compared(found, as_json=True)
    assert json.loads(capsys.readouterr().out)[0]["metrics"] == {"loss": 0.5}
