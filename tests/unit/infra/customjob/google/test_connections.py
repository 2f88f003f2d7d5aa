"""Which service clients connect to, as whom, and where the console shows a job."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests
from google import auth
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, RefreshError

from localgcp.apis.server import serve
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, TENSORBOARD, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService, TensorboardService
from tests.unit.infra.customjob.fakes import REQUEST
from tests.unit.localcloud.conftest import home
from vertex_training.customjob import kinds
from vertex_training.customjob.google import backends, intent_store, job_service, prerequisites
from vertex_training.customjob.kinds import BATCH_JOB, CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training.snapshots.google import BigQuery

__all__ = ["home"]
CONSOLE = "https://console.cloud.google.com"
IN_A_LOCAL_PROJECT = (
    "project 'local-x' is in the local cloud, and {} is not set. Run the command in `vt local "
    "shell`."
)
AT_GOOGLE = (
    "{} is set, but project 'acme' is not a local project (local-…). Leave `vt local shell` to "
    "use Google Cloud."
)


@pytest.mark.parametrize(
    ("variable", "connect"),
    [
        ("VERTEX_EMULATOR_HOST", lambda project: job_service.client(project, "us-central1")),
        ("VERTEX_EMULATOR_HOST", lambda project: backends.connect(project, "us-central1")),
        ("VERTEX_EMULATOR_HOST", prerequisites.connect),
        ("STORAGE_EMULATOR_HOST", lambda project: intent_store.connect(project, "control")),
    ],
)
def test_local_projects_are_only_in_the_local_cloud_and_others_never(
    monkeypatch: pytest.MonkeyPatch, variable: str, connect: Callable[[str], Any]
) -> None:
    for project, address, text in (
        ("local-x", "", IN_A_LOCAL_PROJECT),
        ("acme", "127.0.0.1:1", AT_GOOGLE),
    ):
        monkeypatch.setenv(variable, address)
        with pytest.raises(OperatorError) as refused:
            connect(project)
        assert str(refused.value) == text.format(variable)


def test_questions_about_a_local_project_go_to_the_local_cloud(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def send(_: Any, request: requests.PreparedRequest, **__: Any) -> None:
        asked.append(request.url or "")
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "send", send)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", "127.0.0.1:1")
    monkeypatch.delenv("ARTIFACT_REGISTRY_EMULATOR_HOST", raising=False)
    monkeypatch.delenv("BIGQUERY_EMULATOR_HOST", raising=False)
    questions, warehouse = prerequisites.connect("local-x"), BigQuery("local-x", "EU")
    with pytest.raises(OperatorError, match="the local cloud has no running image registry"):
        questions.has_image("us-docker.pkg.dev", "p/r/i", "v1")
    with pytest.raises(OperatorError, match="the local cloud has no running BigQuery"):
        warehouse.job("j")
    monkeypatch.setenv("ARTIFACT_REGISTRY_EMULATOR_HOST", "127.0.0.1:2")
    monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", "http://127.0.0.1:3")
    for ask in (
        lambda: questions.has_image("us-docker.pkg.dev", "p/r/i", "v1"),
        lambda: questions.has_permission("projects/local-x", "x.y.z"),
        lambda: warehouse.job("j"),
    ):
        with pytest.raises(OperatorError, match=r".* did not respond: ConnectionError"):
            ask()
    assert asked == [
        "http://127.0.0.1:2/v2/p/r/i/manifests/v1",
        "http://127.0.0.1:1/v3/projects/local-x:testIamPermissions",
        "http://127.0.0.1:3/bigquery/v2/projects/local-x/jobs/j?location=EU",
    ]
    with pytest.raises(OperatorError, match="BIGQUERY_EMULATOR_HOST is set, but 'acme' is"):
        BigQuery("acme", "EU").job("j")


def test_an_operator_who_signs_in_after_a_refusal_can_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise DefaultCredentialsError

    monkeypatch.delenv("VERTEX_EMULATOR_HOST", raising=False)
    prerequisites.session.cache_clear()
    monkeypatch.setattr(auth, "default", refused)
    for connect in (
        lambda: job_service.connect("acme-ml-signed-out", "us-central1"),
        lambda: prerequisites.session(local=False, account=""),
    ):
        with pytest.raises(OperatorError, match="gcloud auth application-default login"):
            connect()
    monkeypatch.setattr(auth, "default", lambda *_, **__: (AnonymousCredentials(), "x"))
    assert job_service.connect("acme-ml-signed-out", "us-central1")
    session: Any = prerequisites.session(local=False, account="")
    assert isinstance(session.credentials, AnonymousCredentials)
    prerequisites.session.cache_clear()


def test_expired_credentials_are_reported() -> None:
    def expired(**_: Any) -> Any:
        raise RefreshError("expired")

    with pytest.raises(NotSubmittedError) as refused:
        job_service.send_once(expired, "the job", {})
    assert str(refused.value) == (
        "credentials for Vertex AI are missing. Nothing was submitted. expired"
    )
    with pytest.raises(OperatorError, match="RefreshError: expired Hint: sign in again"):
        job_service.read(expired)


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
        ("local-x", CUSTOM_JOB, "vt jobs show 7", "vt jobs logs 7"),
        ("local-x", TUNING_JOB, "vt jobs show 7", "vt jobs logs 7"),
        ("local-x", BATCH_JOB, "vt jobs show 7", "vt jobs logs 7"),
    ],
)  # fmt: skip
def test_a_job_has_urls_or_commands(project: str, kind: JobKind, job: str, logs: str) -> None:
    assert kinds.console_urls(project, "us-central1", "7", kind) == (job, logs)


PROJECT = "local-training"
PARENT = f"projects/{PROJECT}/locations/us-central1"
INSTANCES = f"projects/{project_number(PROJECT)}/locations/us-central1/tensorboards"


class _NoScheduler:
    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


@pytest.fixture
def store(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store(home.database)
    made.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    jobs = JobService(made, JobTable(home.database), _NoScheduler())
    server = serve([TensorboardService(jobs)], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    yield made
    server.stop(None).wait()


def add_tensorboard(store: Store, number: str, stack: str) -> None:
    time = "2026-11-24T00:00:00Z"
    outputs = {"displayName": "x", "labels": {"stack": stack}, "createTime": time}
    store.put(TENSORBOARD, f"{INSTANCES}/{number}", PROJECT, {}, outputs)


def test_a_missing_tensorboard_is_reported_before_a_request_is_sent(store: Store) -> None:
    body = json.dumps({"jobSpec": {"tensorboard": f"{INSTANCES}/0"}})
    one = replace(REQUEST, parent=PARENT, body=body)
    assert prerequisites.obstacle(one, "") == (
        f"no TensorBoard in {PARENT} has the label stack=dev. Run `pulumi up` to create the "
        "TensorBoard"
    )
    add_tensorboard(store, "7", "dev")
    assert prerequisites.obstacle(one, "") == ""
    sent = json.dumps({"jobSpec": {"tensorboard": f"{INSTANCES}/7"}})
    assert prerequisites.to_send(one, "") == replace(one, body=sent)
