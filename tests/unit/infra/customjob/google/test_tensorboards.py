"""The number of a stack's TensorBoard takes its place in a request, by the official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from localgcp.apis.server import serve
from localgcp.experiments.records import ExperimentTable
from localgcp.experiments.tensorboards import TensorboardService
from localgcp.home import Home
from localgcp.inventory.store import SERVICE, TENSORBOARD, Store, project_number
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import home
from vertex_training.customjob.google.tensorboards import obstacle, to_send, with_number
from vertex_training.customjob.protocol.ports import SubmissionRequest
from vertex_training.errors import NotSubmittedError

__all__ = ["home"]
PROJECT = "local-training"
PARENT = f"projects/{PROJECT}/locations/us-central1"
HERE = f"projects/{project_number(PROJECT)}/locations/us-central1/tensorboards"


class _NoScheduler:
    def submit(self, job_id: str) -> None: ...
    def cancel(self, job_id: str) -> None: ...


@pytest.fixture
def store(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    made = Store(home.database)
    made.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
    jobs = JobService(made, JobTable(home.database), _NoScheduler())
    server = serve([TensorboardService(jobs, ExperimentTable(home.database))], 0)
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    yield made
    server.stop(None).wait()


def add(store: Store, number: str, stack: str) -> None:
    time = "2026-11-24T00:00:00Z"
    outputs = {"displayName": "x", "labels": {"stack": stack}, "createTime": time}
    store.put(TENSORBOARD, f"{HERE}/{number}", PROJECT, {}, outputs)


def test_none_and_two_are_refused_by_name(store: Store) -> None:
    body = json.dumps({"jobSpec": {"tensorboard": f"{HERE}/0"}})
    with pytest.raises(NotSubmittedError, match=r"has the label stack=dev; `pulumi up` makes it"):
        with_number(body, PARENT, "dev", "")
    add(store, "7", "dev")
    add(store, "8", "dev")
    with pytest.raises(NotSubmittedError, match=rf"there are 2 .*{HERE}/7, {HERE}/8"):
        with_number(body, PARENT, "dev", "")
    store.delete(SERVICE, f"{PROJECT}/aiplatform.googleapis.com")
    with pytest.raises(NotSubmittedError, match="is not found: Vertex AI did not answer"):
        with_number(body, PARENT, "dev", "")


def test_an_obstacle_is_reported_before_a_request_is_sent(store: Store) -> None:
    body = json.dumps({"jobSpec": {"tensorboard": f"{HERE}/0"}})
    one = SubmissionRequest(PARENT, "dev", "train", 1, "id", body, "digest", {})
    assert obstacle(one, "") == (
        f"the TensorBoard of stack dev: none in {PARENT} has the label stack=dev; `pulumi up` "
        "makes it"
    )
    add(store, "7", "dev")
    assert obstacle(one, "") == ""
    sent = json.dumps({"jobSpec": {"tensorboard": f"{HERE}/7"}})
    assert to_send(one, "") == replace(one, body=sent)
