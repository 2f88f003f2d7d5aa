"""``google.cloud.aiplatform.v1.ModelService``: versions of models, their aliases and artifacts.

A version is listed after its upload has succeeded. The service copies the artifacts, so later
changes of the bucket have no effect.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

import grpc
from google.api_core.exceptions import Conflict, GoogleAPICallError
from google.longrunning import operations_pb2

from localgcp.apis.client import Api, model, operation
from localgcp.apis.client import model_service as requests
from localgcp.apis.server import failed_precondition, invalid_argument, not_found
from localgcp.errors import ApiError, ServerStoppingError
from localgcp.runner.gcsfuse import storage_client
from localgcp.serving import checks
from localgcp.serving.records import (
    ACCOUNT,
    BEGUN_BY,
    COPY,
    DEFAULT,
    EndpointTable,
    VersionTable,
    versioned,
)
from localgcp.vertex.checks import check_account
from localgcp.vertex.collections import (
    Body,
    Collection,
    ResourceReader,
    ResourceTable,
    serves,
    to_body,
    to_message,
)
from localgcp.vertex.operations import OperationRunner
from localgcp.vertex.records import new_id, now
from localgcp.vertex.service import JobService

#: Fields of an upload that a version keeps; the stand-in has no use for the last ones.
_SENT: Final = (
    *("displayName", "description", "versionDescription", "labels"),
    *("containerSpec", "artifactUri", "versionAliases", "encryptionSpec"),
    *("predictSchemata", "metadata", "metadataSchemaUri", "explanationSpec"),
)
MODELS: Final = Collection(model.Model, "model", "models", requests)


@serves(MODELS)
class ModelService(ResourceReader):
    """Models with their versions, one of which is the default."""

    api: ClassVar = Api("google.cloud.aiplatform_v1", "model_service")

    def __init__(
        self,
        jobs: JobService,
        table: ResourceTable,
        endpoints: EndpointTable,
        runner: OperationRunner,
        storage_url: str,
    ) -> None:
        self._versions, self._endpoints = VersionTable(table), endpoints
        super().__init__(jobs.store, jobs.operations, self._versions)
        self._runner, self._storage_url = runner, storage_url
        self._lock = threading.RLock()  # held between reading and writing a version
        runner.register("UploadModel", self._upload)

    def find(self, name: str, context: Any) -> Body:
        """Return a version with its DeployedModels."""
        version = super().find(name, context)
        uses = [
            {"endpoint": endpoint["name"], "deployedModelId": deployed["id"]}
            for endpoint in self._endpoints.all()
            for deployed in endpoint["deployedModels"]
            if (deployed["model"].partition("@")[0], deployed["modelVersionId"])
            == (version["name"], version["versionId"])
        ]
        return {**version, "deployedModels": uses}

    def upload_model(
        self, request: requests.UploadModelRequest, context: Any
    ) -> operations_pb2.Operation:
        """Upload a new model, or a new version of an existing model."""
        place = self.canonical(request.parent, context)
        sent = to_body(MODELS, request.model)
        body = {key: sent[key] for key in _SENT if key in sent}
        project, region = checks.project_of(self.store, place)
        checks.check_model(self.store, project, region, body)
        check_account(self.store, request.service_account)
        name, is_new = self._target(request, place, context)
        if request.service_account:
            body[ACCOUNT] = request.service_account
        work = {"name": name, "new": is_new, "model": body}
        generic = operation.GenericOperationMetadata()
        metadata = requests.UploadModelOperationMetadata(generic_metadata=generic)
        return self._runner.begin(name, "UploadModel", work, metadata)

    def _target(
        self, request: requests.UploadModelRequest, place: str, context: Any
    ) -> tuple[str, bool]:
        if request.parent_model:
            parent = super().find(request.parent_model, context)
            if not parent["name"].startswith(f"{place}/"):
                text = f"parent_model {request.parent_model} is not in {request.parent}."
                raise invalid_argument(text)
            return parent["name"], False
        id_ = request.model_id or new_id()
        if request.model_id and not re.fullmatch(checks.MODEL_ID, id_):
            raise invalid_argument(f"Invalid model_id: {id_!r}; valid ids are {checks.MODEL_ID}.")
        name = f"{place}/models/{id_}"
        if self._versions.versions(name):
            raise _exists(name)
        return name, True

    def _upload(self, name: str, work: Mapping[str, Any]) -> requests.UploadModelResponse:
        body: Body = dict(work["model"])
        uri = body.get("artifactUri")
        stopping = self._runner.stopping
        copied = _copy_artifacts(self._storage_url, uri, name, stopping) if uri else ""
        if stopping.is_set():
            raise ServerStoppingError
        with self._lock:
            target: str = work["name"]
            others = self._versions.versions(target)
            made = next((other for other in others if other.get(BEGUN_BY) == name), None)
            if made is None:
                if bool(others) is work["new"]:
                    raise _exists(target) if others else not_found(target, "Model")
                made = self._version(body, target, others)
                self._versions.put({**made, COPY: copied, BEGUN_BY: name})
        return requests.UploadModelResponse(model=made["name"], model_version_id=made["versionId"])

    def _version(self, body: Body, name: str, others: list[Body]) -> Body:
        time = now()
        aliases = {*body.get("versionAliases", []), *([] if others else [DEFAULT])}
        return {
            **body,
            "name": name,
            "versionId": self._versions.next_id(name),
            "versionAliases": sorted(aliases),
            "createTime": others[0]["createTime"] if others else time,
            "updateTime": time,
            "versionCreateTime": time,
            "versionUpdateTime": time,
            "etag": new_id(),
            "supportedDeploymentResourcesTypes": ["DEDICATED_RESOURCES"],
        }

    def list_model_versions(
        self, request: requests.ListModelVersionsRequest, context: Any
    ) -> requests.ListModelVersionsResponse:
        """Return all versions of a model, oldest first."""
        name = super().find(request.name.partition("@")[0], context)["name"]
        versions, token = self.paged(self._versions.versions(name), request)
        return requests.ListModelVersionsResponse(
            models=[to_message(MODELS, version) for version in versions], next_page_token=token
        )

    def merge_version_aliases(
        self, request: requests.MergeVersionAliasesRequest, context: Any
    ) -> model.Model:
        """Add aliases to a version, or remove aliases. Other versions lose the added aliases."""
        with self._lock:
            version = self.find(request.name, context)
            held = version.get("versionAliases", [])
            version["versionAliases"] = checks.merged_aliases(held, request.version_aliases)
            self._versions.put(version | {"versionUpdateTime": now(), "etag": new_id()})
        return to_message(MODELS, version)

    def delete_model_version(
        self, request: requests.DeleteModelVersionRequest, context: Any
    ) -> operations_pb2.Operation:
        """Delete a version that is not deployed, not the default and not the only version."""
        with self._lock:
            version = self.find(request.name, context)
            if "@" not in request.name:
                text = f"Invalid resource name: {request.name!r}; the version is missing."
                raise invalid_argument(text)
            text = ""
            if len(self._versions.versions(version["name"])) == 1:
                text = "is the only version of its model; delete the model instead."
            elif DEFAULT in version.get("versionAliases", []):
                text = "is the default version: move the alias default to another version first."
            if text:
                raise failed_precondition(f"{versioned(version)} {text}")
            self._refuse_deployed([version])
            self._versions.delete(versioned(version))
        return self._deleted([version])

    def delete(self, name: str, context: Any) -> operations_pb2.Operation:
        """Delete a model with all its versions, if no version is deployed."""
        with self._lock:
            base = super().find(name.partition("@")[0], context)["name"]
            versions = self._versions.versions(base)
            self._refuse_deployed([self.find(versioned(e), context) for e in versions])
            self._versions.delete(base)
        return self._deleted(versions)

    def _refuse_deployed(self, versions: list[Body]) -> None:
        for version in versions:
            for use in version["deployedModels"]:
                raise failed_precondition(
                    f"{versioned(version)} is deployed as DeployedModel {use['deployedModelId']} "
                    f"of {use['endpoint']}: undeploy the model first."
                )

    def _deleted(self, versions: list[Body]) -> operations_pb2.Operation:
        for version in versions:
            _remove_artifacts(self._storage_url, version.get(COPY, ""))
        return self.operations.deleted(versions[0]["name"])


def _exists(name: str) -> ApiError:
    return ApiError(grpc.StatusCode.ALREADY_EXISTS, f"Model {name} already exists.")


def _copy_artifacts(url: str, uri: str, name: str, stopping: threading.Event) -> str:
    """Copy the objects below ``uri`` for the operation ``name``; return the URI of the copy."""
    _, number, _, region, _, model, _, operation = name.split("/")
    client: Any = storage_client(url)
    bucket, _, folder = uri.removeprefix("gs://").partition("/")
    folder = f"{folder.rstrip('/')}/" if folder.strip("/") else ""
    # Google also copies artifacts to a bucket of another project.
    target, below = f"caip-tenant-{number}-{region}", f"{model}/{operation}/artifacts/"
    count = 0
    try:
        with suppress(Conflict):  # the bucket exists since an earlier upload
            client.create_bucket(target)
        for blob in client.list_blobs(bucket, prefix=folder):
            if stopping.is_set():
                break
            if rest := blob.name.removeprefix(folder):
                client.bucket(bucket).copy_blob(blob, client.bucket(target), f"{below}{rest}")
                count += 1
    except GoogleAPICallError as error:
        text = f"The artifacts at {uri} cannot be read: {error.message}"
        raise failed_precondition(text) from None
    if not count and not stopping.is_set():
        text = f"{uri} has no objects; the artifacts of a model must be below this URI."
        raise failed_precondition(text)
    return f"gs://{target}/{below.removesuffix('/')}"


def _remove_artifacts(url: str, uri: str) -> None:
    if not uri:
        return
    client: Any = storage_client(url)
    bucket, _, folder = uri.removeprefix("gs://").partition("/")
    for blob in client.list_blobs(bucket, prefix=f"{folder}/"):
        blob.delete()
