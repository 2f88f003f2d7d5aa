"""Which jobs of a stack no state has, and what is said of each."""

from __future__ import annotations

from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState

from vertex_training_cli.jobs import deployed

PLACE = "projects/1/locations/r"


def custom(number: int, state: str = "RUNNING", **labels: str) -> CustomJob:
    own = {"vt-request-id": f"r-{number}", "vt-job": f"job-{number}", "vt-run": "2", **labels}
    return CustomJob(
        name=f"{PLACE}/customJobs/{number}", state=JobState[f"JOB_STATE_{state}"], labels=own
    )


SLOT = {"vt-slot": "20261130t050000z", "vt-job": "weekly"}


class Stack:
    """A stack, its job service, and what was asked of both."""

    parent = PLACE

    def __init__(self, *listed: Any, now: Any = None) -> None:
        self.listed = list(listed)
        self.now = now or {job.name: job for job in listed}
        self.asked: list[Any] = []

    def connect_clients(self) -> None:
        self.asked.append("connect")

    def list(self, **given: Any) -> list[Any]:
        self.asked.append(given)
        return self.listed

    def get_if_exists(self, name: str) -> Any:
        self.asked.append(name)
        return self.now.get(name)


def found(
    monkeypatch: pytest.MonkeyPatch, stack: Any, known: set[str], *, with_runs: bool = False
) -> list[str]:
    """The numbers of the orphaned jobs."""
    monkeypatch.setattr(deployed, "Jobs", lambda ref: ref)
    jobs = deployed.find_orphaned_jobs(stack, known, with_runs=with_runs)
    return [job.name.rpartition("/")[2] for job in jobs]


@pytest.mark.parametrize(
    ("known", "orphans"),
    [
        (set(), ["1", "2", "3"]),
        ({f"{PLACE}/schedules/jobs/weekly"}, ["2", "3"]),
        ({f"{PLACE}/schedules/tuning/weekly"}, ["1", "3"]),
        ({f"{PLACE}/customJobs/1"}, ["1", "2", "3"]),  # a slot is its schedule's
        ({"r-3"}, ["1", "2"]),
        ({f"{PLACE}/customJobs/3"}, ["1", "2"]),
    ],
)
def test_a_slot_is_known_by_its_schedule_and_a_rung_by_its_request(
    monkeypatch: pytest.MonkeyPatch, known: set[str], orphans: list[str]
) -> None:
    labels = {f"vt-tuning-{key[3:]}": value for key, value in SLOT.items()}
    tuning = HyperparameterTuningJob(
        name=f"{PLACE}/hyperparameterTuningJobs/2", state=JobState.JOB_STATE_RUNNING,
        labels={"vt-tuning-request-id": "x", **labels},
    )  # fmt: skip
    stack = Stack(custom(1, **SLOT), tuning, custom(3, **{"vt-rung": "2"}))
    assert found(monkeypatch, stack, known) == orphans
