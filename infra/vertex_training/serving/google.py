"""Calls Vertex AI endpoints, the model registry and the jobs of runs, with Google's clients.

Read calls are repeated after an error. Each change is sent once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import vertex_training.customjob.google  # isort: skip  # noqa: F401  (loads the base first)
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.cloud.aiplatform_v1.services.endpoint_service import EndpointServiceClient
from google.cloud.aiplatform_v1.services.endpoint_service.transports import (
    EndpointServiceGrpcTransport,
)
from google.cloud.aiplatform_v1.services.model_service import ModelServiceClient
from google.cloud.aiplatform_v1.services.model_service.transports import ModelServiceGrpcTransport
from google.cloud.aiplatform_v1.types.endpoint import DeployedModel
from google.cloud.aiplatform_v1.types.model import Model
from google.cloud.aiplatform_v1.types.model_service import UploadModelRequest
from google.protobuf.json_format import MessageToDict

from vertex_training.customjob.google import job_service
from vertex_training.customjob.google.intent_store import TIMEOUT, detail, failures, storage_client
from vertex_training.customjob.google.job_service import (
    PROVES_NOT_CREATED,
    code_of,
    operation_name,
    read,
    read_or_none,
    send_once,
    service_client,
    to_proto,
)
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.errors import NotSubmittedError, PreconditionFailedError
from vertex_training.serving.ports import (
    Deployment,
    EndpointSnapshot,
    OperationSnapshot,
    RunFolder,
    VersionRequest,
    VersionSnapshot,
)
from vertex_training.serving.uploads import METRICS_FILE

if TYPE_CHECKING:
    from google.cloud import storage

#: google.rpc.Code of a missing permission and of missing quota.
_PERMISSION_DENIED: Final = 7
_RESOURCE_EXHAUSTED: Final = 8

#: gRPC codes that prove that a call on models or endpoints had no effect, with hints.
REFUSALS: Final = {
    **PROVES_NOT_CREATED,
    "INVALID_ARGUMENT": "correct the model or the endpoint in the stack file",
    "OUT_OF_RANGE": "correct the model or the endpoint in the stack file",
    "NOT_FOUND": "check the project, the region and all resources in the request",
    "ALREADY_EXISTS": "run the command again to use the resource that another process created",
    "UNIMPLEMENTED": "use a service that supports models",
    "RESOURCE_EXHAUSTED": "wait, or request more quota of aiplatform.googleapis.com; the names of "
    "serving quotas begin with custom_model_serving",
}
#: Hints by the google.rpc.Code of an operation's error.
_HINTS: Final = {
    _PERMISSION_DENIED: "grant the Vertex AI service agent (service-NUMBER@gcp-sa-aiplatform) "
    "roles/artifactregistry.reader on the image repository and roles/storage.objectViewer on the "
    "bucket of the artifacts; a new grant can take minutes to have effect",
    _RESOURCE_EXHAUSTED: "request more quota (custom_model_serving), or change the machine type",
}


class GoogleOperations:
    """Implements ``ports.Operations`` with any Vertex AI client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def operation(self, name: str) -> OperationSnapshot:
        """Return the operation's current state, with a hint if the operation has failed."""
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


def connect_endpoints(project: str, region: str, account: str = "") -> GoogleEndpoints:
    """Return the endpoints of a project's region. All threads share the client."""
    types = EndpointServiceClient, EndpointServiceGrpcTransport
    return GoogleEndpoints(service_client(*types, project, region, account))


class GoogleEndpoints(GoogleOperations):
    """Implements ``ports.Endpoints`` with Google's client."""

    _client: EndpointServiceClient

    def get(self, name: str) -> EndpointSnapshot | None:
        endpoint = read_or_none(self._client.get_endpoint, f"read {name}", name=name)
        if endpoint is None:
            return None
        return EndpointSnapshot(
            name,
            {
                deployed_model.id: _deployment(deployed_model)
                for deployed_model in endpoint.deployed_models
            },
            {id_: share for id_, share in endpoint.traffic_split.items() if share},
            endpoint.etag,
        )

    def deploy(self, name: str, deployment: Deployment) -> str:
        """Deploy a version. The call does not change the traffic split."""
        message = {
            "id": deployment.id,
            "model": deployment.version,
            "displayName": deployment.display_name,
            "dedicatedResources": {
                "machineSpec": dict(deployment.machine),
                "minReplicaCount": deployment.minimum,
                "maxReplicaCount": deployment.maximum,
            },
            **({"serviceAccount": deployment.account} if deployment.account else {}),
        }
        what = f"the deployment of {deployment.version.rpartition('/')[2]}"
        return _begin(
            self._client.deploy_model, what, endpoint=name, deployed_model=_model(message)
        )

    def resize(self, name: str, deployment: Deployment) -> str:
        message = {
            "id": deployment.id,
            "dedicatedResources": {
                "minReplicaCount": deployment.minimum,
                "maxReplicaCount": deployment.maximum,
            },
        }
        mask = [f"dedicated_resources.{bound}_replica_count" for bound in ("min", "max")]
        return _begin(
            self._client.mutate_deployed_model,
            f"the resizing of {deployment.id}",
            endpoint=name,
            deployed_model=_model(message),
            update_mask={"paths": mask},
        )

    def undeploy(self, name: str, id_: str) -> str:
        what = f"the undeployment of {id_}"
        return _begin(self._client.undeploy_model, what, endpoint=name, deployed_model_id=id_)

    def set_split(self, name: str, split: Mapping[str, int], etag: str) -> None:
        endpoint = {"name": name, "traffic_split": dict(split), "etag": etag}
        try:
            send_once(
                self._client.update_endpoint,
                "the split",
                {**REFUSALS, "ABORTED": _STALE},
                endpoint=endpoint,
                update_mask={"paths": ["traffic_split"]},
            )
        except NotSubmittedError as refused:
            if "etag" in str(refused).lower() or _STALE in str(refused):
                raise PreconditionFailedError from None
            raise


