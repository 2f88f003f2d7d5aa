"""A local cloud inside the test process: real gRPC, a real storage emulator, real processes."""

from __future__ import annotations

import itertools
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core.future.polling import DEFAULT_POLLING
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports.grpc import JobServiceGrpcTransport

from localgcp.apis.server import Hook, serve
from localgcp.containers.host import ContainerHost
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.store import ACCOUNT as ACCOUNT_TYPE
from localgcp.inventory.store import BUCKET, SERVICE, Binding, Store
from localgcp.reads.secretmanager import SecretService
from localgcp.runner.gcsfuse import storage_client
from localgcp.runner.job import JobHost, LocalScheduler
from localgcp.runner.programs import CloudHost
from localgcp.storage.emulator import StorageEmulator
from localgcp.tuning.service import Tuning, TuningService
from localgcp.vertex.records import JobTable
from localgcp.vertex.service import JobService

PROJECT = "local-training"
PARENT = f"projects/{PROJECT}/locations/us-central1"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
#: For ``result`` of an operation, whose first look would come up to a second late.
OFTEN = DEFAULT_POLLING.with_delay(initial=0.02, maximum=0.1)


def set_grant(store: Store, resource: str, role: str, email: str) -> None:
    """Let a resource's policy have this grant to an account, and no other."""
    bindings = (Binding(role, (f"serviceAccount:{email}",)),)
    store.set_policy(resource, bindings, expected_etag=store.policy(resource).etag)


def wait_until(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """The condition's first true value; fails the test after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.02)
    return value


def wrong_fields(message: str) -> list[tuple[str, str]]:
    """The fields that a refusal of a request lists, each with what is wrong with it."""
    assert message.startswith("List of found errors:\t1.Field: ")
    return re.findall(r"\d+\.Field: (.*?); Message: (.*?)\t", message, re.DOTALL)


def _ports() -> Iterator[int]:
    """Ports that no system gives to outgoing connections, nor a local cloud to itself."""
    lowest, count = 10_000, 10_000
    for number in itertools.count(os.getpid() * 389):  # processes side by side begin far apart
        yield lowest + number % count


_PORTS = _ports()


def free_port() -> int:
    """A port that nobody has. No test gets it a second time before ten thousand others."""
    while True:
        port = next(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@dataclass
class Cloud:
    """What a test needs of the local cloud."""

    home: Home
    store: Store
    jobs: JobTable
    scheduler: LocalScheduler
    client: vertex.JobServiceClient
    storage: StorageEmulator | None
    port: int
    """Of the job service."""
    undo: list[Callable[[], object]]
    studies: TuningService
    """Serves tuning jobs; another server of the same cloud may, too."""

    def stop(self) -> None:
        """End it; another one may go on over its files."""
        while self.undo:
            self.undo.pop()()

    def grant(self, resource: str, role: str, member: str = f"serviceAccount:{TRAINER}") -> None:
        policy = self.store.policy(resource)
        bindings = (*policy.bindings, Binding(role, (member,)))
        self.store.set_policy(resource, bindings, expected_etag=policy.etag)

    def bucket(self, name: str) -> Any:
        """Make a bucket in the store and in the emulator; returns Google's bucket object."""
        self.store.put(BUCKET, name, PROJECT, {}, {"name": name, "project": PROJECT})
        assert self.storage is not None
        return storage_client(self.storage.url).create_bucket(name)

    def submit(self, job: dict[str, Any] | vertex.CustomJob) -> vertex.CustomJob:
        return self.client.create_custom_job(parent=PARENT, custom_job=job)

    def run(self, job: dict[str, Any]) -> vertex.CustomJob:
        """Submit and wait for the end."""
        name = self.submit(job).name
        ended = (vertex.JobState.JOB_STATE_SUCCEEDED, vertex.JobState.JOB_STATE_FAILED,
                 vertex.JobState.JOB_STATE_CANCELLED)  # fmt: skip
        wait_until(lambda: self.client.get_custom_job(name=name).state in ended)
        return self.client.get_custom_job(name=name)

    def log(self, job: vertex.CustomJob) -> str:
        folder = self.home.jobs / job.name.rpartition("/")[2] / "logs"
        return (folder / "workerpool0-0.log").read_text()


def command_job(*command: str, **spec: Any) -> dict[str, Any]:
    """A job whose container has a command: it runs on the host."""
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "python:3.11", "command": list(command)},
    }
    return {"display_name": "test", "job_spec": {"worker_pool_specs": [pool], **spec}}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home", Path(__file__).resolve().parents[3])
    made.create()
    return made


@pytest.fixture
def typed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Somebody has typed ``typed`` where this process, the server, was started."""
    file = tmp_path_factory.mktemp("terminal") / "input"
    file.write_text("typed")
    own = os.dup(0)
    with file.open() as opened:
        os.dup2(opened.fileno(), 0)
    yield
    os.dup2(own, 0)
    os.close(own)


@pytest.fixture
def make_cloud(home: Home) -> Iterator[Callable[..., Cloud]]:
    """Makes clouds over the same files; all are stopped at the end."""
    clouds: list[Cloud] = []

    def make(*, hooks: tuple[Hook, ...] = (), storage: bool = False, slots: int = 2) -> Cloud:
        emulator = None
        if storage:
            emulator = StorageEmulator(home.storage, home.storage_log, home.children)
            emulator.start(free_port())
        store, jobs = Store(home.database), JobTable(home.database)
        faults = FaultTable(home.faults)
        url = emulator.url if emulator else "http://127.0.0.1:9"

        port = free_port()  # before the scheduler: a job that waited runs at once
        tuning = Tuning(home)
        api, containers = f"http://127.0.0.1:{port}/", ContainerHost(home, 0)
        machine = CloudHost(home, store, containers, url, api)
        host = JobHost(machine, jobs, faults, tuning.trial_id)
        scheduler = LocalScheduler(jobs, host.make_run, slots, tuning.is_trial)
        scheduler.start()
        service = JobService(store, jobs, scheduler)
        studies = tuning.start(service)
        server = serve([service, studies, SecretService(home, store)], port, hooks)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        client = vertex.JobServiceClient(transport=JobServiceGrpcTransport(channel=channel))
        undo: list[Callable[[], object]] = [emulator.stop] if emulator else []
        undo.extend([scheduler.stop, tuning.stop, lambda: server.stop(None).wait(), channel.close])
        store.put(SERVICE, f"{PROJECT}/aiplatform.googleapis.com", PROJECT, {}, {})
        store.put(ACCOUNT_TYPE, TRAINER, PROJECT, {}, {"email": TRAINER})
        clouds.append(Cloud(home, store, jobs, scheduler, client, emulator, port, undo, studies))
        return clouds[-1]

    yield make
    for cloud in reversed(clouds):
        cloud.stop()


@pytest.fixture
def cloud(make_cloud: Callable[..., Cloud]) -> Cloud:
    return make_cloud()


@pytest.fixture
def cloud_with_storage(make_cloud: Callable[..., Cloud]) -> Cloud:
    return make_cloud(storage=True)
