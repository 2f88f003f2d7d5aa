"""How ``vt local logs`` finds a job, and how it follows what is written meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner.joblog import log_path
from localgcp.vertex.records import JobRecord, JobState, JobTable
from tests.unit.localcloud.vertex.rows import job_row
from vertex_training_cli.local import joblogs


def job(number: str, display: str) -> JobRecord:
    return replace(job_row(number, {}), display_name=display)


@pytest.mark.parametrize("replica", ["../x", "a/b", ".x", "/etc/passwd"])
def test_a_replica_is_a_name_and_no_path(home: Home, replica: str) -> None:
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, None, replica, follow=False)
    assert str(failed.value) == (f"{replica!r} is no name of a replica. Hint: write workerpool0-0.")


def put(home: Home, record: JobRecord, text: bytes, replica: str = "workerpool0-0") -> Path:
    JobTable(home.database).insert(record)
    path = log_path(home, record.job_id, replica)
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    return path


def test_a_log_that_is_not_there_names_the_logs_that_are(home: Home) -> None:
    path = put(home, job("1", "train"), b"", "workerpool1-0")
    (path.parent / "workerpool0-1.log").write_bytes(b"")
    (path.parent / "workerpool0-1.times").write_bytes(b"")
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "train", "workerpool0-0", follow=False)
    assert str(failed.value).startswith(
        "job train (QUEUED) has no log of workerpool0-0; there is: workerpool0-1, workerpool1-0."
    )
    JobTable(home.database).insert(job("2", "other"))
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "other", "workerpool0-0", follow=False)
    assert str(failed.value).startswith("job other (QUEUED) has no log of workerpool0-0 yet.")


def test_where_nothing_was_made_a_look_makes_nothing(home: Home) -> None:
    home.database.unlink(missing_ok=True)
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "train", "workerpool0-0", follow=False)
    assert str(failed.value) == (
        "the local cloud has no job yet. Hint: `vt local up` submits the stack's."
    )
    assert not home.database.exists()


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What happens in each pause of one that follows, in turn."""
    happens: list[Callable[[], object]] = []
    seconds: list[float] = []

    def sleep(given: float) -> None:
        seconds.append(given)
        happens.pop(0)()

    monkeypatch.setattr(joblogs.time, "sleep", sleep)
    return happens


def test_one_that_follows_ends_when_the_record_is_deleted(
    home: Home, capsys: pytest.CaptureFixture[str], paused: list[Callable[[], object]]
) -> None:
    put(home, replace(job("1", "train"), state=JobState.RUNNING), b"all\n")
    paused.append(lambda: JobTable(home.database).delete("1"))
    joblogs.show(home, "train", "workerpool0-0", follow=True)
    assert (capsys.readouterr().out, paused) == ("all\n", [])