#: Mark in an error about a changed etag of the endpoint. No user reads this text.
_STALE = "another process wrote the endpoint"


def _begin(call: Callable[..., Any], what: str, **request: Any) -> str:
    return operation_name(send_once(call, what, REFUSALS, request=request))


def _model(message: dict[str, Any]) -> DeployedModel:
    return to_proto(DeployedModel, message)


def _deployment(model: DeployedModel) -> Deployment:
    resources = model.dedicated_resources
    version = model.model.partition("@")[0]
    if model.model_version_id:
        version = f"{version}@{model.model_version_id}"
    return Deployment(
        model.id,
        version,
        model.display_name,
        resources.min_replica_count,
        resources.max_replica_count or resources.min_replica_count,
        MessageToDict(type(resources).pb(resources).machine_spec),
        model.service_account,
    )


#: Time limit of a deletion in seconds.
DELETE_DEADLINE = 120.0
#: Alias that exactly one version of each model has: ``Model.version_aliases``.
DEFAULT_ALIAS = "default"


def connect_registry(project: str, region: str, account: str = "") -> GoogleRegistry:
    """Return the registry of a project's region. All threads share the client."""
    types = ModelServiceClient, ModelServiceGrpcTransport
    return GoogleRegistry(service_client(*types, project, region, account))


class GoogleRegistry(GoogleOperations):
    """Implements ``ports.ModelRegistry`` with Google's client."""

    _client: ModelServiceClient

    def upload(self, request: VersionRequest, body: str, labels: Mapping[str, str]) -> str:
        """Send the upload of a version once, and return the operation's name."""
        model = to_proto(Model, json.loads(body), labels)
        exists = self._get(request.model) is not None
        sent = UploadModelRequest(
            parent=request.parent,
            model=model,
            parent_model=request.model if exists else "",
            model_id="" if exists else request.model_id,
        )
        operation = send_once(
            self._client.upload_model, f"the upload of {request.title}", REFUSALS, request=sent
        )
        return operation_name(operation)

    def version(self, name: str) -> VersionSnapshot | None:
        model = self._get(name)
        return _snapshot(model) if model is not None else None

    def versions(self, model: str) -> list[VersionSnapshot]:
        def list_versions(**arguments: Any) -> list[Model]:
            return list(self._client.list_model_versions(**arguments))

        versions = read_or_none(list_versions, f"list versions of {model}", name=model) or ()
        return [_snapshot(version) for version in versions]

    def delete_version(self, name: str) -> str:
        """Delete a version, or the model with its last version. Return an error; empty if none.

        The service cannot delete a default version: the newest other version becomes the default.
        """
        model = name.partition("@")[0]
        versions = self.versions(model)
        if not any(version.name == name for version in versions):
            return ""
        try:
            if len(versions) == 1:
                operation = read(self._client.delete_model, name=model)
            else:
                self._pass_default_on(name, versions)
                operation = read(self._client.delete_model_version, name=name)
            operation.result(timeout=DELETE_DEADLINE)
        except NotFound:
            return ""
        except (GoogleAPICallError, TimeoutError) as error:
            return f"{code_of(error)}: {getattr(error, 'message', error)}"
        return ""

    def _pass_default_on(self, name: str, versions: Sequence[VersionSnapshot]) -> None:
        model = self._get(name)
        if model is None or DEFAULT_ALIAS not in model.version_aliases:
            return
        newest = max((v for v in versions if v.name != name), key=lambda v: v.created)
        aliases = [DEFAULT_ALIAS]
        read(self._client.merge_version_aliases, name=newest.name, version_aliases=aliases)

    def _get(self, name: str) -> Model | None:
        return read_or_none(self._client.get_model, f"read {name}", name=name)


def _snapshot(model: Model) -> VersionSnapshot:
    return VersionSnapshot(
        f"{model.name.partition('@')[0]}@{model.version_id}",
        type(model).pb(model).version_create_time.ToNanoseconds(),
        dict(model.labels),
        tuple(deployed_model.endpoint for deployed_model in model.deployed_models),
        model.artifact_uri,
    )


#: Maximum number of objects to list in a folder.
MOST_FILES: Final = 1000
#: Maximum size of a metrics file.
MOST_METRICS_BYTES: Final = 256 * 1024


def connect_runs(project: str, region: str, account: str = "") -> GoogleRuns:
    """Return access to the jobs and folders of runs in a project's region."""
    jobs = job_service.connect(project, region, account=account)
    return GoogleRuns(jobs, storage_client(project, account))


class GoogleRuns:
    """Implements ``ports.Runs`` with Google's clients."""

    def __init__(self, jobs: job_service.VertexJobs, objects: storage.Client) -> None:
        self._jobs, self._objects = jobs, objects

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        return self._jobs.labelled(parent, labels)

    def folder(self, uri: str) -> RunFolder:
        bucket, _, prefix = uri.removeprefix("gs://").partition("/")
        with failures(lambda error: f"cannot read {uri}: {detail(error)}"):
            listed = self._objects.list_blobs(
                bucket, prefix=prefix, max_results=MOST_FILES, timeout=TIMEOUT
            )
            try:
                blobs = {blob.name.removeprefix(prefix): blob for blob in listed}
                metrics, content = blobs.get(METRICS_FILE), b""
                if metrics is not None and (metrics.size or 0) <= MOST_METRICS_BYTES:
                    content = metrics.download_as_bytes(timeout=TIMEOUT)
            except NotFound:
                return RunFolder(())
        return RunFolder(tuple(sorted(name for name in blobs if name)), content)
