"""A local cloud with the faults of a table, and our own client in front of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import grpc
import pytest
from google.cloud import aiplatform_v1 as vertex
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceGrpcTransport

from localgcp.faults.calls import CallFaults
from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.proxy import StorageFront
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import JobTable
from tests.unit.localcloud.conftest import Cloud, free_port
from vertex_training.customjob.google.job_service import VertexJobs

#: Seconds until a caller gives up, long enough for a busy server to have got the call.
ARRIVES: Final = 3.0


@dataclass
class Faulty:
    """A cloud, its faults, and the project's own client of it."""

    cloud: Cloud
    table: FaultTable
    client: VertexJobs

    def add(self, kind: str, **given: Any) -> int:
        return self.table.add(Fault.parse(service="jobs", kind=kind, **given))

    def fired(self, fault_id: int) -> int:
        return self.table.get(fault_id).fired


@pytest.fixture
def faulty(home: Home, make_cloud: Callable[..., Cloud]) -> Iterator[Faulty]:
    table, stopping = FaultTable(home.faults), threading.Event()
    tables = JobTable(home.database), TuningTable(home.database)
    hook = CallFaults(table, tables[0], stopping, tables[1])
    cloud = make_cloud(hooks=(hook,))
    transport = cloud.client.transport
    assert isinstance(transport, JobServiceGrpcTransport)
    yield Faulty(cloud, table, VertexJobs(vertex.JobServiceClient(transport=transport)))
    stopping.set()


@pytest.fixture
def front(home: Home) -> Iterator[StorageFront]:
    """Cloud Storage as the server has it."""
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    made = StorageFront(emulator, FaultTable(home.faults), free_port)
    made.start(free_port())
    yield made
    made.stop()


def code_of(error: Exception) -> grpc.StatusCode:
    code = getattr(error, "grpc_status_code", None)
    assert isinstance(code, grpc.StatusCode)
    return code
