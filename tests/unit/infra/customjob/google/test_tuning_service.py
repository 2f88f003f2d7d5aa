"""Tuning jobs through the official client, over real gRPC; trials are nobody's duplicates."""

import pytest
from google.cloud import aiplatform_v1
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from tests.unit.infra.customjob.google.test_job_service import PARENT, Server, server
from vertex_training.customjob.google import job_service as client
from vertex_training.customjob.kinds import TUNING_JOB

__all__ = ["Server", "server"]


@pytest.fixture
def tuning(server, monkeypatch):
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    return client.connect("local-x", "us-central1", TUNING_JOB)


def message(**fields):
    name = f"{PARENT}/hyperparameterTuningJobs/1"
    return aiplatform_v1.HyperparameterTuningJob.pb(
        aiplatform_v1.HyperparameterTuningJob(name=name, **fields)
    )


def test_it_is_read_cancelled_and_deleted_by_its_own_methods(server, tuning):
    name = f"{PARENT}/hyperparameterTuningJobs/1"
    server.replies |= {
        "GetHyperparameterTuningJob": [message(state="JOB_STATE_RUNNING")],
        "CancelHyperparameterTuningJob": [empty_pb2.Empty()],
        "DeleteHyperparameterTuningJob": [operations_pb2.Operation(name="operations/1", done=True)],
    }
    assert tuning.get(name).state == "JOB_STATE_RUNNING"
    tuning.cancel(name)
    server.replies["DeleteHyperparameterTuningJob"][0].response.Pack(empty_pb2.Empty())
    tuning.delete(name)
    assert [method for method, _ in server.requests] == [
        "GetHyperparameterTuningJob", "CancelHyperparameterTuningJob",
        "DeleteHyperparameterTuningJob",
    ]  # fmt: skip
