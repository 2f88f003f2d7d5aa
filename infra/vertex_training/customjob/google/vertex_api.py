"""The names of Google's official client that this project uses, without the rest of the client.

Import them from this module: ``google.cloud.aiplatform_v1`` itself loads every service of
Vertex AI.
"""

from __future__ import annotations

from vertex_training.customjob.google import lazy_package

for _package in ("google.cloud.aiplatform_v1", "google.cloud.aiplatform_v1.types"):
    lazy_package.register(_package)

from google.cloud.aiplatform_v1.services.job_service import JobServiceClient  # noqa: E402
from google.cloud.aiplatform_v1.services.job_service.transports import (  # noqa: E402
    JobServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.types.custom_job import CustomJob  # noqa: E402
from google.cloud.aiplatform_v1.types.hyperparameter_tuning_job import (  # noqa: E402
    HyperparameterTuningJob,
)
from google.cloud.aiplatform_v1.types.job_service import (  # noqa: E402
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
from google.cloud.aiplatform_v1.types.job_state import JobState  # noqa: E402
from google.cloud.aiplatform_v1.types.operation import DeleteOperationMetadata  # noqa: E402

__all__ = [
    "CancelCustomJobRequest",
    "CancelHyperparameterTuningJobRequest",
    "CreateCustomJobRequest",
    "CreateHyperparameterTuningJobRequest",
    "CustomJob",
    "DeleteCustomJobRequest",
    "DeleteHyperparameterTuningJobRequest",
    "DeleteOperationMetadata",
    "GetCustomJobRequest",
    "GetHyperparameterTuningJobRequest",
    "HyperparameterTuningJob",
    "JobServiceClient",
    "JobServiceGrpcTransport",
    "JobState",
    "ListCustomJobsRequest",
    "ListCustomJobsResponse",
    "ListHyperparameterTuningJobsRequest",
    "ListHyperparameterTuningJobsResponse",
]
