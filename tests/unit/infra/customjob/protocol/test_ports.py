"""Labels, states and titles of jobs; which job is adopted, and why none is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.infra.customjob.fakes import DIGEST, REQUEST, job
from vertex_training.customjob.protocol.ports import JobSnapshot, Timing, slot_of
from vertex_training.customjob.protocol.submission import (
    current_job,
    deleted_job_error,
    earliest,
    job_to_adopt,
)
from vertex_training.customjob.protocol.waiting import PollBackoff
from vertex_training.errors import JobRefusedError


@pytest.mark.parametrize(
    ("request_id", "slot"),
    [
        ("20261130t060000z-00aa", "20261130t060000z"),
        ("20261130t060000z", ""),
        ("x20261130t060000z-00aa", ""),
        ("2026113t060000z-00aa", ""),
        ("00aa11bb22cc33dd44ee", ""),
    ],
)
def test_a_request_of_a_slot_begins_with_its_time(request_id: str, slot: str) -> None:
    assert slot_of(request_id) == slot
    request = replace(REQUEST, request_id=request_id)
    assert request.slot == slot
    assert request.title == ("job 'titanic'" + (f" scheduled for {slot}" if slot else ""))


def test_bounds_of_the_protocol_are_those_that_its_proof_has() -> None:
    assert Timing() == Timing(120.0, 60.0, 35.0, 45.0, 90.0, 5.0)
    assert PollBackoff() == PollBackoff(0.5, 10.0, 300.0)
    assert Timing().lease == 2 * Timing().send_within


def refused(*found: JobSnapshot, **changes: Any) -> str:
    with pytest.raises(JobRefusedError) as error:
        job_to_adopt(found, replace(REQUEST, **changes))
    return str(error.value)


def test_of_jobs_that_go_on_the_oldest_is_adopted() -> None:
    old, new = job("b", "RUNNING", created=1), job("a", "SUCCEEDED", created=2)
    failed, going = job("c", "FAILED", created=0), job("d", "CANCELLING", created=0)
    assert job_to_adopt([new, failed, old, going], REQUEST) is old
    assert job_to_adopt([failed, new, going], REQUEST) is new
    same = job("a", "RUNNING", created=1)
    assert earliest([old, same]) is same
    unlabelled = job("a", "RUNNING", digest="")
    assert job_to_adopt([unlabelled], REQUEST) is unlabelled


def test_a_refusal_to_adopt_has_its_reason_and_a_fix() -> None:
    ended = job("old", "FAILED", created=1, error="exit code 1")
    later = job("new", "CANCELLED", created=2)
    words = job("words", "CANCELLED", created=1, error="The job was cancelled.")
    again = "Nothing was submitted. To submit a new job, set run: 4 of 'titanic' in the stack file."
    assert refused(later, ended) == (
        f"run 3 of job 'titanic' is FAILED (old): exit code 1. {again}"
    )
    assert refused(later) == f"run 3 of job 'titanic' is CANCELLED (new). {again}"
    assert refused(words) == (
        f"run 3 of job 'titanic' is CANCELLED (words): The job was cancelled. {again}"
    )
    other = job("x", "RUNNING", digest="e" * 20)
    assert refused(job("a", "RUNNING"), other) == (
        "x has request id id1 and the digest of another request. To submit a new job, set run: 4 "
        "of 'titanic' in the stack file."
    )
    longer = job("x", "RUNNING", digest=DIGEST[:21])
    assert "the digest of another request" in refused(longer)
    assert str(deleted_job_error("old", REQUEST)) == (
        "the record of run 3 of job 'titanic' (old) was deleted. Nothing was submitted. To submit "
        "a new job, set run: 4 of 'titanic' in the stack file."
    )


def test_a_slot_has_one_job_whatever_became_of_it() -> None:
    slot = replace(REQUEST, request_id="20261130t060000z-00aa")
    failed = job("a", "FAILED", digest="e" * 20)
    assert job_to_adopt([failed, job("b", "RUNNING", created=2)], slot) is failed


class Jobs:
    """Jobs by name, and those that a list shows."""

    def __init__(self, *there: JobSnapshot, listed: str = "") -> None:
        self.there = {each.name: each for each in there}
        self.listed = [job(name, "RUNNING") for name in listed.split()]
        self.asked: list[tuple[str, str]] = []

    def get(self, name: str) -> JobSnapshot | None:
        return self.there.get(name)

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:
        self.asked.append((parent, request_id))
        return self.listed


def current(jobs: Any) -> JobSnapshot | None:
    return current_job("a", "parent", "id1", jobs)


def test_the_job_of_a_state_is_replaced_by_a_later_one_only_if_it_failed() -> None:
    running = job("a", "RUNNING")
    jobs = Jobs(running, job("b", "RUNNING"), listed="a b")
    assert current(jobs) is running
    assert jobs.asked == []
    failed, second = job("a", "FAILED"), job("b", "RUNNING", created=5)
    first = job("c", "SUCCEEDED", created=4)
    jobs = Jobs(failed, second, first, job("d", "CANCELLING", created=1), listed="a b c d gone")
    assert current(jobs) is first
    assert jobs.asked == [("parent", "id1")]
    assert current(Jobs(failed, listed="a")) is failed
    assert current(Jobs(failed, job("b", "FAILED"), listed="a b")) is failed
    assert current(Jobs(listed="")) is None
    assert current(Jobs(second, listed="b")) is second
