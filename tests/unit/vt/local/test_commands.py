"""What ``vt local`` says when the machine is at fault."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from google.api_core import exceptions
from typer.testing import CliRunner, Result

from localgcp import lifecycle
from localgcp.alerting import spool
from localgcp.batch.records import BatchJob, BatchTable, State, TaskState
from localgcp.bigquery import PINS
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import BUCKET, BUDGET, ENDPOINT, Store
from localgcp.runner import substitutes
from localgcp.runner.gcsfuse import storage_client
from localgcp.server_info import ServerInfo
from localgcp.tuning.records import TrialRecord, TrialState, TuningRecord, TuningTable
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training_cli.cli import app
from vertex_training_cli.local import commands, status


def test_the_status_tells_that_the_nearest_version_runs_for_images_that_are_not_here(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    command = "vt local start --prebuilt nearest"
    told = f"prebuilt images that are not here: the nearest version runs ({command})"
    assert told not in CliRunner().invoke(app, ["local", "status"]).stdout.splitlines()
    substitutes.take_nearest(home, on=True)
    assert told in CliRunner().invoke(app, ["local", "status"]).stdout.splitlines()


def test_the_engine_of_bigquery_is_installed_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[tuple[object, ...]] = []
    own = SimpleNamespace(folder=tmp_path / "engine", marker=tmp_path / "marker", python=None)

    def install(*given: object) -> None:
        installed.append(given)
        own.python = tmp_path / "python"

    monkeypatch.setattr(commands, "engine_environment", lambda: own)
    monkeypatch.setattr(commands.policy_env, "install_once", install)
    missing = CliRunner().invoke(app, ["local", "bigquery"])
    assert (missing.exit_code, missing.stderr) == (
        1,
        "vt local bigquery: BigQuery's engine is not installed. "
        "Hint: `vt local bigquery --install`\n",
    )
    assert installed == []
    done = CliRunner().invoke(app, ["local", "bigquery", "--install"])
    told = f"vt: BigQuery's engine is installed in {tmp_path / 'engine'}\n"
    assert (done.exit_code, done.stderr) == (0, told)
    assert installed == [(own.folder, own.marker, PINS, "BigQuery's engine")]
    assert CliRunner().invoke(app, ["local", "bigquery"]).stderr == told
    assert len(installed) == 1


def vt_local(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["local", *words])
    return done.exit_code, done.stdout, done.stderr


def test_a_start_says_the_process_and_keeps_what_runs_missing_images(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr(lifecycle, "start", lambda *_: ServerInfo(4242, 2, 3, "now"))
    told = (0, "", "vt: running (process 4242)\n")
    for words, nearest in (
        ((), False), (("--prebuilt", "nearest"), True), ((), True),
        (("--prebuilt", "exact"), False), ((), False),
    ):  # fmt: skip
        assert vt_local("start", *words) == told
        assert substitutes.takes_nearest(home) is nearest


@pytest.mark.parametrize(("ran", "told"), [(True, "stopped"), (False, "nothing was running")])
def test_a_stop_says_whether_anything_ran(
    home: Home, monkeypatch: pytest.MonkeyPatch, ran: bool, told: str
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr(lifecycle, "stop", lambda found: ran and found.root == home.root)
    assert vt_local("stop") == (0, "", f"vt: {told}\n")


@pytest.mark.parametrize(
    ("words", "given"), [((), None), (("--command", "ls"), "ls"), (("-c", ""), "")]
)
def test_a_shell_gets_its_command_and_the_umask_of_before(
    home: Home, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], given: str | None
) -> None:
    entered: list[object] = []

    def enter(found: Home, command: str | None, report: object, umask: int) -> None:
        entered.append((found.root, command, report, umask))

    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr(commands, "enter_shell", enter)
    before = os.umask(0o27)
    try:
        assert vt_local("shell", *words) == (0, "", "")
        assert os.umask(before) == 0o27
    finally:
        os.umask(before)
    assert entered == [(home.root, given, commands.report, 0o27)]


def test_an_interruption_says_what_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), commands.private_files():
        raise KeyboardInterrupt
    assert capsys.readouterr().err == (
        "vt: interrupted; what was started goes on (`vt local status`, `vt local down`)\n"
    )


@pytest.fixture
def running(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[lifecycle.ServerInfo]:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    yield lifecycle.start(home, print)
    lifecycle.stop(home)


def vt(*words: str, expect: int = 0) -> Result:
    result = CliRunner().invoke(app, ["local", "fault", *words])
    assert result.exit_code == expect, result.output
    return result


def test_faults_are_added_shown_met_and_cleared(home: Home, running: lifecycle.ServerInfo) -> None:
    client = storage_client(f"http://127.0.0.1:{running.storage_port}")
    bucket = client.create_bucket("control")
    added = vt("add", "storage", "error", "--code", "404", "--method", "objects.insert").stdout
    held = vt("add", "storage", "hold", "--match", "held").stdout.strip()
    with pytest.raises(exceptions.NotFound):  # in force as soon as the command is done
        bucket.blob("a").upload_from_string(b"", retry=None)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(bucket.blob("held").upload_from_string, b"")
        assert vt("wait", held).stdout == "objects.insert control/held\n"
        shown = vt("list").stdout
        assert "storage error --method objects.insert --code 404" in shown
        assert "1 of 1" in shown
        assert "objects.insert control/held" in shown
        assert "released objects.insert control/held" in vt("release", held).stderr
        writing.result(60)
    text = vt("list", "--json").stdout
    assert text.startswith('[\n  {\n    "')
    rows = json.loads(text)
    assert [(row["id"], row["kind"], row["spent"]) for row in rows] == [
        (int(added), "error", True), (int(held), "hold", True),
    ]  # fmt: skip
    assert "2 cleared" in vt("clear").stderr
    bucket.blob("a").upload_from_string(b"", retry=None)


def test_faults_can_be_added_before_the_cloud_is_started(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    assert vt("list").stderr == "vt: no faults\n"
    assert vt("add", "jobs", "drop", "--match", "[/train]").stdout == "1\n"
    assert "jobs drop --match [/train]" in vt("list").stdout


TIME = "2026-11-21T10:00:00.000000Z"


def shown(home: Home, capsys: pytest.CaptureFixture[str]) -> tuple[bool, list[str]]:
    """Whether it is up, and the lines that are told without their padding."""
    up = status.show(home)
    return up, [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def serve(monkeypatch: pytest.MonkeyPatch, info: ServerInfo | None, *, answers: bool) -> None:
    monkeypatch.setattr(lifecycle, "running", lambda _: info)
    monkeypatch.setattr(lifecycle, "healthy", lambda _: answers)


def fill(home: Home) -> None:
    """One of each thing that a status shows."""
    store = Store(home.database)
    for name in ("a", "b"):
        store.put(BUCKET, name, "local-x", {}, {"name": name})
    store.put(BUDGET, "budget", "local-x", {"displayName": "month [b]"}, {})
    place = "projects/local-x/locations/us-central1/endpoints"
    deployed = [{"id": "1", "modelVersionId": "3"}, {"id": "2", "modelVersionId": "4"}]
    outputs = {"displayName": "e", "trafficSplit": '{"1": 100}', "deployedModels": deployed}
    store.put(ENDPOINT, f"{place}/77", "local-x", {}, outputs)
    for number in range(7):
        time = datetime(2026, 11, 21, 10, number, tzinfo=UTC)
        labels = {"job_id": str(number)} if number < 6 else {}
        note = spool.Notification(time, "p", f"alert {number}", "email x@y.z", labels, "text")
        spool.write(home.notifications, note, str(number))


def fill_jobs(home: Home) -> None:
    jobs, tuning, batch = (
        JobTable(home.database),
        TuningTable(home.database),
        BatchTable(home),
    )
    failed = {"error_message": "exit code 3", "create_time": TIME, "display_name": "train"}
    jobs.insert(replace(job_row("11", {}, state=JobState.FAILED), **failed))
    row = {**vars(job_row("7", {})), "display_name": "tuned", "state": JobState.RUNNING}
    tuning.insert(TuningRecord(**{**row, "request": {"maxTrialCount": 4}}))
    tuning.insert(
        TuningRecord(**{**row, "job_id": "8", "error_message": "no trial", "create_time": TIME})
    )
    trial = replace(job_row("71", {}, state=JobState.SUCCEEDED), create_time=TIME)
    tuning.add_trial(TrialRecord("7", 1, "71", trial.name, {}, TrialState.SUCCEEDED), trial)
    body = {"taskGroups": [{"taskCount": "2"}]}
    for number, state in enumerate((State.QUEUED, State.RUNNING, State.FAILED), 1):
        name = f"projects/1/locations/us-central1/jobs/b{number}"
        event = {"description": f"why {number}"}
        events = [{"description": "first"}, event] if number < 3 else []
        made = BatchJob(name, f"u{number}", "local-x", "us-central1", body, state, events, TIME,
                        TIME)  # fmt: skip
        assert batch.insert(made)
    batch.move_task("u2", 0, TaskState.SUCCEEDED)


def test_everything_that_is_there_has_a_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    serve(monkeypatch, None, answers=False)
    faults = FaultTable(home.faults)
    for kind in ("preempt", "kill"):
        faults.add(Fault(service="jobs", kind=kind))
    fill(home)
    fill_jobs(home)
    up, lines = shown(home, capsys)
    assert up is False
    assert lines == [
        "server: not running",
        f"files: {home.root}",
        "faults: 2 active (vt local fault list)",
        "RESOURCES COUNT",
        f"{BUDGET} 1",
        f"{BUCKET} 2",
        f"{ENDPOINT} 1",
        "ENDPOINT ID DEPLOYED",
        "e 77 1 (version 3): 100 %",
        "2 (version 4): 0 %",
        f"notifications: 7 in {home.notifications} (stand-in of the local cloud: nothing was sent)",
        "TIME ALERT WOULD TELL JOB",
        *(f"2026-11-21 10:0{n}:00 alert {n} email x@y.z {n}" for n in range(2, 6)),
        "2026-11-21 10:06:00 alert 6 email x@y.z",
        "not judged here: month [b] (nothing costs anything here)",
        "JOB KIND STATE DONE CREATED WHY ID",
        *lines[-7:],
    ]
    assert {line for line in lines[-7:] if not line.startswith("tuned tuning job RUNNING 1/4")} == {
        "b1 Batch job QUEUED 0/2 2026-11-21T10:00:00 why 1 b1",
        "b2 Batch job RUNNING 1/2 2026-11-21T10:00:00 b2",
        "b3 Batch job FAILED 0/2 2026-11-21T10:00:00 b3",
        "train job FAILED 2026-11-21T10:00:00 exit code 3 11",
        "test job SUCCEEDED 2026-11-21T10:00:00 71",
        "tuned tuning job RUNNING 0/0 2026-11-21T10:00:00 no trial 8",
    }
