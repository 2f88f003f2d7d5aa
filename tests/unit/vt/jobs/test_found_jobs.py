"""Which requests find a stack's jobs in both services, and which job a word stands for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, JobState
from google.cloud.batch_v1.types import Job as BatchJob

from vertex_training.customjob.google.batch_service import BatchJobs
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import service

PLACE = "projects/acme-ml/locations/us-central1"
STACK = "labels.vt-stack=dev AND labels.vt-request-id:*"
PROGRAM = "labels.vt-program=demo_dev AND labels.vt-request-id:*"
#: Labels of tuning jobs have keys of their own.
TUNING_STACK, TUNING_PROGRAM = (each.replace("vt-", "vt-tuning-") for each in (STACK, PROGRAM))


def custom(number: int, name: str = "", state: str = "RUNNING", day: int = 1) -> CustomJob:
    labels = {"vt-job": name, "vt-request-id": "x"} if name else {}
    return CustomJob(
        name=f"{PLACE}/customJobs/{number}", labels=labels, state=JobState[f"JOB_STATE_{state}"],
        create_time=f"2026-11-{day:02}T10:00:00Z",
    )  # fmt: skip


def tuning(number: int, name: str, day: int = 1) -> HyperparameterTuningJob:
    labels = {"vt-tuning-job": name, "vt-tuning-request-id": "x"}
    return HyperparameterTuningJob(
        name=f"{PLACE}/hyperparameterTuningJobs/{number}", labels=labels,
        state=JobState.JOB_STATE_RUNNING, create_time=f"2026-11-{day:02}T10:00:00Z",
    )  # fmt: skip


def batch(id_: str, name: str = "", state: str = "RUNNING", day: int = 1) -> BatchJob:
    labels = {"vt-job": name, "vt-request-id": "batch-x"} if name else {}
    return BatchJob(
        name=f"{PLACE}/jobs/{id_}", labels=labels, status={"state": state},
        create_time=f"2026-11-{day:02}T10:00:00Z",
    )  # fmt: skip


class Vertex:
    """The job service: what it lists by filter, and what it was asked for."""

    def __init__(self) -> None:
        self.listed: dict[str, list[Any]] = {}
        self.jobs: dict[str, Any] = {}
        self.asked: list[Any] = []

    def _list(self, request: dict[str, str], **_: Any) -> list[Any]:
        assert request["parent"] == PLACE
        self.asked.append(request["filter"])
        found = self.listed.get(request["filter"], [])
        if isinstance(found, Exception):
            raise found
        return found

    def list_custom_jobs(self, **given: Any) -> list[Any]:
        return [each for each in self._list(**given) if isinstance(each, CustomJob)]

    def list_hyperparameter_tuning_jobs(self, **given: Any) -> list[Any]:
        return [each for each in self._list(**given) if not isinstance(each, CustomJob)]

    def _get(self, what: str, name: str) -> Any:
        self.asked.append((what, name))
        found = self.jobs.get(name, exceptions.NotFound("none"))
        if isinstance(found, Exception):
            raise found
        return found

    def get_custom_job(self, name: str, **_: Any) -> Any:
        return self._get("get", name)

    def get_hyperparameter_tuning_job(self, name: str, **_: Any) -> Any:
        return self._get("get tuning", name)

    def cancel_custom_job(self, name: str, **_: Any) -> None:
        self._get("cancel", name)

    def cancel_hyperparameter_tuning_job(self, name: str, **_: Any) -> None:
        self._get("cancel tuning", name)


class Batch(BatchJobs):
    """Google Batch, in the same way."""

    def __init__(self) -> None:
        self.listed_by: dict[tuple[str, ...], Any] = {}
        self.jobs: dict[str, BatchJob] = {}
        self.asked: list[Any] = []

    def listed(self, parent: str, terms: list[str]) -> list[BatchJob]:
        self.asked.append((parent, *terms))
        found = self.listed_by.get(tuple(terms), [])
        if isinstance(found, Exception):
            raise found
        return found

    def message(self, name: str) -> BatchJob | None:
        return self.jobs.get(name)

    def cancel(self, name: str) -> None:
        self.asked.append(("cancel", name))

    def log_ids(self, name: str) -> list[str]:
        return [f"uid-of-{name.rpartition('/')[2]}"]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Both services, and the jobs of stack ``dev``."""
    found = SimpleNamespace(vertex=Vertex(), batch=Batch(), made=[])
    monkeypatch.setattr(service, "client", lambda *given: found.made.append(given) or found.vertex)
    monkeypatch.setattr(service, "local_address", lambda project: f"address of {project}")
    api = service.batch_service
    monkeypatch.setattr(api, "shared_client", lambda *given: found.made.append(given) or "shared")
    monkeypatch.setattr(api, "BatchJobs", lambda client: found.batch if client == "shared" else 0)
    ref = StackRef(Path("/srv"), "demo", "dev", "acme-ml", "us-central1")

    def first_key(_: StackRef, key: str, *sections: str) -> str:
        assert sections == ("jobs", "tuning")
        return f"{key}-first"

    monkeypatch.setattr(StackRef, "first_key", first_key)
    found.jobs = service.Jobs(ref)
    return found


