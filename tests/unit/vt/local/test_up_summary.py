"""``vt local up`` ends with what became of each job, and with an exit code that follows from it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import replace

import pytest

from localgcp import lifecycle
from localgcp.home import Home
from localgcp.server_info import ServerInfo
from localgcp.tuning.records import (
    TrialRecord,
    TrialState,
    TuningRecord,
    TuningTable,
)
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.conftest import free_port
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.local import up

TIME = "2026-11-21T10:00:00.000000Z"
NAME = "projects/1/locations/us-central1/customJobs/"
STACK = "config: {gcp:project: local-x, gcp:region: us-central1}\n"
#: Of a tuning job.
REQUEST = {
    "maxTrialCount": 3,
    "studySpec": {"metrics": [{"metricId": "loss", "goal": "MINIMIZE"}]},
    "trialJobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://out/search/"}},
}
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


@pytest.mark.usefixtures("run")
def test_the_engine_runs_without_questions_and_a_dead_lock_ends_the_plugins_of_its_run(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Home] = []
    given: list[tuple[str, list[str]]] = []

    def bring_up(
        stack: StackRef,
        _pulumi: PulumiCli,
        arguments: list[str],
        _log: Callable[[str], None],
        *,
        on_dead_lock: Callable[[], object],
    ) -> int:
        given.append((stack.stack, arguments))
        on_dead_lock()
        return 0

    monkeypatch.setattr(up, "bring_up", bring_up)
    monkeypatch.setattr(up, "end_orphaned_plugins", ended.append)

    assert up.run(home, "local", wait=True, report=print) == 0
    assert given == [("local", ["--yes", "--skip-preview"])]
    assert ended == [home]


def test_the_resources_are_counted_and_each_job_has_its_facts(
    run: Up, capsys: pytest.CaptureFixture[str]
) -> None:
    run(JobState.SUCCEEDED, JobState.FAILED)

    shown = [re.split("  +", line.rstrip()) for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        [""], ["RESOURCES OF local", "COUNT"], ["x:y:CustomJob", "2"], ["total", "2"], [""],
        ["JOB", "job-1"], ["state", "SUCCEEDED"], ["id", "1"], [""],
        ["JOB", "job-2"], ["state", "FAILED"], ["id", "2"], ["error", "exit code 3"],
    ]  # fmt: skip


def test_a_job_that_succeeded_shows_its_numbers_and_where_its_files_are(
    run: Up, home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def metrics(record: JobRecord) -> dict[str, float]:
        asked.append(record.job_id)
        return {"loss": 0.123456789, "epochs": 3}

    monkeypatch.setattr(up.results, "metrics", metrics)
    monkeypatch.setattr(up.results, "artifacts", lambda *_: ("gs://out/a/", "/home/out/a"))
    run(JobState.SUCCEEDED, JobState.RUNNING)
    shown = capsys.readouterr().out.partition("JOB ")[2]
    assert [line.split() for line in shown.splitlines()] == [
        ["job-1"], ["state", "SUCCEEDED"], ["id", "1"], ["loss", "0.123457"], ["epochs", "3"],
        ["artifacts", "gs://out/a/"], ["/home/out/a"], [],
        ["JOB", "job-2"], ["state", "RUNNING"], ["id", "2"],
    ]  # fmt: skip
    assert asked == ["1"]


@pytest.mark.parametrize("wait", [False, True])
def test_a_job_whose_record_was_deleted_is_named_and_is_no_failure(
    run: Up, capsys: pytest.CaptureFixture[str], wait: bool
) -> None:
    assert run(None, JobState.SUCCEEDED, wait=wait) == 0

    summary = capsys.readouterr().out.partition("RESOURCES")[2]
    assert "its record was deleted" in summary.partition("job-2")[0].partition("job-1")[2]


def test_a_tuning_job_shows_its_trials_and_the_best_one(
    run: Up, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {**vars(_record("1", JobState.SUCCEEDED)), "request": REQUEST}
    table = TuningTable(home.database)
    table.insert(TuningRecord(**values))
    JobTable(home.database).list()  # makes its table
    for number, loss in enumerate((0.5, 0.25, None), 1):
        state = TrialState.INFEASIBLE if loss is None else TrialState.SUCCEEDED
        job = _record(f"1{number}", JobState.SUCCEEDED)
        trial = TrialRecord("1", number, job.job_id, "", {"rate": number / 100}, state)
        table.add_trial(trial, job)
        if loss is not None:
            with sqlite3.connect(home.database) as db:
                text = json.dumps({"step": 1, "metrics": {"loss": loss}})
                db.execute("UPDATE trials SET measurement=? WHERE number=?", (text, number))
    assert run(None) == 0

    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    facts = shown[shown.index(["JOB", "job-1"]) :]
    assert facts == [
        ["JOB", "job-1"], ["state", "SUCCEEDED"], ["id", "1"], ["trials", "3", "of", "3"],
        ["best", "trial", "2"], ["loss", "0.25"], ["rate", "0.02"],
        ["artifacts", "gs://out/search/2/"], [str(home.storage / "out/search/2")],
    ]  # fmt: skip


def test_a_tuning_job_that_nothing_was_measured_of_has_no_best_trial(
    run: Up, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    values = {**vars(_record("1", JobState.FAILED)), "request": REQUEST}
    table = TuningTable(home.database)
    table.insert(TuningRecord(**values))
    JobTable(home.database).list()  # makes its table
    job = _record("11", JobState.RUNNING)
    table.add_trial(TrialRecord("1", 1, job.job_id, "", {}, TrialState.ACTIVE), job)
    assert run(None) == 1
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown[shown.index(["JOB", "job-1"]) :] == [
        ["JOB", "job-1"], ["state", "FAILED"], ["id", "1"], ["error", "exit", "code", "3"],
        ["trials", "0", "of", "3"],
    ]  # fmt: skip


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
