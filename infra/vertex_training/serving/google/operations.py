"""Names of Google's clients for models and endpoints (see ``vertex_api``), and long operations.

An operation is read by its name, by any process.
"""

# ruff: noqa: E402, F401

from __future__ import annotations

from typing import Any, Final

from google.api_core.exceptions import FailedPrecondition, NotFound

from vertex_training.customjob.google import lazy_package
from vertex_training.customjob.google.job_service import PROVES_NOT_CREATED, code_of, read
from vertex_training.errors import OperatorError
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

#: google.rpc.Code of what is refused for a missing permission, and for quota.
_PERMISSION_DENIED: Final = 7
_RESOURCE_EXHAUSTED: Final = 8

#: gRPC codes that prove that a call on models or endpoints had no effect, with hints.
REFUSALS: Final = {
    **PROVES_NOT_CREATED,
    "INVALID_ARGUMENT": "correct the model or the endpoint in the stack file",
    "OUT_OF_RANGE": "correct the model or the endpoint in the stack file",
    "NOT_FOUND": "check the project, the region and what it names",
    "ALREADY_EXISTS": "somebody else made it meanwhile: run again, which looks for it first",
    "UNIMPLEMENTED": "the service at this address serves no models",
    "RESOURCE_EXHAUSTED": "wait, or ask for more quota of aiplatform.googleapis.com: serving has "
    "quotas of its own, custom_model_serving_…",
}
#: What the errors of an operation mean, by google.rpc.Code.
_HINTS: Final = {
    _PERMISSION_DENIED: "the Vertex AI service agent (service-NUMBER@gcp-sa-aiplatform) reads the "
    "image and the artifacts: grant it roles/artifactregistry.reader on the repository and "
    "roles/storage.objectViewer on the bucket; a new grant can take some minutes to have effect",
    _RESOURCE_EXHAUSTED: "ask for more quota of custom_model_serving_…, or choose another machine",
}


class GoogleOperations:
    """``ports.Operations`` over a client of Vertex AI; all of them have these methods."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def operation(self, name: str) -> OperationSnapshot:
        """The operation as it is; one that is no longer known has ended."""
        try:
            found = read(self._client.get_operation, request={"name": name})
        except NotFound:
            return OperationSnapshot(name, done=True)
        except FailedPrecondition as error:
            raise OperatorError(f"Vertex AI did not read {name}: {error.message}") from None
        code = found.error.code if found.done else 0
        hint = f" Hint: {_HINTS[code]}." if code in _HINTS else ""
        text = found.error.message or f"it failed with code {code}"
        error = f"{text.rstrip('.')}.{hint}" if code else ""
        return OperationSnapshot(name, found.done, error, code == _PERMISSION_DENIED)

    def running(self, resource: str) -> list[str]:
        """Names of the operations on ``resource`` that have not ended; none if it is not there."""
        result: list[str] = []
        token = ""
        while True:
            request = {"name": resource, "page_token": token}
            try:
                page = read(self._client.list_operations, request=request)
            except NotFound:
                return []
            except FailedPrecondition as error:
                raise OperatorError(
                    f"Vertex AI did not list operations of {resource}: {code_of(error)}: "
                    f"{error.message}"
                ) from None
            result += [operation.name for operation in page.operations if not operation.done]
            token = page.next_page_token
            if not token:
                return result
