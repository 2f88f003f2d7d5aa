"""Tuning jobs through the official client, over real gRPC; trials are nobody's duplicates."""

import pytest
from google.cloud import aiplatform_v1
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from tests.unit.infra.customjob.google.test_job_service import PARENT, Server, sent, server
from vertex_training.customjob.google import job_service as client
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB

__all__ = ["Server", "server"]
BODY = (
    '{"displayName":"x","maxTrialCount":2,"labels":{"mine":"1"},'
    '"trialJobSpec":{"workerPoolSpecs":[{"replicaCount":1}]}}'
)
LABELS = {"vt-request-id": "id1", "vt-request-digest": "d", "vt-request-turn": "3", "team": "ml"}
SENT = {
    "vt-tuning-request-id": "id1", "vt-tuning-request-digest": "d", "vt-tuning-request-turn": "3",
    "team": "ml",
}  # fmt: skip


@pytest.fixture
def tuning(server, monkeypatch):
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    return client.connect("local-x", "us-central1", TUNING_JOB)


def message(**fields):
    name = f"{PARENT}/hyperparameterTuningJobs/1"
    return aiplatform_v1.HyperparameterTuningJob.pb(
        aiplatform_v1.HyperparameterTuningJob(name=name, **fields)
    )


def test_it_is_sent_once_with_label_keys_of_its_own(server, tuning):
    server.replies["CreateHyperparameterTuningJob"] = [
        message(state="JOB_STATE_PENDING", labels=SENT)
    ]
    record = tuning.create(PARENT, BODY, LABELS)
    [request] = sent(server, "CreateHyperparameterTuningJob")
    read = aiplatform_v1.CreateHyperparameterTuningJobRequest.deserialize(request)
    assert dict(read.hyperparameter_tuning_job.labels) == {"mine": "1", **SENT}
    assert read.hyperparameter_tuning_job.max_trial_count == 2
    assert (record.state, record.digest, record.turn) == ("JOB_STATE_PENDING", "d", 3)


def test_it_is_looked_for_by_its_own_key_and_once(server, tuning):
    listed = aiplatform_v1.ListHyperparameterTuningJobsResponse.pb(
        aiplatform_v1.ListHyperparameterTuningJobsResponse()
    )
    listed.hyperparameter_tuning_jobs.append(message(labels=SENT))
    server.replies["ListHyperparameterTuningJobs"] = [listed]
    [found] = tuning.find(PARENT, "id1")
    assert found.digest == "d"
    [request] = sent(server, "ListHyperparameterTuningJobs")
    asked = aiplatform_v1.ListHyperparameterTuningJobsRequest.deserialize(request)
    assert asked.filter == "labels.vt-tuning-request-id=id1"


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


def test_a_trial_with_the_labels_of_its_tuning_job_is_no_job_of_a_stack(server, monkeypatch):
    """Whether the service copies labels to trials is not documented: it may."""
    monkeypatch.setenv("VERTEX_EMULATOR_HOST", f"127.0.0.1:{server.port}")
    trial = aiplatform_v1.CustomJob.pb(
        aiplatform_v1.CustomJob(name=f"{PARENT}/customJobs/7", labels=SENT)
    )
    server.replies["GetCustomJob"] = [trial]
    found = client.connect("local-x", "us-central1").get(trial.name)
    assert (found.digest, found.turn) == ("", 1)
    assert not any(key in CUSTOM_JOB.sent_labels(LABELS) for key in TUNING_JOB.sent_labels(LABELS)
                   if key != "team")  # fmt: skip


def test_both_kinds_share_a_connection(tuning):
    jobs = client.connect("local-x", "us-central1")
    assert jobs._client is tuning._client
    assert client.connect("local-x", "us-central1", TUNING_JOB) is tuning
