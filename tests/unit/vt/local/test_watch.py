"""``vt local up`` shows what its jobs do until they have ended."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator

import pytest

from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.home.servers import ServerInfo
from localgcp.vertex.records import JobRecord, JobState, JobTable
from vertex_training_cli.local.results import JobRecords, StackJob
from vertex_training_cli.local.up import watch

WANTED = [StackJob("titanic", "1")]
TIME = "2026-11-21T10:00:00.000000Z"
RUNNING = JobRecord("1", "local-x", "1", "us-central1", "train", {}, {}, JobState.RUNNING,
                    TIME, TIME, None, TIME, None, None)  # fmt: skip


@pytest.fixture
def jobs(home: Home) -> JobTable:
    """The records of a local cloud where one job runs."""
    table = JobTable(home.database)
    table.insert(RUNNING)
    return table


@pytest.fixture
def server(home: Home) -> Iterator[None]:
    """The lock and the file of a server that runs."""
    ServerInfo(4242, 2, 3, TIME).write(home.server_file)
    with home.server_lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def on_wait(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """``on_wait(STEP, ...)``: a step at each wait between two looks, instead of the wait."""

    def set_steps(*steps: Callable[[], object]) -> None:
        rest = iter(steps)
        monkeypatch.setattr(
            "vertex_training_cli.local.up.time.sleep", lambda _seconds: next(rest)()
        )

    return set_steps


@pytest.mark.usefixtures("server")
def test_each_state_of_a_job_is_one_line(
    home: Home,
    jobs: JobTable,
    on_wait: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    on_wait(lambda: None, lambda: jobs.move("1", JobState.SUCCEEDED))

    watch(home, JobRecords(home), WANTED)

    expected = ["job titanic (1): RUNNING", "job titanic (1): SUCCEEDED"]
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.usefixtures("jobs")
def test_a_server_that_ends_before_its_jobs_is_an_error(home: Home) -> None:
    with pytest.raises(LocalCloudError, match="the local cloud stopped while 1 job"):
        watch(home, JobRecords(home), WANTED)
