"""Each fault of the job service, as the official client and this project's own meet it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from google.api_core import exceptions

from localgcp.faults.model import GRPC_CODES
from tests.unit.localcloud.conftest import PARENT, command_job
from tests.unit.localcloud.faults.conftest import Faulty, code_of
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
def test_a_reset_closes_the_real_connection(faulty: Faulty, when: str, made: int) -> None:
    faulty.add("reset", when=when)
    with pytest.raises(exceptions.GoogleAPICallError) as caught:
        faulty.cloud.submit(command_job("true"))
    assert code_of(caught.value) is grpc.StatusCode.UNAVAILABLE
    assert "fault `reset`" not in str(caught.value)  # no answer of the server's
    assert count(faulty) == made


def test_a_truncated_answer_is_in_doubt_and_the_job_exists(faulty: Faulty) -> None:
    faulty.add("truncate", method="CreateCustomJob")
    with pytest.raises(InDoubtError):
        submit(faulty)
    assert count(faulty) == 1


def test_a_held_call_whose_fault_is_cleared_never_has_an_effect(faulty: Faulty) -> None:
    held = faulty.add("hold", method="CreateCustomJob")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(submit, faulty)
        faulty.table.wait_held(held, 60)
        faulty.table.clear(held)
        assert isinstance(answer.exception(60), InDoubtError)
    assert count(faulty) == 0
