"""Names from Google's official client, without the services of Vertex AI that are not used."""

# ruff: noqa: F401

from __future__ import annotations

from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.services.job_service.transports import JobServiceGrpcTransport
from google.cloud.aiplatform_v1.types.custom_job import CustomJob
from google.cloud.aiplatform_v1.types.hyperparameter_tuning_job import HyperparameterTuningJob
from google.cloud.aiplatform_v1.types.job_service import (
    CancelCustomJobRequest,
    CancelHyperparameterTuningJobRequest,
    CreateCustomJobRequest,
    CreateHyperparameterTuningJobRequest,
    DeleteCustomJobRequest,
    DeleteHyperparameterTuningJobRequest,
    GetCustomJobRequest,
    GetHyperparameterTuningJobRequest,
    ListCustomJobsRequest,
    ListCustomJobsResponse,
    ListHyperparameterTuningJobsRequest,
    ListHyperparameterTuningJobsResponse,
)
from google.cloud.aiplatform_v1.types.job_state import JobState
from google.cloud.aiplatform_v1.types.operation import DeleteOperationMetadata
