"""Takes what a program sends to Vertex AI and to Batch, and runs nothing of it.

A ``Recorder`` serves the methods that submit training, and Cloud Storage, at two ports of this
machine. Every job is accepted as it is and has succeeded at once, so that code that waits goes on.
A bucket is there as soon as somebody names it. What else a program calls is refused, and noted.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Self
from urllib.parse import unquote

import grpc
from google.protobuf import empty_pb2, json_format

from localgcp.apis.client import Api
from localgcp.apis.messages import (
    batch,
    batch_job,
    custom_job,
    hyperparameter_tuning_job,
    job_service,
    pipeline_service,
    training_pipeline,
)
from localgcp.apis.server import serve
from localgcp.clients import cloud_sdk, python_clients
from localgcp.errors import ApiError
from localgcp.faults.proxy import StorageProxy
from localgcp.faults.table import FaultTable
from localgcp.home.environment import without_real_cloud
from localgcp.server import choose_port
from localgcp.storage.emulator import StorageEmulator
from localgcp.storage.requests import StorageRequest
from localgcp.vertex.records import new_id, now

_BUCKET: Final = re.compile(r"(?:/(?:upload|download|resumable/upload))?/storage/v1/b/([^/?]+)")
#: Google's names of buckets (docs.cloud.google.com/storage/docs/buckets#naming).
_BUCKET_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")


@dataclass(frozen=True)
class RecordedRequest:
    """A request to make a job."""

    kind: str
    """``CustomJob``, ``HyperparameterTuningJob``, ``TrainingPipeline``, or ``Job`` of Batch."""
    parent: str
    """``projects/PROJECT/locations/REGION``."""
    message: dict[str, Any]
    """What was sent, in the API's JSON form."""
    name: str = ""
    """The id that the program gave it; empty where the service chooses one."""


@dataclass
class _Recorded:
    """Requests in their order, and the answers by name."""

    requests: list[RecordedRequest] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)

    def add(self, kind: type, collection: str, parent: str, sent: Any, state: str) -> Any:
        body = json_format.MessageToDict(kind.pb(sent))
        self.requests.append(RecordedRequest(kind.__name__, parent, body))
        name, time = f"{parent}/{collection}/{new_id()}", now()
        times = {"createTime": time, "startTime": time, "endTime": time, "updateTime": time}
        answer = kind()
        body = {**body, "name": name, "state": state, **times}
        json_format.ParseDict(body, kind.pb(answer))
        self.answers[name] = answer
        return answer

    def get(self, request: Any) -> Any:
        if request.name not in self.answers:
            raise ApiError(grpc.StatusCode.NOT_FOUND, f"{request.name} does not exist.")
        return self.answers[request.name]

    def all(self, kind: type, parent: str) -> list[Any]:
        found = self.answers.items()
        return [each for name, each in found if isinstance(each, kind) and name.startswith(parent)]


class _Jobs:
    """``google.cloud.aiplatform.v1.JobService``."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "job_service")

    def __init__(self, recorded: _Recorded) -> None:
        self._recorded = recorded

    def create_custom_job(self, request: job_service.CreateCustomJobRequest) -> Any:
        sent, state = request.custom_job, "JOB_STATE_SUCCEEDED"
        kind = custom_job.CustomJob
        return self._recorded.add(kind, "customJobs", request.parent, sent, state)

    def get_custom_job(self, request: job_service.GetCustomJobRequest) -> Any:
        return self._recorded.get(request)

    def list_custom_jobs(self, request: job_service.ListCustomJobsRequest) -> Any:
        found = self._recorded.all(custom_job.CustomJob, request.parent)
        return job_service.ListCustomJobsResponse(custom_jobs=found)

    def cancel_custom_job(self, request: job_service.CancelCustomJobRequest) -> empty_pb2.Empty:
        return empty_pb2.Empty()

    def create_hyperparameter_tuning_job(
        self, request: job_service.CreateHyperparameterTuningJobRequest
    ) -> Any:
        sent, state = request.hyperparameter_tuning_job, "JOB_STATE_SUCCEEDED"
        kind = hyperparameter_tuning_job.HyperparameterTuningJob
        return self._recorded.add(kind, "hyperparameterTuningJobs", request.parent, sent, state)

    def get_hyperparameter_tuning_job(
        self, request: job_service.GetHyperparameterTuningJobRequest
    ) -> Any:
        return self._recorded.get(request)

    def list_hyperparameter_tuning_jobs(
        self, request: job_service.ListHyperparameterTuningJobsRequest
    ) -> Any:
        kind = hyperparameter_tuning_job.HyperparameterTuningJob
        found = self._recorded.all(kind, request.parent)
        return job_service.ListHyperparameterTuningJobsResponse(hyperparameter_tuning_jobs=found)

    def cancel_hyperparameter_tuning_job(
        self, request: job_service.CancelHyperparameterTuningJobRequest
    ) -> empty_pb2.Empty:
        return empty_pb2.Empty()


class _Pipelines:
    """``google.cloud.aiplatform.v1.PipelineService``."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "pipeline_service")

    def __init__(self, recorded: _Recorded) -> None:
        self._recorded = recorded

    def create_training_pipeline(
        self, request: pipeline_service.CreateTrainingPipelineRequest
    ) -> Any:
        sent, kind = request.training_pipeline, training_pipeline.TrainingPipeline
        state = "PIPELINE_STATE_SUCCEEDED"
        return self._recorded.add(kind, "trainingPipelines", request.parent, sent, state)

    def get_training_pipeline(self, request: pipeline_service.GetTrainingPipelineRequest) -> Any:
        return self._recorded.get(request)

    def list_training_pipelines(
        self, request: pipeline_service.ListTrainingPipelinesRequest
    ) -> Any:
        found = self._recorded.all(training_pipeline.TrainingPipeline, request.parent)
        return pipeline_service.ListTrainingPipelinesResponse(training_pipelines=found)


