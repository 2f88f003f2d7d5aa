"""Long-running operations, and the names of Google's clients (see ``vertex_api``).

Any process can read an operation by its name.
"""

# ruff: noqa: E402, F401

from __future__ import annotations

from typing import Any, Final

from vertex_training.customjob.google import lazy_package
from vertex_training.customjob.google.job_service import PROVES_NOT_CREATED, read_or_none
from vertex_training.serving.protocol.ports import OperationSnapshot

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

#: google.rpc.Code of a missing permission and of missing quota.
_PERMISSION_DENIED: Final = 7
_RESOURCE_EXHAUSTED: Final = 8

#: gRPC code that proves that a call on models or endpoints had no effect -> hint.
REFUSALS: Final = {
    **PROVES_NOT_CREATED,
    "INVALID_ARGUMENT": "correct the model or the endpoint in the stack file",
    "OUT_OF_RANGE": "correct the model or the endpoint in the stack file",
    "NOT_FOUND": "check the project, the region and all resources in the request",
    "ALREADY_EXISTS": "run the command again to use the resource that another process created",
    "UNIMPLEMENTED": "use a service that supports models",
    "RESOURCE_EXHAUSTED": "wait, or request more quota of aiplatform.googleapis.com; the quotas of "
    "serving are custom_model_serving_…",
}
#: google.rpc.Code of an operation's error -> hint.
_HINTS: Final = {
    _PERMISSION_DENIED: "grant the Vertex AI service agent (service-NUMBER@gcp-sa-aiplatform) "
    "roles/artifactregistry.reader on the image repository and roles/storage.objectViewer on the "
    "bucket of the artifacts; a new grant can take minutes to have effect",
    _RESOURCE_EXHAUSTED: "request more quota of custom_model_serving_…, or change the machine type",
}


class GoogleOperations:
    """``ports.Operations`` with any Vertex AI client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def operation(self, name: str) -> OperationSnapshot:
        """Return the operation's current state. An unknown operation counts as done."""
        request = {"name": name}
        operation = read_or_none(self._client.get_operation, f"read {name}", request=request)
        if operation is None:
            return OperationSnapshot(name, done=True)
        code = operation.error.code if operation.done else 0
        hint = f" Hint: {_HINTS[code]}." if code in _HINTS else ""
        text = operation.error.message or f"the operation failed with code {code}"
        error = f"{text.rstrip('.')}.{hint}" if code else ""
        return OperationSnapshot(name, operation.done, error, code == _PERMISSION_DENIED)

    def running(self, resource: str) -> list[str]:
        """Return the names of running operations on ``resource``; empty for a missing resource."""
        result: list[str] = []
        token = ""
        while True:
            request = {"name": resource, "page_token": token}
            doing = f"list operations of {resource}"
            page = read_or_none(self._client.list_operations, doing, request=request)
            if page is None:
                return []
            result += [operation.name for operation in page.operations if not operation.done]
            token = page.next_page_token
            if not token:
                return result