def ids(found: list[Any]) -> list[str]:
    return [each.name.rpartition("/")[2] for each in found]


ENDED = (
    'state!="JOB_STATE_CANCELLED" AND state!="JOB_STATE_EXPIRED" AND state!="JOB_STATE_FAILED" AND '
    'state!="JOB_STATE_PARTIALLY_SUCCEEDED" AND state!="JOB_STATE_SUCCEEDED"'
)


@pytest.mark.parametrize(
    ("options", "terms", "left"),
    [
        ({"live_only": True}, f"{ENDED} AND ", ["b-1", "2", "1"]),
        ({"states": ["FAILED"]}, 'state="JOB_STATE_FAILED" AND ', ["b-2"]),
        ({"states": ["RUNNING"]}, 'state="JOB_STATE_RUNNING" AND ', ["b-1", "1"]),
        # the service has no filter for one of several
        ({"states": ["PENDING", "FAILED"]}, "", ["b-2", "2"]),
    ],
)
def test_jobs_are_narrowed_by_their_states(
    cloud: SimpleNamespace, options: dict[str, Any], terms: str, left: list[str]
) -> None:
    cloud.vertex.listed = {f"{terms}{STACK}": [custom(1, "a"), custom(2, "b", "PENDING", day=2)]}
    cloud.batch.listed_by = {
        ('labels.vt-stack="dev"',): [
            batch("b-1", "d", day=3), batch("b-2", "e", "FAILED", day=4),
        ],
    }  # fmt: skip
    assert ids(cloud.jobs.list(**options)) == left
    assert cloud.vertex.asked[0] == f"{terms}{STACK}"


@pytest.mark.parametrize(
    ("id_", "state", "adopted"),
    [
        ("dev-d-7", "RUNNING", True),
        ("dev-d-7-t2", "SUCCEEDED", True),
        ("dev-d-7", "FAILED", False),
        ("dev-d-17", "RUNNING", False),  # another's, with the label of this request
    ],
)
def test_a_request_on_batch_is_asked_for_there(
    cloud: SimpleNamespace, id_: str, state: str, adopted: bool
) -> None:
    cloud.batch.listed_by = {('labels.vt-request-id="batch-7"',): [batch(id_, "d", state)]}
    assert cloud.jobs.is_adopted("batch-7", BATCH_JOB) is adopted
    assert cloud.vertex.asked == []


def test_jobs_on_batch_that_cannot_be_listed_are_told_and_the_others_shown(
    cloud: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.vertex.listed = {STACK: [custom(1, "a")]}
    cloud.batch.listed_by = {
        ('labels.vt-stack="dev"',): [batch("b-1", "d")],
        ('labels.vt-program="demo_dev"',): OperatorError("403 no right"),
    }
    assert ids(cloud.jobs.list()) == ["1"]
    assert capsys.readouterr().err == "jobs on Batch are not in this: 403 no right\n"


def filled(cloud: SimpleNamespace) -> None:
    """Two runs of ``train-first``, a tuning job and a job on Batch."""
    whole = tuning(4, "search-first", day=9)
    cloud.vertex.listed = {
        STACK: [custom(1, "train-first"), custom(2, "train-first", day=2)],
        TUNING_STACK: [tuning(4, "search-first")],
    }
    cloud.vertex.jobs = {
        f"{PLACE}/customJobs/7": custom(7),
        f"{PLACE}/hyperparameterTuningJobs/8": tuning(8, "x"),
        f"{PLACE}/hyperparameterTuningJobs/4": whole,
    }
    cloud.batch.jobs = {f"{PLACE}/jobs/own": batch("own", "x")}
    cloud.batch.listed_by = {('labels.vt-stack="dev"',): [batch("of-batch", "run-first")]}


def test_a_job_on_batch_is_read_as_batch_has_it(cloud: SimpleNamespace) -> None:
    filled(cloud)
    assert cloud.jobs.on_batch(f"{PLACE}/jobs/own") is cloud.batch.jobs[f"{PLACE}/jobs/own"]
    with pytest.raises(CommandError) as failed:
        cloud.jobs.on_batch(f"{PLACE}/jobs/none")
    assert str(failed.value) == f"there is no job {PLACE}/jobs/none."


@pytest.mark.parametrize(
    "error", [None, exceptions.NotFound("x"), exceptions.FailedPrecondition("x")]
)
def test_each_kind_of_job_is_cancelled_by_its_service_and_an_ended_one_is_left(
    cloud: SimpleNamespace, error: Exception | None
) -> None:
    of_batch = service.batch_service.as_custom_job(batch("b-1", "d"))
    for job in (custom(1), tuning(4, "t"), of_batch):
        cloud.vertex.jobs[job.name] = error or job
        cloud.jobs.cancel(job)
    assert cloud.vertex.asked == [
        ("cancel", f"{PLACE}/customJobs/1"),
        ("cancel tuning", f"{PLACE}/hyperparameterTuningJobs/4"),
    ]
    assert cloud.batch.asked == [("cancel", f"{PLACE}/jobs/b-1")]
