"""The names of Google's official clients for models and endpoints; see ``vertex_api``."""

# ruff: noqa: E402, F401

from __future__ import annotations

from vertex_training.customjob.google import lazy_package

for _package in ("google.cloud.aiplatform_v1", "google.cloud.aiplatform_v1.types"):
    lazy_package.register(_package)

from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
from google.cloud.aiplatform_v1.services.endpoint_service.transports import (
    EndpointServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient
from google.cloud.aiplatform_v1.services.model_service.transports import ModelServiceGrpcTransport
from google.cloud.aiplatform_v1.types.endpoint import DeployedModel, Endpoint
from google.cloud.aiplatform_v1.types.model import Model
from google.cloud.aiplatform_v1.types.model_service import UploadModelRequest
