import itertools

import pytest

from infra.customjob import submission
from infra.customjob.submission import (
    InDoubt,
    Intent,
    JobRecord,
    NotSubmitted,
    OperatorError,
    Patience,
    Refused,
)

DIGEST = "d" * 64
INTENT = Intent("projects/p/locations/r", "titanic", 3, "id1", "{}", DIGEST, {})


class FakeService:
    """Jobs in memory. create raises ``answer``; ``lands`` says whether the job came to be."""

    def __init__(self, *jobs, answer=None, lands=True, visible_after=0):
        self.jobs = {job.name: job for job in jobs}
        self.answer, self.lands, self.visible_after = answer, lands, visible_after
        self.sent, self.looked, self.cancelled, self.deleted = 0, 0, [], []
        self.cancels_in = 0

    def create(self, parent, body, labels):
        self.sent += 1
        if self.lands:
            job = record(f"{parent}/customJobs/{self.sent}", "PENDING", created=100 + self.sent)
            self.jobs[job.name] = job
        if self.answer:
            raise self.answer
        return job

    def get(self, name):
        if self.cancelled and self.cancels_in > 0:
            self.cancels_in -= 1
        elif name in self.cancelled and name in self.jobs:
            self.jobs[name] = record(name, "CANCELLED")
        return self.jobs.get(name)

    def find(self, parent, request_id):
        self.looked += 1
        hidden = self.sent and self.looked <= self.visible_after + 1
        return [] if hidden else list(self.jobs.values())

    def cancel(self, name):
        self.cancelled.append(name)

    def delete(self, name):
        self.deleted.append(name)


def record(name, state, *, created=1, digest=DIGEST[:20], error=""):
    return JobRecord(name, f"JOB_STATE_{state}", created, digest, error)


def submit(service, **patience):
    slept = []
    result = submission.submit(service, INTENT, Patience(**patience), slept.append)
    return result


def test_a_new_request_is_sent_exactly_once():
    service = FakeService()
    job, adopted = submit(service)
    assert (service.sent, adopted, job.state) == (1, False, "JOB_STATE_PENDING")


@pytest.mark.parametrize(
    "state", ["QUEUED", "PENDING", "RUNNING", "PAUSED", "UPDATING", "SUCCEEDED"]
)
def test_a_live_or_succeeded_job_is_adopted_and_nothing_is_sent(state):
    service = FakeService(record("a", state))
    job, adopted = submit(service)
    assert (service.sent, adopted, job.name) == (0, True, "a")


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "CANCELLING", "EXPIRED"])
def test_an_ended_run_is_refused_and_says_how_to_run_again(state):
    service = FakeService(record("a", state, error="exit code 1"))
    with pytest.raises(Refused, match=rf"run 3 of job 'titanic' is {state}.*exit code 1.*run: 4"):
        submit(service)
    assert service.sent == 0


def test_another_request_under_the_same_id_is_refused():
    service = FakeService(record("a", "RUNNING", digest="e" * 20))
    with pytest.raises(Refused, match="is another request"):
        submit(service)


def test_a_certain_no_is_passed_on():
    with pytest.raises(NotSubmitted):
        submit(FakeService(answer=NotSubmitted("no"), lands=False))


def test_a_lost_answer_is_settled_by_looking_and_never_by_sending_again():
    service = FakeService(answer=InDoubt("?"), visible_after=3)
    job, adopted = submit(service, settle=30, interval=3)
    assert (service.sent, adopted, job.name) == (1, True, "projects/p/locations/r/customJobs/1")


def test_a_request_that_never_shows_up_fails_closed():
    service = FakeService(answer=InDoubt("?"), lands=False)
    with pytest.raises(InDoubt, match="Nothing was sent twice"):
        submit(service, settle=30, interval=3)
    assert (service.sent, service.looked) == (1, 12)


def test_of_two_jobs_for_one_request_the_earliest_stays():
    service = FakeService()
    service.jobs["other"] = record("other", "RUNNING", created=5)
    finds = itertools.count()
    real = service.find
    service.find = lambda *a: [] if next(finds) == 0 else real(*a)
    service.looked = 5
    job, _ = submit(service)
    assert job.name == "other"
    assert service.cancelled == ["projects/p/locations/r/customJobs/1"]


def test_withdrawing_cancels_waits_and_keeps_the_record():
    service = FakeService(record("a", "RUNNING"))
    service.cancels_in = 3
    submission.withdraw(service, "a", delete_record=False, sleep=lambda _: None)
    assert (service.cancelled, service.deleted) == (["a"], [])
    assert service.jobs["a"].state == "JOB_STATE_CANCELLED"


def test_withdrawing_an_ended_or_missing_job_is_fine():
    ended = FakeService(record("a", "SUCCEEDED"))
    submission.withdraw(ended, "a", delete_record=True)
    assert (ended.cancelled, ended.deleted) == ([], ["a"])
    submission.withdraw(FakeService(), "gone", delete_record=True)


def test_a_job_that_does_not_end_is_an_error_within_a_bound():
    service = FakeService(record("a", "RUNNING"))
    service.cancels_in = 10_000
    with pytest.raises(OperatorError, match="still RUNNING after 120 s"):
        submission.withdraw(service, "a", delete_record=False, sleep=lambda _: None)
