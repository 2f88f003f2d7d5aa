"""The names of Google's official clients for models and endpoints; see ``vertex_api``."""

from __future__ import annotations

from vertex_training.customjob.google import lazy_package

for _package in ("google.cloud.aiplatform_v1", "google.cloud.aiplatform_v1.types"):
    lazy_package.register(_package)

from google.cloud.aiplatform_v1.services.endpoint_service import (  # noqa: E402
    EndpointServiceClient,
)
from google.cloud.aiplatform_v1.services.endpoint_service.transports import (  # noqa: E402
    EndpointServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient  # noqa: E402
from google.cloud.aiplatform_v1.services.model_service.transports import (  # noqa: E402
    ModelServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.types.endpoint import DeployedModel, Endpoint  # noqa: E402
from google.cloud.aiplatform_v1.types.model import Model  # noqa: E402
from google.cloud.aiplatform_v1.types.model_service import UploadModelRequest  # noqa: E402

__all__ = [
    "DeployedModel",
    "Endpoint",
    "EndpointServiceClient",
    "EndpointServiceGrpcTransport",
    "Model",
    "ModelServiceClient",
    "ModelServiceGrpcTransport",
    "UploadModelRequest",
]
