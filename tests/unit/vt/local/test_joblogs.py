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


def put(home: Home, record: JobRecord, text: bytes, replica: str = "workerpool0-0") -> Path:
    JobTable(home.database).insert(record)
    path = log_path(home, record.job_id, replica)
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    return path


def test_where_nothing_was_made_a_look_makes_nothing(home: Home) -> None:
    home.database.unlink(missing_ok=True)
    with pytest.raises(LocalCloudError) as failed:
        joblogs.show(home, "train", "workerpool0-0", follow=False)
    assert str(failed.value) == (
        "the local cloud has no jobs. Hint: submit the jobs of the stack by `vt local up`."
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
