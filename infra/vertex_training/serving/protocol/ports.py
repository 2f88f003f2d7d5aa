"""Ports of models and endpoints, their values, and waits for long operations. Pure.

The modules of ``google`` implement the ports. An operation outlives the process that began it.
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
    """One upload. ``job`` is the key of the model, ``body`` the ``Model`` as JSON."""

    model_id: str = ""
    alias: str = ""

    @property
    def model(self) -> str:
        """Resource name of the model."""
        return f"{self.parent}/models/{self.model_id}"

    @property
    def turn_key(self) -> str:
        """Of this run of the model alone: versions of other runs are no earlier requests of it."""
        return f"{self.parent.rpartition('/')[2]}/{self.job}.run-{self.run}"

    @property
    def title(self) -> str:
        return f"run {self.run} of model '{self.job}'"

    @property
    def renewal(self) -> str:
        return f"Remove its alias {self.alias} if it is nobody's version, or rename the model."

    @property
    def is_repeatable(self) -> bool:
        """A version that somebody deleted is made anew: that costs nothing and loses nothing."""
        return True


@dataclass(frozen=True, slots=True)
class VersionSnapshot:
    """One version of a model as Vertex AI returned it."""

    name: str
    """``projects/P/locations/R/models/ID@VERSION``."""
    created: int
    """Nanoseconds since 1970."""
    labels: Mapping[str, str]
    endpoints: Sequence[str] = ()
    """Names of the endpoints where it is deployed."""
    artifact_uri: str = ""
    """The folder that it was made of, as ``gs://`` URI."""


@dataclass(frozen=True, slots=True)
class OperationSnapshot:
    """A long operation; ``error`` is empty while it runs and if it succeeded."""

    name: str
    done: bool
    error: str = ""
    is_permission: bool = False
    """True if it failed for a missing permission."""


class Operations(Protocol):
    """Long operations, whoever began them."""

    def operation(self, name: str) -> OperationSnapshot:
        """The operation as it is. One that is no longer known counts as done."""
        ...

    def running(self, resource: str) -> list[str]:
        """Names of the operations on a model or an endpoint that have not ended."""
        ...


class ModelRegistry(Operations, Protocol):
    """The calls on models that an upload needs."""

    def upload(self, request: VersionRequest, body: str, labels: Mapping[str, str]) -> str:
        """Send the upload once; the name of its operation.

        Raises NotSubmittedError or InDoubtError.
        """
        ...

    def version(self, name: str) -> VersionSnapshot | None:
        """The version ``MODEL@VERSION`` or ``MODEL@ALIAS``; None if there is none."""
        ...

    def versions(self, model: str) -> list[VersionSnapshot]:
        """All versions of a model; none if it does not exist."""
        ...

    def delete_version(self, name: str) -> str:
        """Delete one version, or its model if it is the only one. Why it was not; empty if so."""
        ...


@dataclass(frozen=True, slots=True)
class Deployment:
    """One version as it is, or is to be, behind an endpoint."""

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
    """By id."""
    split: Mapping[str, int]
    """Share by id; those without traffic are left out."""
    etag: str = ""


class Endpoints(Operations, Protocol):
    """The calls on one endpoint. Each but ``get`` raises NotSubmittedError or InDoubtError."""

    def get(self, name: str) -> EndpointSnapshot | None:
        """The endpoint, or None if it does not exist."""
        ...

    def deploy(self, name: str, deployment: Deployment) -> str:
        """Deploy a version without traffic; the name of the operation."""
        ...

    def resize(self, name: str, deployment: Deployment) -> str:
        """Change how many replicas there are; the name of the operation."""
        ...

    def undeploy(self, name: str, id_: str) -> str:
        """Take a version away; the name of the operation."""
        ...

    def set_split(self, name: str, split: Mapping[str, int], etag: str) -> None:
        """Write the whole split in one call. Raises PreconditionFailedError: it has changed."""
        ...


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Return the contents of the folder that becomes a version."""

    files: Sequence[str]
    """Names below the folder, at most some hundreds."""
    metrics: bytes = b""
    """The content of ``metrics.json``; empty without one."""


class Runs(Protocol):
    """Read-only access to the records and jobs of runs."""

    def jobs(self, parent: str, labels: Mapping[str, str]) -> list[JobSnapshot]:
        """CustomJobs with all of these labels."""
        ...

    def folder(self, uri: str) -> RunFolder:
        """Return the objects below a ``gs://`` URI that ends with ``/``."""
        ...


@dataclass(frozen=True, slots=True)
class OperationWait:
    """Time limits of one operation, and the receiver of its progress."""

    environment: ProcessEnvironment = ProcessEnvironment()
    backoff: PollBackoff = PollBackoff()
    longest: float = 7_800.0
    """Seconds. A container may take two hours to start (``deploymentTimeout``)."""
    doubt: float = 90.0
    """Seconds to look for the result of a call whose answer was lost."""
    report: Callable[[str], None] = lambda _: None


def wait_for_operation(
    operations: Operations, name: str, what: str, wait: OperationWait
) -> OperationSnapshot:
    """The operation once it has ended, whatever its end was.

    Raises:
        OperatorError: it runs for longer than ``OperationWait.longest``, and goes on.
    """
    clock = wait.environment.monotonic
    began = heard = clock()
    pause = wait.backoff.initial
    while not (result := operations.operation(name)).done:
        now = clock()
        if now - began > wait.longest:
            raise OperatorError(
                f"{what}: the operation has not ended after {format_duration(now - began)}, and "
                f"goes on: {name}. Run `pulumi up` again to wait for it."
            )
        if now - heard >= wait.backoff.heartbeat:
            wait.report(f"{what}: not done after {format_duration(now - began)}")
            heard = now
        wait.environment.sleep(pause)
        pause = min(pause * 1.5, wait.backoff.maximum)
    return result


def wait_until_idle(operations: Operations, resource: str, what: str, wait: OperationWait) -> None:
    """Return when no operation of anybody runs on a model or an endpoint.

    Raises:
        OperatorError: one runs for too long.
    """
    for name in operations.running(resource):
        wait.report(f"{what}: waits for an operation that runs already, {name}")
        wait_for_operation(operations, name, what, wait)
