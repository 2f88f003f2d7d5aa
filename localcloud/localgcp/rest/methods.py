"""The messages of the methods that the local cloud serves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.cloud.logging_v2 import types as logging
from google.cloud.secretmanager_v1 import types as secretmanager
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2
from google.protobuf.message import Message

from localgcp.pipelines.service import pipeline_service, training_pipeline
from vertex_training.customjob.google import vertex_api

_JOBS: Final = "google.cloud.aiplatform.v1.JobService"
_PIPELINES: Final = "google.cloud.aiplatform.v1.PipelineService"
_OPERATIONS: Final = "google.longrunning.Operations"


@dataclass(frozen=True)
class Method:
    """What a method takes and returns: functions that make an empty message."""

    request: Callable[[], Message]
    response: Callable[[], Message]


def _plus(request: Any, response: Any) -> Method:
    """Of messages of proto-plus, which wrap those of protobuf."""
    return Method(request.pb(), response if _is_plain(response) else response.pb())


def _is_plain(message: Any) -> bool:
    return issubclass(message, Message)


METHODS: Final[Mapping[str, Method]] = {
    f"{_JOBS}/CreateCustomJob": _plus(vertex_api.CreateCustomJobRequest, vertex_api.CustomJob),
    f"{_JOBS}/GetCustomJob": _plus(vertex_api.GetCustomJobRequest, vertex_api.CustomJob),
    f"{_JOBS}/ListCustomJobs": _plus(
        vertex_api.ListCustomJobsRequest, vertex_api.ListCustomJobsResponse
    ),
    f"{_JOBS}/CancelCustomJob": _plus(vertex_api.CancelCustomJobRequest, empty_pb2.Empty),
    f"{_JOBS}/DeleteCustomJob": _plus(vertex_api.DeleteCustomJobRequest, operations_pb2.Operation),
    f"{_JOBS}/CreateHyperparameterTuningJob": _plus(
        vertex_api.CreateHyperparameterTuningJobRequest, vertex_api.HyperparameterTuningJob
    ),
    f"{_JOBS}/GetHyperparameterTuningJob": _plus(
        vertex_api.GetHyperparameterTuningJobRequest, vertex_api.HyperparameterTuningJob
    ),
    f"{_JOBS}/ListHyperparameterTuningJobs": _plus(
        vertex_api.ListHyperparameterTuningJobsRequest,
        vertex_api.ListHyperparameterTuningJobsResponse,
    ),
    f"{_JOBS}/CancelHyperparameterTuningJob": _plus(
        vertex_api.CancelHyperparameterTuningJobRequest, empty_pb2.Empty
    ),
    f"{_JOBS}/DeleteHyperparameterTuningJob": _plus(
        vertex_api.DeleteHyperparameterTuningJobRequest, operations_pb2.Operation
    ),
    f"{_PIPELINES}/CreateTrainingPipeline": _plus(
        pipeline_service.CreateTrainingPipelineRequest, training_pipeline.TrainingPipeline
    ),
    f"{_PIPELINES}/GetTrainingPipeline": _plus(
        pipeline_service.GetTrainingPipelineRequest, training_pipeline.TrainingPipeline
    ),
    f"{_PIPELINES}/ListTrainingPipelines": _plus(
        pipeline_service.ListTrainingPipelinesRequest,
        pipeline_service.ListTrainingPipelinesResponse,
    ),
    f"{_PIPELINES}/CancelTrainingPipeline": _plus(
        pipeline_service.CancelTrainingPipelineRequest, empty_pb2.Empty
    ),
    f"{_OPERATIONS}/GetOperation": Method(
        operations_pb2.GetOperationRequest, operations_pb2.Operation
    ),
    f"{_OPERATIONS}/WaitOperation": Method(
        operations_pb2.WaitOperationRequest, operations_pb2.Operation
    ),
    "google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion": _plus(
        secretmanager.AccessSecretVersionRequest, secretmanager.AccessSecretVersionResponse
    ),
    "google.logging.v2.LoggingServiceV2/ListLogEntries": _plus(
        logging.ListLogEntriesRequest, logging.ListLogEntriesResponse
    ),
}
