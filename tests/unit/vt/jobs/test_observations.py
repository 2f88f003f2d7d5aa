"""What one look tells of a job: state, time, cost, its last words and its checkpoints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.plan import CheckpointObservation, JobObservation, Observations
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import observe
from vertex_training_cli.jobs.objects import ObjectListing

NAME = "projects/1/locations/us-central1/customJobs/7"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def custom(state: str, hours: float | None = 3, ended: float | None = None, **labels: str) -> Any:
    """A job that began, and ended, so many hours ago."""
    given = {"vt-request-id": "x", "vt-job": "fit", **labels}
    job = CustomJob(name=NAME, state=JobState[f"JOB_STATE_{state}"], labels=given)
    if hours is not None:
        job.start_time = NOW - timedelta(hours=hours)
    if ended is not None:
        job.end_time = NOW - timedelta(hours=ended)
    return job


class Service:
    """The jobs and logs of a stack."""

    ref = SimpleNamespace(region="us-central1")

    def __init__(self, job: Any, lines: Any = ("first", "step 100"), current: Any = None) -> None:
        self.job, self.lines, self.current = job, lines, current
        self.asked: list[Any] = []

    def get_if_exists(self, name: str) -> Any:
        assert name == NAME
        return self.job

    def find(self, title: str) -> Any:
        self.asked.append(title)
        return self.current

    def log_id(self, job: Any) -> str:
        return f"log of {job.name[-1]}"

    def tail(self, log: str, count: int) -> Any:
        self.asked.append((log, count))
        if isinstance(self.lines, Exception):
            raise self.lines
        return [SimpleNamespace(text=each) for each in self.lines]


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """$2 an hour for every job, at noon of one day; what was asked for."""
    found = SimpleNamespace(hourly=2.0, asked=[])

    def of_job(message: dict[str, Any], region: str, backend: str) -> Any:
        found.asked.append((message["name"], region, backend))
        return SimpleNamespace(hourly=found.hourly)

    monkeypatch.setattr(observe.costs, "of_job", of_job)
    monkeypatch.setattr(observe, "datetime", SimpleNamespace(now=lambda _: NOW))
    return found


def look_at(service: Any, listing: ObjectListing | None = None) -> JobObservation:
    look: Any = SimpleNamespace(newest=lambda _: listing)
    return observe._observation(service, service, look, NAME)


@pytest.mark.parametrize(
    ("job", "listing", "expected"),
    [
        (custom("RUNNING"), None, JobObservation("RUNNING", 10_800.0, 6.0, "step 100")),
        (
            custom("RUNNING"), ObjectListing(2, True, NOW - timedelta(hours=1)),
            JobObservation("RUNNING", 10_800.0, 6.0, "step 100",
                           CheckpointObservation(3600.0, at_most=True)),
        ),
        # clocks may differ
        (custom("SUCCEEDED", 3, 2), ObjectListing(1, False, NOW),
         JobObservation("SUCCEEDED", 3600.0, 2.0)),
        (custom("FAILED", None), None, JobObservation("FAILED", 0.0, 0.0)),
        (None, None, JobObservation("RECORD_DELETED")),
    ],
)  # fmt: skip
def test_what_is_told_of_a_job(
    prices: SimpleNamespace, job: Any, listing: Any, expected: JobObservation
) -> None:
    assert look_at(Service(job), listing) == expected
    assert prices.asked == ([(NAME, "us-central1", "vertex")] if job else [])


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((), ""),
        (OperatorError("no right"), ""),
        (("x" * 161,), "x" * 160),
        (("one", "two"), "two"),
    ],
)
def test_the_last_words_of_a_job_are_the_end_of_its_log(
    prices: SimpleNamespace, lines: Any, told: str
) -> None:
    service = Service(custom("RUNNING"), lines)
    assert look_at(service).last_line == told
    assert service.asked == [("log of 7", 1)]


def test_of_a_tuning_job_it_is_told_how_far_its_trials_are(prices: SimpleNamespace) -> None:
    job = HyperparameterTuningJob(
        name=NAME.replace("customJobs", "hyperparameterTuningJobs"), max_trial_count=4,
        parallel_trial_count=2, state=JobState.JOB_STATE_RUNNING,
        start_time=NOW - timedelta(hours=1),
    )  # fmt: skip
    told = look_at(Service(job)).last_line
    assert told == "trials: 0 of 4, 2 at once"


@pytest.mark.parametrize(
    ("state", "labels", "asked", "told"),
    [
        ("FAILED", {"vt-rung": "1"}, ["fit"], "PENDING"),
        ("FAILED", {}, [], "FAILED"),
        ("RUNNING", {"vt-rung": "1"}, [("log of 7", 1)], "RUNNING"),
    ],
)
def test_a_job_of_a_ladder_that_ended_may_be_on_a_later_rung(
    prices: SimpleNamespace, state: str, labels: dict[str, str], asked: list[Any], told: str
) -> None:
    service = Service(custom(state, **labels), current=custom("PENDING", None))
    found = look_at(service)
    assert (found.state, service.asked[: len(asked)]) == (told, asked)
    gone = Service(custom("FAILED", **{"vt-rung": "1"}))
    assert look_at(gone) == JobObservation("RECORD_DELETED")


@pytest.mark.parametrize("error", [OperatorError("no credentials"), CommandError("no credentials")])
def test_a_cloud_that_cannot_be_reached_is_one_reason_for_all(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(_: Any) -> None:
        raise error

    monkeypatch.setattr(StackRef, "connect_clients", refuse)
    ref = StackRef(Path("/srv"), "p", "dev", "acme-ml", "us-central1")
    names = [f"{NAME}{number}" for number in range(20)]
    assert observe.observe_by_name(ref, names) == Observations({}, "no credentials")
    assert observe.observe_by_name(ref, []) == Observations()
