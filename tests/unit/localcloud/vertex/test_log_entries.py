"""The logs of jobs as the official Cloud Logging client sees them, through our own reader."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from localgcp.apis.server import serve
from localgcp.inventory.store import SERVICE
from localgcp.tuning.service import Tuning
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PROJECT, Cloud, command_job, wait_until
from tests.unit.localcloud.tuning import studies
from vertex_training.customjob.google import logs
from vertex_training.errors import OperatorError

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


def test_a_log_is_read_line_by_line_as_a_terminal_would_end_up(cloud: Cloud, address: str) -> None:
    lines = list(logs.connect(PROJECT).lines(printed(cloud)))
    assert texts(lines)[:3] == ["one", "two", "100%"]
    assert {line.replica for line in lines} == {"workerpool0-0"}
    assert [line.time for line in lines] == sorted(line.time for line in lines)


def test_the_end_of_a_log_is_its_last_lines_in_their_order(cloud: Cloud, address: str) -> None:
    job_id = printed(cloud, "seq 1 50")
    reader = logs.connect(PROJECT)
    assert [line.text for line in reader.tail(job_id, 7)] == [
        line.text for line in list(reader.lines(job_id))[-7:]
    ]
    assert len(reader.tail(job_id, 10_000)) == len(list(reader.lines(job_id)))


def test_a_log_of_several_pages_is_read_whole(
    cloud: Cloud, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "PAGE", 7)
    job_id = printed(cloud, "seq 1 50")
    assert texts(logs.connect(PROJECT).lines(job_id)) == [str(n) for n in range(1, 51)]


def test_following_yields_each_line_once_and_ends_after_the_job(cloud: Cloud, address: str) -> None:
    go = cloud.home.root / "go"
    script = f"echo first; while [ ! -e {go} ]; do sleep 0.05; done; echo second"
    name = cloud.submit(command_job("sh", "-c", script)).name
    job_id = name.rpartition("/")[2]

    def ended() -> bool:
        record = cloud.jobs.get(job_id)
        return record is None or record.state.terminal

    seen: list[str] = []
    reader = logs.connect(PROJECT)
    for line in reader.follow(job_id, None, ended=ended, pause=lambda: None):
        seen.append(line.text)
        if line.text == "first":
            go.touch()
    assert texts_of(seen) == ["first", "second"]
    assert len(seen) == len(list(reader.lines(job_id)))


def texts_of(seen: list[str]) -> list[str]:
    return [text for text in seen if not text.startswith("[local ")]


def test_one_replica_and_another_job_are_told_apart(cloud: Cloud, address: str) -> None:
    job_id, _ = printed(cloud, "echo mine"), printed(cloud, "echo other")
    reader = logs.connect(PROJECT)
    assert texts(reader.lines(job_id, "workerpool0-0")) == ["mine"]
    assert list(reader.lines(job_id, "workerpool1-0")) == []
    assert list(reader.lines("1")) == []


def test_a_line_that_is_still_being_written_waits_for_its_end(cloud: Cloud, address: str) -> None:
    name = cloud.submit(command_job("sh", "-c", "printf half; sleep 600")).name
    job_id = name.rpartition("/")[2]
    log = cloud.home.jobs / job_id / "logs" / "workerpool0-0.log"
    wait_until(lambda: log.exists() and log.read_bytes().endswith(b"half"))
    assert texts(logs.connect(PROJECT).lines(job_id)) == []
    cloud.client.cancel_custom_job(name=name)


def test_the_api_must_be_on(cloud: Cloud, address: str) -> None:
    cloud.store.delete(SERVICE, f"{PROJECT}/logging.googleapis.com")
    with pytest.raises(OperatorError, match=r"Cloud Logging did not answer .*PERMISSION_DENIED"):
        list(logs.connect(PROJECT).lines("1"))


def test_a_filter_it_does_not_know_is_refused(cloud: Cloud, address: str) -> None:
    with pytest.raises(OperatorError, match=r"INVALID_ARGUMENT.*Unparseable filter"):
        list(logs.connect(PROJECT).lines('1" OR severity="ERROR'))


def test_the_log_of_a_tuning_job_is_that_of_its_trials_each_with_its_label(
    cloud: Cloud, address: str
) -> None:
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import (
        LoggingServiceV2GrpcTransport,
    )

    done = studies.run(cloud, studies.tuning(trials=2))
    tuning_id = done.name.rpartition("/")[2]
    starts = [line.text for line in logs.connect(PROJECT).lines(tuning_id) if "trial " in line.text]
    assert "trial 1 of tuned: --lr" in starts[0]
    assert "optuna's TPE sampler, which is not Google's algorithm" in starts[0]
    with grpc.insecure_channel(address) as channel:
        client = LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel))
        text = f'resource.type="ml_job" resource.labels.job_id="{tuning_id}"'
        request = {"resource_names": [f"projects/{PROJECT}"], "filter": text}
        found = list(client.list_log_entries(request))
    assert {entry.labels["ml.googleapis.com/trial_id"] for entry in found} == {"1", "2"}
    assert {entry.resource.labels["job_id"] for entry in found} == {tuning_id}
