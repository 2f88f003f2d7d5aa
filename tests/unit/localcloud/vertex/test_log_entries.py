"""The logs of jobs as the official Cloud Logging client sees them, through our own reader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from localgcp.apis.server import serve
from localgcp.inventory.store import SERVICE
from localgcp.tuning.service import Tuning
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job
from vertex_training.customjob.google import logs

SCRIPT = "printf 'one\\ntwo\\n10%%\\r100%%\\n'; printf 'last'"


@pytest.fixture
def address(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    cloud.store.put(SERVICE, f"{PROJECT}/logging.googleapis.com", PROJECT, {}, {})
    service = LogService(cloud.home, cloud.store, cloud.jobs, tuning=Tuning(cloud.home))
    server = serve([JobService(cloud.store, cloud.jobs, cloud.scheduler), service], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    yield f"127.0.0.1:{server.port}"
    server.stop(None).wait()


def printed(cloud: Cloud, script: str = SCRIPT) -> str:
    """Id of a job that ended after it ran the script."""
    return cloud.run(command_job("sh", "-c", script)).name.rpartition("/")[2]


def texts(lines: object) -> list[str]:
    """Text of what the job itself wrote; the runner's own lines are marked."""
    assert isinstance(lines, Iterator | list)
    return [line.text for line in lines if not line.text.startswith("[local ")]


def test_the_end_of_a_log_is_its_last_lines_in_their_order(cloud: Cloud, address: str) -> None:
    job_id = printed(cloud, "seq 1 50")
    reader = logs.connect(PROJECT)
    assert [line.text for line in reader.tail(job_id, 7)] == [
        line.text for line in list(reader.lines(job_id))[-7:]
    ]
    assert len(reader.tail(job_id, 10_000)) == len(list(reader.lines(job_id)))


def test_one_replica_and_another_job_are_told_apart(cloud: Cloud, address: str) -> None:
    job_id, _ = printed(cloud, "echo mine"), printed(cloud, "echo other")
    reader = logs.connect(PROJECT)
    assert texts(reader.lines(job_id, "workerpool0-0")) == ["mine"]
    assert list(reader.lines(job_id, "workerpool1-0")) == []
    assert list(reader.lines("1")) == []
