"""``vt local down``: what becomes of jobs, what is told, and when files are removed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp import lifecycle
from localgcp.batch.records import BatchJob, BatchTable, State
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.tuning.records import TuningRecord, TuningTable
from localgcp.vertex.records import JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training.errors import CommandError
from vertex_training_cli.local import commands

TIME = "2026-11-21T10:00:00.000000Z"
BATCH = "projects/1/locations/us-central1/jobs/b"
WHY = (1, "The job was cancelled because the local cloud was stopped.")


class Stop:
    """The server's end; what ``before`` returned then."""

    def __init__(self, *, ran: bool, before: Callable[[], Any] = lambda: None) -> None:
        self.ran, self.before, self.seen = ran, before, list[Any]()

    def __call__(self, _: Home) -> bool:
        self.seen.append(self.before())
        return self.ran


def down(
    home: Home, monkeypatch: pytest.MonkeyPatch, stop: Stop, *, clean: bool = False
) -> list[str]:
    """The lines that are told."""
    told: list[str] = []
    monkeypatch.setattr(lifecycle, "stop", stop)
    commands.take_down(home, clean=clean, report=told.append)
    return told


def fill(home: Home) -> None:
    """A tuning job that runs, and jobs of both services in several states."""
    jobs, tuning, batch = JobTable(home.database), TuningTable(home.database), BatchTable(home)
    row = vars(job_row("7", {})) | {"display_name": "tuned", "state": JobState.RUNNING}
    tuning.insert(TuningRecord(**row | {"request": {}}))
    states = (JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED)
    for number, state in enumerate(states, 1):
        time = TIME.replace("10:00", f"10:0{number}")
        jobs.insert(replace(job_row(str(number), {}, state=state), create_time=time))
    for number, state in enumerate((State.QUEUED, State.SUCCEEDED), 1):
        body = {"taskGroups": [{"taskCount": "1"}]}
        job = BatchJob(f"{BATCH}{number}", f"u{number}", "local-x", "us-central1", body, state, [],
                       TIME, TIME)  # fmt: skip
        assert batch.insert(job)


def states(home: Home) -> list[tuple[str, str, Any, Any]]:
    """Id, state and error of each job."""
    found = [*TuningTable(home.database).list(), *JobTable(home.database).list()]
    rows = [(j.job_id, j.state.word, j.error_code, j.error_message) for j in found]
    return rows + [(j.job_id, str(j.state), None, None) for j in BatchTable(home).list()]


def test_jobs_are_asked_to_cancel_before_the_server_stops_and_are_cancelled_after_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)

    def end_one() -> list[tuple[str, str, Any, Any]]:
        before = states(home)
        JobTable(home.database).move("2", JobState.CANCELLED)  # the server does it itself
        return before

    stop = Stop(ran=True, before=end_one)
    assert down(home, monkeypatch, stop) == [
        "job tuned (7) was cancelled",
        "job test (1) was cancelled",
        "job b1 on Batch was cancelled",
        "stopped",
    ]
    nothing = (None, None)
    over = [("3", "SUCCEEDED", *nothing), ("4", "FAILED", *nothing), ("b2", "SUCCEEDED", *nothing)]
    assert [sorted(seen) for seen in stop.seen] == [
        [
            ("1", "CANCELLING", *nothing), ("2", "CANCELLING", *nothing), *over[:2],
            ("7", "CANCELLING", *nothing), ("b1", "CANCELLATION_IN_PROGRESS", *nothing), over[2],
        ],
    ]  # fmt: skip
    assert sorted(states(home)) == [
        ("1", "CANCELLED", *WHY), ("2", "CANCELLED", *nothing), *over[:2],
        ("7", "CANCELLED", *WHY), ("b1", "CANCELLED", *nothing), over[2],
    ]  # fmt: skip
    assert home.database.exists()


def test_records_that_cannot_be_changed_keep_nothing_from_its_end(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.database.write_text("no database")
    assert down(home, monkeypatch, Stop(ran=True)) == [
        "cannot write the state of jobs: file is not a database",
        "stopped",
    ]


def lock(*, alive: bool) -> Any:
    """A lock of ``pulumi`` in the folder of the local cloud."""
    return SimpleNamespace(alive=alive, refusal=lambda: CommandError("stack local is in use."))


def test_files_are_removed_where_that_is_asked_and_pulumi_does_not_work(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = [lock(alive=False), lock(alive=True)]
    monkeypatch.setattr(
        commands.locks, "in_folder", lambda folder: locks if folder == home.pulumi else []
    )
    assert down(home, monkeypatch, Stop(ran=False)) == ["the local cloud was not running"]
    stop = Stop(ran=True)
    with pytest.raises(CommandError, match="stack local is in use"):
        down(home, monkeypatch, stop, clean=True)
    assert (stop.seen, home.root.exists()) == ([], True)
    locks.pop()
    told = ["stopped", f"removed {home.root}"]
    assert down(home, monkeypatch, stop, clean=True) == told
    assert not home.root.exists()
    assert down(home, monkeypatch, Stop(ran=False), clean=True) == [
        "the local cloud was not running"
    ]


def test_a_lock_that_is_taken_meanwhile_keeps_the_files(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks: list[Any] = []
    monkeypatch.setattr(commands.locks, "in_folder", lambda _: locks)
    stop = Stop(ran=True, before=lambda: locks.append(lock(alive=True)))
    with pytest.raises(CommandError, match="stack local is in use"):
        down(home, monkeypatch, stop, clean=True)
    assert home.root.exists()


def test_a_folder_of_somebody_else_is_left_before_anything_is_stopped(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, stop = replace(home, root=home.root.with_name("other")), Stop(ran=True)
    other.root.mkdir()
    with pytest.raises(LocalCloudError, match="was not created by `vt local`; no file was removed"):
        down(other, monkeypatch, stop, clean=True)
    assert (stop.seen, other.root.exists()) == ([], True)
