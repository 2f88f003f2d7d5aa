"""Which service has a job, and where the console shows it."""

from __future__ import annotations

from typing import Any

import pytest

from vertex_training.customjob.google import backends, batch_service, console, job_service
from vertex_training.customjob.google.batch_service import BatchJobs
from vertex_training.customjob.kinds import (
    BATCH_JOB,
    CUSTOM_JOB,
    TUNING_JOB,
    JobKind,
)
from vertex_training.errors import OperatorError

CONSOLE = "https://console.cloud.google.com"


@pytest.mark.parametrize(
    ("project", "kind", "job", "logs"),
    [
        ("acme-ml", CUSTOM_JOB,
         f"{CONSOLE}/agent-platform/locations/us-central1/training/7?project=acme-ml",
         f"{CONSOLE}/logs/query;query=resource.type%3D%22ml_job%22%20resource.labels.job_id%3D%227"
         "%22?project=acme-ml"),
        ("acme-ml", BATCH_JOB,
         f"{CONSOLE}/batch/jobsDetail/regions/us-central1/jobs/7/details?project=acme-ml",
         f"{CONSOLE}/logs/query;query=resource.type%3D%22batch.googleapis.com%2FJob%22%20"
         "labels.job_uid%3A%227%22?project=acme-ml"),
        ("local-x", CUSTOM_JOB, "vt local status", "vt local logs 7"),
        ("local-x", TUNING_JOB, "vt jobs show 7", "vt jobs logs 7"),
        ("local-x", BATCH_JOB, "vt jobs show 7", "vt jobs logs 7"),
    ],
)  # fmt: skip
def test_a_job_has_urls_or_commands(project: str, kind: JobKind, job: str, logs: str) -> None:
    assert console.of_job(project, "us-central1", "7", kind) == (job, logs)
    if kind is CUSTOM_JOB:
        assert console.of_job(project, "us-central1", "7") == (job, logs)


PARENT = "projects/acme-ml/locations/us-central1"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each service was asked: its kind or its network, the method, and its arguments."""
    found: list[Any] = []

    class Service:
        def __init__(self, what: Any) -> None:
            self.what = what

        def __getattr__(self, method: str) -> Any:
            return lambda *arguments: found.append((self.what, method, *arguments))

    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(job_service, "connect", lambda *place: Service(place))
    monkeypatch.setattr(batch_service, "shared_client", lambda *place: place)
    monkeypatch.setattr(backends, "BatchJobs", lambda *given: Service(given))
    return found


TOLD = ({"pubsubTopic": "t"},)
VERTEX = ("acme-ml", "us-central1", CUSTOM_JOB, "me@x")
TUNING = ("acme-ml", "us-central1", TUNING_JOB, "me@x")
BATCH = (("acme-ml", "us-central1", "me@x", None), "subnet", TOLD)


@pytest.mark.parametrize(
    ("kind", "method", "arguments", "service"),
    [
        (CUSTOM_JOB, "create", (PARENT, "{}", {}), VERTEX),
        (BATCH_JOB, "create", (PARENT, "{}", {}), BATCH),
        (TUNING_JOB, "create", (PARENT, "{}", {}), TUNING),
        *(
            (kind, method, (f"{PARENT}/{collection}/1",), service)
            for method in ("get", "log_ids", "cancel", "delete")
            for kind, collection, service in (
                (CUSTOM_JOB, "customJobs", VERTEX),
                (BATCH_JOB, "customJobs", VERTEX),
                (CUSTOM_JOB, "jobs", BATCH),
                (CUSTOM_JOB, "hyperparameterTuningJobs", TUNING),
                (BATCH_JOB, "others", BATCH),
                (CUSTOM_JOB, "others", VERTEX),
            )
        ),
        (CUSTOM_JOB, "find", (PARENT, "batch-1"), BATCH),
        (BATCH_JOB, "find", (PARENT, "1"), VERTEX),
        (TUNING_JOB, "find", (PARENT, "1"), TUNING),
        (TUNING_JOB, "find", (PARENT, "batch-1"), TUNING),
    ],
)
def test_a_name_or_a_request_tells_its_service(
    kind: JobKind, method: str, arguments: Any, service: Any, asked: list[Any]
) -> None:
    jobs = backends.connect("acme-ml", "us-central1", kind, "me@x", "subnet", TOLD)
    getattr(jobs, method)(*arguments)
    assert asked == [(service, method, *arguments)]


def test_a_local_project_has_no_jobs_outside_of_the_local_cloud(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    with pytest.raises(OperatorError, match="vt local shell"):
        backends.connect("local-x", "us-central1")
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    shared: list[Any] = []
    monkeypatch.setattr(batch_service, "shared_client", lambda *place: shared.append(place))
    jobs = backends.connect("local-x", "us-central1", BATCH_JOB)
    assert isinstance(jobs._of(BATCH_JOB), BatchJobs)
    assert shared == [("local-x", "us-central1", "", "127.0.0.1:1")]


def test_kinds_are_spelled_as_their_apis_have_them() -> None:
    assert (
        JobKind("CustomJob", "jobSpec", "jobs", "customJobs", "custom_job", "vt-", ""),
        JobKind(
            *("HyperparameterTuningJob", "trialJobSpec", "tuning", "hyperparameterTuningJobs"),
            *("hyperparameter_tuning_job", "vt-tuning-", "tuning/"),
        ),
        JobKind("Job", "jobSpec", "jobs", "jobs", "job", "vt-", "", "batch", "batch-"),
    ) == (CUSTOM_JOB, TUNING_JOB, BATCH_JOB)


def test_labels_of_a_tuning_job_have_keys_of_their_own() -> None:
    ours = {"vt-run": "2", "team": "ml"}
    assert CUSTOM_JOB.sent_labels(ours) == BATCH_JOB.sent_labels(ours) == ours
    sent = {"vt-tuning-run": "2", "team": "ml"}
    assert TUNING_JOB.sent_labels(ours) == sent
    assert TUNING_JOB.labels_of({**sent, "vt-stack": "other"}) == ours
    assert CUSTOM_JOB.labels_of(sent) == sent
