"""Batch in the test process: real gRPC and REST, real storage, real processes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import batch_v1
from google.cloud.batch_v1.services.batch_service.transports import (
    BatchServiceGrpcTransport,
    BatchServiceRestTransport,
)

from localgcp.apis.server import serve
from localgcp.batch.records import BatchTask
from localgcp.batch.service import Batch
from localgcp.containers.host import ContainerHost
from localgcp.faults.calls import CallFaults
from localgcp.faults.table import FaultTable
from localgcp.inventory.store import SERVICE
from localgcp.runner.programs import CloudHost
from localgcp.vertex.log_entries import LogService
from localgcp.vertex.service import JobService
from tests.unit.localcloud.conftest import PARENT, PROJECT, TRAINER, Cloud, wait_until

State = batch_v1.JobStatus.State
ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELLED)


def python(code: str, **more: Any) -> dict[str, Any]:
    """A runnable: Python's code in place of an image."""
    container = {"image_uri": "python:3.11", "entrypoint": sys.executable, "commands": ["-c", code]}
    return {"container": container, **more}


def job(*runnables: dict[str, Any], group: Any = None, policy: Any = None, **spec: Any) -> Any:
    """A job of these runnables, which runs as the trainer."""
    return {
        "task_groups": [{"task_spec": {"runnables": [*runnables], **spec}, **(group or {})}],
        "allocation_policy": {
            "service_account": {"email": TRAINER},
            "instances": [{"policy": {"machine_type": "n1-standard-4", **(policy or {})}}],
        },
        "logs_policy": {"destination": "CLOUD_LOGGING"},
        "labels": {"team": "red"},
    }


@dataclass
class Jobs:
    """A local cloud with Batch, everything granted, and the official client."""

    cloud: Cloud
    batch: Batch
    client: batch_v1.BatchServiceClient
    address: str

    def rest(self) -> batch_v1.BatchServiceClient:
        """The client over REST."""
        transport = BatchServiceRestTransport(
            credentials=AnonymousCredentials(), host=self.address, url_scheme="http"
        )
        return batch_v1.BatchServiceClient(transport=transport)

    def create(self, what: Any, job_id: str = "") -> batch_v1.Job:
        return self.client.create_job({"parent": PARENT, "job": what, "job_id": job_id})

    def run(self, what: Any, job_id: str = "") -> batch_v1.Job:
        """Create a job and wait for its end."""
        return self.ended(self.create(what, job_id).name)

    def ended(self, name: str, seconds: float = 60) -> batch_v1.Job:
        wait_until(lambda: self.client.get_job(name=name).status.state in ENDED, seconds)
        return self.client.get_job(name=name)

    def reaches(self, name: str, state: State) -> batch_v1.Job:
        wait_until(lambda: self.client.get_job(name=name).status.state is state)
        return self.client.get_job(name=name)

    def tasks(self, name: str) -> list[BatchTask]:
        return self.batch.service.jobs.tasks(self.client.get_job(name=name).uid)

    def codes(self, name: str, task: int = 0) -> list[int]:
        """Exit codes of a task's events, in order."""
        events = self.tasks(name)[task].events
        return [e["taskExecution"]["exitCode"] for e in events if "taskExecution" in e]

    def log(self, made: batch_v1.Job, name: str = "task-0") -> str:
        return (self.cloud.home.batch / made.uid / "logs" / f"{name}.log").read_text()

    def advance(self, **time: float) -> None:
        self.batch.service.jobs.ahead += timedelta(**time)


@pytest.fixture
def make_jobs(make_cloud: Callable[..., Cloud]) -> Iterator[Callable[..., Jobs]]:
    """Makes Batch over the files of one home; each further one is the next server."""
    undo: list[Callable[[], object]] = []

    def make(*, start: bool = True) -> Jobs:
        cloud = make_cloud(storage=True)
        assert cloud.storage is not None
        for api in ("batch", "compute", "logging", "storage", "secretmanager"):
            cloud.store.put(SERVICE, f"{PROJECT}/{api}.googleapis.com", PROJECT, {}, {})
        for role in ("batch.agentReporter", "logging.logWriter"):
            cloud.grant(f"projects/{PROJECT}", f"roles/{role}")
        faults = FaultTable(cloud.home.faults)
        address = f"127.0.0.1:{cloud.port}"
        containers, url = ContainerHost(cloud.home, 0), f"http://{address}/"
        machine = CloudHost(cloud.home, cloud.store, containers, cloud.storage.url, url)
        batch = Batch(machine, faults)
        service = JobService(cloud.store, cloud.jobs, cloud.scheduler)
        logs = LogService(cloud.home, cloud.store, cloud.jobs, batch.entries())
        hooks = [CallFaults(faults, cloud.jobs, threading.Event())]
        server = serve([service, batch.service, logs], 0, hooks)
        if start:
            batch.scheduler.start()
        address = f"127.0.0.1:{server.port}"
        channel = grpc.insecure_channel(address)
        client = batch_v1.BatchServiceClient(transport=BatchServiceGrpcTransport(channel=channel))
        undo.extend([batch.scheduler.stop if start else lambda: None,
                     lambda: server.stop(None).wait(), channel.close])  # fmt: skip
        return Jobs(cloud, batch, client, address)

    yield make
    for step in reversed(undo):
        step()


@pytest.fixture
def jobs(make_jobs: Callable[..., Jobs]) -> Jobs:
    return make_jobs()
