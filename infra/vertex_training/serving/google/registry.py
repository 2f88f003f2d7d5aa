"""The model registry of Vertex AI, and the runs of jobs with the folders that they left.

Reads are retried; an upload is sent once.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from google.api_core.exceptions import (
    FailedPrecondition,
    GoogleAPICallError,
    NotFound,
    RetryError,
)
from google.auth.exceptions import GoogleAuthError
from google.protobuf.json_format import ParseDict, ParseError

from vertex_training.customjob.google import job_service
from vertex_training.customjob.google.intent_store import TIMEOUT, storage_client
from vertex_training.customjob.google.job_service import (
    code_of,
    local_address,
    read,
    send_once,
    service_client,
)
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.errors import InDoubtError, NotSubmittedError, OperatorError
from vertex_training.serving.google import operations
from vertex_training.serving.google.operations import REFUSALS, GoogleOperations
from vertex_training.serving.protocol.ports import RunFolder, VersionRequest, VersionSnapshot
from vertex_training.serving.protocol.run_artifacts import METRICS_FILE

if TYPE_CHECKING:
    from google.cloud import storage

#: Seconds until a deletion has to have ended.
DELETE_DEADLINE = 120.0
#: The alias that exactly one version of a model has: ``Model.version_aliases``.
DEFAULT_ALIAS = "default"


def connect(project: str, region: str, account: str = "") -> GoogleRegistry:
    """The registry of a project's region, shared by all threads. Raises OperatorError."""
    return _connected(project, region, account, local_address(project))


@functools.lru_cache(maxsize=16)
def _connected(project: str, region: str, account: str, _address: str | None) -> GoogleRegistry:
    types = operations.ModelServiceClient, operations.ModelServiceGrpcTransport
    return GoogleRegistry(service_client(*types, project, region, account))


class GoogleRegistry(GoogleOperations):
    """``ports.ModelRegistry`` over the official client."""

    _client: operations.ModelServiceClient

    def upload(self, request: VersionRequest, body: str, labels: Mapping[str, str]) -> str:
        """Send the upload once: the model's first version, or one more of it."""
        message = json.loads(body)
        message["labels"] = {**message.get("labels", {}), **labels}
        model = operations.Model()
        try:
            ParseDict(message, type(model).pb(model))
        except ParseError as error:
            raise NotSubmittedError(f"the request is no Model, nothing was sent: {error}") from None
        there = self._get(request.model) is not None
        sent = operations.UploadModelRequest(
            parent=request.parent,
            model=model,
            parent_model=request.model if there else "",
            model_id="" if there else request.model_id,
        )
        operation = send_once(
            self._client.upload_model, f"the upload of {request.title}", REFUSALS, request=sent
        )
        if not operation.operation.name:
            raise InDoubtError("Vertex AI answered without an operation's name")
        return operation.operation.name

    def version(self, name: str) -> VersionSnapshot | None:
        """One version, by number or alias."""
        found = self._get(name)
        return _snapshot(found) if found is not None else None

    def versions(self, model: str) -> list[VersionSnapshot]:
        """All versions of a model."""

        def list_versions(**arguments: Any) -> list[operations.Model]:
            return list(self._client.list_model_versions(**arguments))

        try:
            return [_snapshot(each) for each in read(list_versions, name=model)]
        except NotFound:
            return []
        except FailedPrecondition as error:
            raise OperatorError(
                f"Vertex AI did not list versions of {model}: {error.message}"
            ) from None

    def delete_version(self, name: str) -> str:
        """Delete one version, or its model if it is the only one; why it was not.

        The service deletes no default version: the newest other one becomes it first.
        """
        model = name.partition("@")[0]
        there = self.versions(model)
        if not any(each.name == name for each in there):
            return ""
        try:
            if len(there) == 1:
                operation = read(self._client.delete_model, name=model)
            else:
                self._pass_default_on(name, there)
                operation = read(self._client.delete_model_version, name=name)
            operation.result(timeout=DELETE_DEADLINE)
        except NotFound:
            return ""
        except (GoogleAPICallError, TimeoutError) as error:
            return f"{code_of(error)}: {getattr(error, 'message', error)}"
        return ""

    def _pass_default_on(self, name: str, there: Sequence[VersionSnapshot]) -> None:
        found = self._get(name)
        if found is None or DEFAULT_ALIAS not in found.version_aliases:
            return
        newest = max((each for each in there if each.name != name), key=lambda each: each.created)
        aliases = [DEFAULT_ALIAS]
        read(self._client.merge_version_aliases, name=newest.name, version_aliases=aliases)

    def _get(self, name: str) -> operations.Model | None:
        try:
            return read(self._client.get_model, name=name)
        except NotFound:
            return None
        except FailedPrecondition as error:
            raise OperatorError(f"Vertex AI did not read {name}: {error.message}") from None


def _snapshot(model: operations.Model) -> VersionSnapshot:
    return VersionSnapshot(
        f"{model.name.partition('@')[0]}@{model.version_id}",
        type(model).pb(model).version_create_time.ToNanoseconds(),
        dict(model.labels),
        tuple(deployed_model.endpoint for deployed_model in model.deployed_models),
        model.artifact_uri,
    )


#: How many objects of a folder are looked at, and how large a file of metrics may be.
MOST_FILES: Final = 1000
MOST_METRICS_BYTES: Final = 256 * 1024


def connect_runs(project: str, region: str, account: str = "") -> GoogleRuns:
    """The runs of a project's region. Raises OperatorError."""
    jobs = job_service.connect(project, region, account=account)
    return GoogleRuns(jobs, storage_client(project, account))


class GoogleRuns:
    """``ports.Runs`` over the official clients."""

    def __init__(self, jobs: job_service.VertexJobs, objects: storage.Client) -> None:
        self._jobs, self._objects = jobs, objects

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """CustomJobs with all of these labels."""
        return self._jobs.labelled(parent, labels)

    def folder(self, uri: str) -> RunFolder:
        """The files below a URI, by names below it, and its metrics."""
        bucket, _, prefix = uri.removeprefix("gs://").partition("/")
        try:
            listed = self._objects.list_blobs(
                bucket, prefix=prefix, max_results=MOST_FILES, timeout=TIMEOUT
            )
            blobs = {blob.name.removeprefix(prefix): blob for blob in listed}
            metrics = blobs.get(METRICS_FILE)
            is_small = metrics is not None and (metrics.size or 0) <= MOST_METRICS_BYTES
            content = (
                metrics.download_as_bytes(timeout=TIMEOUT)
                if metrics is not None and is_small
                else b""
            )
        except NotFound:
            return RunFolder(())
        except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
            raise OperatorError(
                f"{uri} could not be read: {type(error).__name__}: "
                f"{getattr(error, 'message', error)}"
            ) from None
        return RunFolder(tuple(sorted(name for name in blobs if name)), content)
