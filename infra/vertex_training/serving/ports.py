"""Interfaces to the services for models and endpoints, their values, and waits. Pure.

``serving.google`` implements the interfaces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from vertex_training.customjob.protocol.ports import (
    JobSnapshot,
    ProcessEnvironment,
    SubmissionRequest,
)
from vertex_training.customjob.protocol.waiting import PollBackoff, format_duration
from vertex_training.errors import OperatorError


@dataclass(frozen=True, slots=True)
class VersionRequest(SubmissionRequest):
    """An upload. ``job`` is the model's key in the stack file, ``body`` the ``Model`` as JSON."""

    model_id: str = ""
    alias: str = ""

    @property
    def model(self) -> str:
        """Return the resource name of the model."""
        return f"{self.parent}/models/{self.model_id}"

    @property
    def turn_key(self) -> str:
        """Return a key for this run of the model. Other runs have other keys."""
        return f"{self.parent.rpartition('/')[2]}/{self.job}.run-{self.run}"

    @property
    def title(self) -> str:
        return f"run {self.run} of model '{self.job}'"

    @property
    def renewal(self) -> str:
        return (
            f"If that version is not in use, remove its alias {self.alias}. Otherwise rename the "
            "key of the model in the stack file."
        )

    @property
    def is_repeatable(self) -> bool:
        """Return True: to upload a deleted version again costs nothing and loses no data."""
        return True


@dataclass(frozen=True, slots=True)
class VersionSnapshot:
    """A version of a model as Vertex AI returned it."""

    name: str
    """``projects/P/locations/R/models/ID@VERSION``."""
    created: int
    """Time of creation, in nanoseconds since 1970."""
    labels: Mapping[str, str]
    endpoints: Sequence[str] = ()
    """Names of the endpoints with this version."""
    artifact_uri: str = ""
    """Folder of the artifacts, a ``gs://`` URI."""


@dataclass(frozen=True, slots=True)
class OperationSnapshot:
    """A long-running operation. ``error`` is empty unless the operation has failed."""

    name: str
    done: bool
    error: str = ""
    is_permission: bool = False
    """True if the operation failed because of a missing permission."""


class Operations(Protocol):
    """Long-running operations, including those that other processes started."""

    def operation(self, name: str) -> OperationSnapshot:
        """Return the operation's current state. An unknown operation counts as done."""
        ...

    def running(self, resource: str) -> list[str]:
        """Return the names of running operations on a model or an endpoint."""
        ...


class ModelRegistry(Operations, Protocol):
    """Calls of the model registry."""

    def upload(self, request: VersionRequest, body: str, labels: Mapping[str, str]) -> str:
        """Send the upload once, and return the name of the operation.

        Raises NotSubmittedError or InDoubtError.
        """
        ...

    def version(self, name: str) -> VersionSnapshot | None:
        """Return the version ``MODEL@VERSION`` or ``MODEL@ALIAS``; None if it does not exist."""
        ...

    def versions(self, model: str) -> list[VersionSnapshot]:
        """Return all versions of a model; empty if the model does not exist."""
        ...

    def delete_version(self, name: str) -> str:
        """Delete a version, or the model with its last version. Return an error; empty if none."""
        ...


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployed version of a model, as observed or as declared."""

    id: str
    version: str
    """``projects/P/locations/R/models/ID@VERSION``."""
    display_name: str
    minimum: int
    maximum: int
    machine: Mapping[str, Any] = field(default_factory=dict, compare=False, hash=False)
    account: str = ""


@dataclass(frozen=True, slots=True)
class EndpointSnapshot:
    """An endpoint as Vertex AI returned it."""

    name: str
    deployed: Mapping[str, Deployment]
    """Deployed models by id."""
    split: Mapping[str, int]
    """Percentages of the traffic above 0, by the id of the deployed model."""
    etag: str = ""


class Endpoints(Operations, Protocol):
    """Calls on an endpoint. All except ``get`` raise NotSubmittedError or InDoubtError."""

    def get(self, name: str) -> EndpointSnapshot | None:
        """Return the endpoint; None if the endpoint does not exist."""
        ...

    def deploy(self, name: str, deployment: Deployment) -> str:
        """Deploy a version without traffic, and return the name of the operation."""
        ...

    def resize(self, name: str, deployment: Deployment) -> str:
        """Change the minimum and maximum of replicas, and return the name of the operation."""
        ...

    def undeploy(self, name: str, id_: str) -> str:
        """Undeploy a version, and return the name of the operation."""
        ...

    def set_split(self, name: str, split: Mapping[str, int], etag: str) -> None:
        """Write the whole traffic split at once. Raises PreconditionFailedError on a conflict."""
        ...


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The content of a folder of artifacts."""

    files: Sequence[str]
    """Names of the files, relative to the folder. Long lists are cut off."""
    metrics: bytes = b""
    """Content of ``metrics.json``; empty if the file does not exist."""


class Runs(Protocol):
    """Read-only access to the jobs and folders of runs."""

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """Return the CustomJobs with all these labels."""
        ...

    def folder(self, uri: str) -> RunFolder:
        """Return the objects below a ``gs://`` URI that ends with ``/``."""
        ...


@dataclass(frozen=True, slots=True)
class OperationWait:
    """Time limits for an operation, and a function that receives its progress."""

    environment: ProcessEnvironment = ProcessEnvironment()
    backoff: PollBackoff = PollBackoff()
    longest: float = 7_800.0
    """Maximum number of seconds. A container may start for two hours (``deploymentTimeout``)."""
    doubt: float = 90.0
    """Number of seconds to look for the result of a call whose response was lost."""
    report: Callable[[str], None] = lambda _: None


def wait_for_operation(
    operations: Operations, name: str, what: str, wait: OperationWait
) -> OperationSnapshot:
    """Wait until an operation has ended, and return the operation, even if it failed.

    Raises:
        OperatorError: the operation exceeded ``OperationWait.longest``, and continues.
    """
    clock = wait.environment.monotonic
    began = heard = clock()
    pause = wait.backoff.initial
    while not (result := operations.operation(name)).done:
        now = clock()
        if now - began > wait.longest:
            raise OperatorError(
                f"{what}: operation {name} is still running after "
                f"{format_duration(now - began)}. Run `pulumi up` again to wait for the operation."
            )
        if now - heard >= wait.backoff.heartbeat:
            wait.report(f"{what}: still running after {format_duration(now - began)}")
            heard = now
        wait.environment.sleep(pause)
        pause = min(pause * 1.5, wait.backoff.maximum)
    return result


def wait_until_idle(operations: Operations, resource: str, what: str, wait: OperationWait) -> None:
    """Wait until no operation runs on a model or an endpoint. Raises OperatorError."""
    for name in operations.running(resource):
        wait.report(f"{what}: waiting for the running operation {name}")
        wait_for_operation(operations, name, what, wait)
