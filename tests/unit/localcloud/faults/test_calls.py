"""Each fault of the job service, as the official client and this project's own meet it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from google.api_core import exceptions

from localgcp.apis.server import Call
from localgcp.faults.calls import CallFaults
from localgcp.faults.model import GRPC_CODES
from localgcp.faults.table import FaultTable
from localgcp.vertex.records import JobTable
from tests.unit.localcloud.conftest import PARENT, command_job, wait_until
from tests.unit.localcloud.faults.conftest import ARRIVES, Faulty, code_of
from vertex_training.customjob.google.job_service import PROVES_NOT_CREATED
from vertex_training.errors import InDoubtError, NotSubmittedError

BODY = (
    '{"displayName": "a job", "jobSpec": {"workerPoolSpecs": [{"replicaCount": "1",'
    ' "machineSpec": {"machineType": "n1-standard-4"},'
    ' "containerSpec": {"imageUri": "python:3.11", "command": ["true"]}}]}}'
)
LABELS = {"vt-request-id": "abc", "vt-job": "titanic"}


def submit(faulty: Faulty, labels: dict[str, str] = LABELS) -> str:
    return faulty.client.create(PARENT, BODY, labels).name


def count(faulty: Faulty) -> int:
    return len(faulty.cloud.jobs.list())


@pytest.mark.parametrize("code", sorted(GRPC_CODES))
@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_each_code_before_and_after_the_job_is_made(
    faulty: Faulty, code: str, when: str, made: int
) -> None:
    faulty.add("error", code=code, when=when, method="CreateCustomJob")
    with pytest.raises(
        NotSubmittedError if code in PROVES_NOT_CREATED else InDoubtError, match=code
    ):
        submit(faulty)
    assert count(faulty) == made
    assert submit(faulty)  # once only


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_a_dropped_call_ends_with_the_callers_own_deadline(
    faulty: Faulty, when: str, made: int
) -> None:
    faulty.add("drop", when=when)
    assert count(faulty) == 0  # by now it is connected
    with pytest.raises(exceptions.DeadlineExceeded):
        faulty.cloud.client.create_custom_job(
            parent=PARENT, custom_job=command_job("true"), timeout=ARRIVES
        )
    wait_until(lambda: count(faulty) == made)


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_a_reset_closes_the_real_connection(faulty: Faulty, when: str, made: int) -> None:
    faulty.add("reset", when=when)
    with pytest.raises(exceptions.GoogleAPICallError) as caught:
        faulty.cloud.submit(command_job("true"))
    assert code_of(caught.value) is grpc.StatusCode.UNAVAILABLE
    assert "the connection is closed" not in str(caught.value)  # no answer of the server's
    assert count(faulty) == made


def test_a_truncated_answer_is_in_doubt_and_the_job_exists(faulty: Faulty) -> None:
    faulty.add("truncate", method="CreateCustomJob")
    with pytest.raises(InDoubtError):
        submit(faulty)
    assert count(faulty) == 1


def test_a_delay_takes_its_time_and_then_all_is_well(faulty: Faulty) -> None:
    faulty.add("delay", seconds=0.3)
    began = time.monotonic()
    submit(faulty)
    assert time.monotonic() - began >= 0.3
    assert count(faulty) == 1


@pytest.mark.parametrize(("when", "made"), [("before", 0), ("after", 1)])
def test_a_call_is_held_until_it_is_released(faulty: Faulty, when: str, made: int) -> None:
    held = faulty.add("hold", when=when, method="CreateCustomJob")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(submit, faulty)
        assert faulty.table.wait_held(held, 60) == "CreateCustomJob a job"
        assert (count(faulty), answer.done()) == (made, False)
        faulty.table.release(held)
        assert answer.result(60)
    assert count(faulty) == 1


def test_a_held_call_whose_fault_is_cleared_never_has_an_effect(faulty: Faulty) -> None:
    held = faulty.add("hold", method="CreateCustomJob")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(submit, faulty)
        faulty.table.wait_held(held, 60)
        faulty.table.clear(held)
        assert isinstance(answer.exception(60), InDoubtError)
    assert count(faulty) == 0


def test_a_held_request_arrives_late_even_when_its_sender_is_gone(faulty: Faulty) -> None:
    held = faulty.add("hold", method="CreateCustomJob")
    assert count(faulty) == 0  # by now it is connected
    with pytest.raises(exceptions.DeadlineExceeded):
        faulty.cloud.client.create_custom_job(
            parent=PARENT, custom_job=command_job("true"), timeout=ARRIVES
        )
    faulty.table.wait_held(held, 60)
    faulty.table.release(held)
    wait_until(lambda: count(faulty) == 1)


def test_a_stale_list_lacks_young_jobs_and_nothing_else(faulty: Faulty) -> None:
    name = submit(faulty)
    fault = faulty.add("stale", seconds=3600)
    assert faulty.client.find(PARENT, "abc") == []
    assert faulty.client.get(name) is not None
    faulty.table.clear(fault)
    faulty.add("stale", seconds=0)
    assert [job.name for job in faulty.client.find(PARENT, "abc")] == [name]


def test_short_pages_are_read_to_the_end(faulty: Faulty) -> None:
    names = {submit(faulty) for _ in range(3)}
    fault = faulty.add("short-pages")
    assert {job.name for job in faulty.client.find(PARENT, "abc")} == names
    assert faulty.fired(fault) == 4


def test_a_lost_page_hides_all_but_the_newest_job(faulty: Faulty) -> None:
    names = [submit(faulty) for _ in range(3)]
    faulty.add("lost-page")
    assert [job.name for job in faulty.client.find(PARENT, "abc")] == names[-1:]


def test_a_lost_record_is_nowhere_and_comes_back_when_cleared(faulty: Faulty) -> None:
    lost, other = submit(faulty), submit(faulty, {"vt-request-id": "abc", "vt-job": "other"})
    fault = faulty.add("lost-record", match=lost.rpartition("/")[2])
    assert faulty.client.get(lost) is None
    assert [job.name for job in faulty.client.find(PARENT, "abc")] == [other]
    assert faulty.client.get(other) is not None
    faulty.table.clear(fault)
    assert faulty.client.get(lost) is not None


@pytest.mark.parametrize("match", ["abc", "titanic"])
def test_a_fault_finds_its_job_by_label_in_every_call(faulty: Faulty, match: str) -> None:
    submit(faulty, {"vt-request-id": "xyz", "vt-job": "other"})
    for method in ("CreateCustomJob", "GetCustomJob", "CancelCustomJob"):
        faulty.add("error", code="INVALID_ARGUMENT", method=method, match=match)
    other = faulty.cloud.jobs.list()[0].name
    faulty.client.get(other)
    submit(faulty, {"vt-request-id": "xyz", "vt-job": "other"})
    with pytest.raises(NotSubmittedError):
        submit(faulty)
    name = submit(faulty)
    for call in (faulty.cloud.client.get_custom_job, faulty.cloud.client.cancel_custom_job):
        with pytest.raises(exceptions.InvalidArgument):
            call(name=name)


def test_several_faults_add_up(faulty: Faulty) -> None:
    delay = faulty.add("delay", seconds=0.01)
    error = faulty.add("error", code="ABORTED", when="after")
    with pytest.raises(InDoubtError, match="ABORTED"):
        submit(faulty)
    assert (faulty.fired(delay), faulty.fired(error), count(faulty)) == (1, 1, 1)


def test_without_a_fault_a_call_goes_straight_through(tmp_path: Path) -> None:
    table = FaultTable(tmp_path / "faults.sqlite")
    hook = CallFaults(table, JobTable(tmp_path / "cloud.sqlite"), threading.Event())
    # No request and no context: neither is looked at.
    assert hook(Call("CreateCustomJob", None, None), lambda: "answer") == "answer"  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