class _Batch:
    """``google.cloud.batch.v1.BatchService``. A name is not taken twice, and runs at once."""

    api: ClassVar = Api("google.cloud.batch_v1", "batch_service")

    def __init__(self, recorded: _Recorded) -> None:
        self._recorded = recorded

    def create_job(self, request: batch.CreateJobRequest) -> Any:
        body = json_format.MessageToDict(batch_job.Job.pb(request.job))
        name, time = f"{request.parent}/jobs/{request.job_id or f'j-{new_id()}'}", now()
        if name in self._recorded.answers:
            text = f'Resource "{name}" already exists'
            raise ApiError(grpc.StatusCode.ALREADY_EXISTS, text)
        self._recorded.requests.append(RecordedRequest("Job", request.parent, body, request.job_id))
        answer = batch_job.Job()
        ended = {"status": {"state": "SUCCEEDED"}, "createTime": time, "updateTime": time}
        body = {**body, "name": name, "uid": f"j-{new_id()}", **ended}
        json_format.ParseDict(body, batch_job.Job.pb(answer))
        self._recorded.answers[name] = answer
        return answer

    def get_job(self, request: batch.GetJobRequest) -> Any:
        return self._recorded.get(request)

    def list_jobs(self, request: batch.ListJobsRequest) -> Any:
        found = self._recorded.all(batch_job.Job, request.parent)
        return batch.ListJobsResponse(jobs=found)


class _Storage:
    """Cloud Storage whose buckets are there as soon as a request names them."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "storage"
        self._emulator = StorageEmulator(
            self.root, folder / "storage.log", folder / "run", private=True
        )
        self._faults = FaultTable(folder / "faults.sqlite")
        self._known = set[str]()
        self._lock = threading.Lock()

    def start(self) -> str:
        """Serve, and return the address. Raises LocalCloudError."""
        port = choose_port(0, "storage")
        self._emulator.start(choose_port(0, "storage"), port)
        self._proxy = StorageProxy(port, self._emulator, self._faults, self._make_bucket)
        return f"http://127.0.0.1:{port}"

    def stop(self) -> None:
        """End it."""
        self._proxy.stop()
        self._emulator.stop()

    def _make_bucket(self, request: StorageRequest) -> None:
        found = _BUCKET.match(request.target)
        name = unquote(found[1]) if found else ""
        with self._lock:  # clients look at a bucket while they write to it
            if name not in self._known and _BUCKET_NAME.fullmatch(name):
                self._send(name)
                self._known.add(name)

    def _send(self, name: str) -> None:
        connection = self._emulator.connection(timeout=10)
        try:
            headers = {"Content-Type": "application/json"}
            body = json.dumps({"name": name})
            connection.request("POST", "/storage/v1/b?project=local", body, headers)
            connection.getresponse().read()
        finally:
            connection.close()


class Recorder:
    """What a program sends, between ``__enter__`` and ``__exit__``; files lie below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._recorded = folder, _Recorded()
        self._storage = _Storage(folder)
        self.refused: list[str] = []
        """Methods that a program called and that nothing here serves, in their order."""

    @property
    def requests(self) -> list[RecordedRequest]:
        """Requests to make jobs, in their order."""
        return self._recorded.requests

    @property
    def buckets(self) -> Path:
        """``BUCKET/OBJECT``, what was uploaded."""
        return self._storage.root

    @property
    def ports(self) -> tuple[int, int]:
        """The ports of 127.0.0.1 at which it serves."""
        return self._server.port, int(self._url.rpartition(":")[2])

    def __enter__(self) -> Self:
        """Serve. Raises LocalCloudError."""
        (self._folder / "run").mkdir(0o700, parents=True)
        self._url = self._storage.start()
        apis = [_Jobs(self._recorded), _Pipelines(self._recorded), _Batch(self._recorded)]
        sockets = self._folder / "sockets"
        refused = self.refused.append
        self._server = serve(apis, 0, (), sockets, self._refuse, refused, takes_beta=True)
        cloud_sdk.write_settings(self._folder / "cloud-sdk")
        python_clients.write_settings(self._folder / "cloud-sdk")
        return self

    def _refuse(self, verb: str, target: str, _body: bytes, _connection: str = "") -> None:
        self.refused.append(f"{verb} {target.partition('?')[0][:300]}")

    def __exit__(self, *_: object) -> None:
        self._server.stop(0)  # not waited for: gRPC rarely never tells of a server's end
        self._storage.stop()

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """``env`` for a program whose clients are to come here.

        It diverts Google's clients for Python, gcloud and gsutil, and isolates nothing.
        """
        folder, (vertex, storage) = self._folder / "cloud-sdk", self.ports
        return {
            **without_real_cloud(env),
            # Of a client that nothing leads here: it stops, and asks no cloud by a login of yours.
            "GOOGLE_APPLICATION_CREDENTIALS": str(folder / "no-credentials.json"),
            python_clients.VERTEX: f"127.0.0.1:{vertex}",
            python_clients.STORAGE: self._url,
            **cloud_sdk.environment(folder, storage, vertex),
            **python_clients.environment(folder, env),
        }
