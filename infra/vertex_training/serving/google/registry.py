"""Calls the model registry, and finds jobs of runs and their folders.

Reads are retried; an upload is sent once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from google.api_core.exceptions import GoogleAPICallError, NotFound

from vertex_training.customjob.google import job_service
from vertex_training.customjob.google.intent_store import TIMEOUT, detail, failures, storage_client
from vertex_training.customjob.google.job_service import (
    code_of,
    operation_name,
    read,
    read_or_none,
    send_once,
    shared,
    to_proto,
)
from vertex_training.customjob.protocol.ports import JobSnapshot
from vertex_training.serving.google import operations
from vertex_training.serving.google.operations import REFUSALS, GoogleOperations
from vertex_training.serving.protocol.ports import RunFolder, VersionRequest, VersionSnapshot
from vertex_training.serving.protocol.run_artifacts import METRICS_FILE

if TYPE_CHECKING:
    from google.cloud import storage

#: Time limit of a deletion in seconds.
DELETE_DEADLINE = 120.0
#: Alias of exactly one version of a model: ``Model.version_aliases``.
DEFAULT_ALIAS = "default"


def connect(project: str, region: str, account: str = "") -> GoogleRegistry:
    """Return the registry of a project's region, shared by all threads. Raises OperatorError."""
    types = operations.ModelServiceClient, operations.ModelServiceGrpcTransport
    return GoogleRegistry(shared(*types, project, region, account))


class GoogleRegistry(GoogleOperations):
    """``ports.ModelRegistry`` with the official client."""

    _client: operations.ModelServiceClient

    def upload(self, request: VersionRequest, body: str, labels: Mapping[str, str]) -> str:
        """Send the upload once: of a model's first version, or of a further version."""
        model = to_proto(operations.Model, json.loads(body), labels)
        exists = self._get(request.model) is not None
        sent = operations.UploadModelRequest(
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
        """Return a version by its number or alias; None if missing."""
        model = self._get(name)
        return _snapshot(model) if model is not None else None

    def versions(self, model: str) -> list[VersionSnapshot]:
        """Return all versions of a model."""

        def list_versions(**arguments: Any) -> list[operations.Model]:
            return list(self._client.list_model_versions(**arguments))

        versions = read_or_none(list_versions, f"list versions of {model}", name=model) or ()
        return [_snapshot(version) for version in versions]

    def delete_version(self, name: str) -> str:
        """Delete a version, or the model if it has no other. Return an error, or an empty text.

        The service cannot delete the default version: the newest other version becomes the default.
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

    def _get(self, name: str) -> operations.Model | None:
        return read_or_none(self._client.get_model, f"read {name}", name=name)


def _snapshot(model: operations.Model) -> VersionSnapshot:
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
    """Return access to the runs in a project's region. Raises OperatorError."""
    jobs = job_service.connect(project, region, account=account)
    return GoogleRuns(jobs, storage_client(project, account))


class GoogleRuns:
    """``ports.Runs`` with the official clients."""

    def __init__(self, jobs: job_service.VertexJobs, objects: storage.Client) -> None:
        self._jobs, self._objects = jobs, objects

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """Return the CustomJobs with all these labels."""
        return self._jobs.labelled(parent, labels)

    def folder(self, uri: str) -> RunFolder:
        """Return the names of the files below a URI, and the content of the metrics."""
        bucket, _, prefix = uri.removeprefix("gs://").partition("/")
        with failures(lambda error: f"{uri} could not be read: {detail(error)}"):
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
