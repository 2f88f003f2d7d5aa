"""Uploads each model version once, with the protocol that submits jobs.

``UploadModel`` has no request id, and the service numbers the versions. So the alias ``r-ID`` and
labels store the identity of an upload, and a record in the control bucket determines which process
can send (``customjob.protocol.submission``, unchanged). An upload takes effect at the end of its
long operation, possibly after the lease: so a process looks for a version only after all operations
on the model have ended. Imports neither Pulumi nor Google.
"""

from __future__ import annotations

from collections.abc import Mapping

from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    PROGRAM_LABEL,
    REQUEST_ID_LABEL,
    STACK_LABEL,
    IntentStore,
    JobSnapshot,
    Timing,
)
from vertex_training.customjob.protocol.submission import submit
from vertex_training.errors import (
    InDoubtError,
    JobRefusedError,
    NotSubmittedError,
    OperatorError,
    PermissionDeniedError,
)
from vertex_training.serving.declared import MODEL_LABEL
from vertex_training.serving.protocol.ports import (
    ModelRegistry,
    OperationWait,
    VersionRequest,
    VersionSnapshot,
    wait_for_operation,
    wait_until_idle,
)

#: For the protocol, an existing version is a succeeded job.
EXISTS = "JOB_STATE_SUCCEEDED"
#: Digest for a version with a request's alias but without digest label; equals no real digest.
NO_DIGEST = "none"


def upload(
    request: VersionRequest,
    registry: ModelRegistry,
    intents: IntentStore,
    timing: Timing = Timing(),
    wait: OperationWait = OperationWait(),
) -> str:
    """Upload or adopt the version for this request, and return its name, ``MODEL@VERSION``.

    Raises:
        JobRefusedError: the model, or the version with the request's alias, is not this stack's.
        NotSubmittedError: certainly no version was created; with the reason.
        InDoubtError: the response was lost, and no version appeared in time.
    """
    if reason := foreign_model(request, registry):
        raise JobRefusedError(reason)
    uploads = _Uploads(request, registry, wait)
    version, _ = submit(request, uploads, intents, timing, wait.environment)
    uploads.delete_all_but(version.name)
    return version.name


def foreign_model(request: VersionRequest, registry: ModelRegistry) -> str:
    """Return the reason why the stack cannot add versions to the model; empty without a reason."""
    versions = registry.versions(request.model)
    own = {STACK_LABEL: request.stack, MODEL_LABEL: request.job}
    program = request.labels.get(PROGRAM_LABEL)
    # Versions older than the label do not have it.
    if not versions or any(
        own.items() <= dict(version.labels).items()
        and (not program or version.labels.get(PROGRAM_LABEL, program) == program)
        for version in versions
    ):
        return ""
    stack, other = (versions[0].labels.get(label) for label in (STACK_LABEL, PROGRAM_LABEL))
    owner = f"stack '{stack}'" if stack else "no stack"
    if stack and other:
        owner += f" of program '{other}'"
    return (
        f"{request.model}, which model '{request.job}' would use, already exists and belongs to "
        f"{owner}. Nothing was uploaded. Rename the key of the model in the stack file."
    )


class _Uploads:
    """``JobService`` for the versions of a model."""

    def __init__(
        self, request: VersionRequest, registry: ModelRegistry, wait: OperationWait
    ) -> None:
        self._request, self._registry, self._wait = request, registry, wait

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:  # noqa: ARG002 (the request has it)
        """Send the upload once, and wait until its operation ends."""
        request = self._request
        name = self._registry.upload(request, body, labels)
        try:
            ended = wait_for_operation(self._registry, name, request.title, self._wait)
        except OperatorError as error:
            raise InDoubtError(str(error)) from None
        if ended.error:
            refused = PermissionDeniedError if ended.is_permission else NotSubmittedError
            raise refused(f"{request.title} was not uploaded: {ended.error}")
        if version := self._registry.version(f"{request.model}@{request.alias}"):
            return _snapshot(version)
        raise InDoubtError(f"{request.title}: the upload ended, but its version does not exist")

    def get(self, name: str) -> JobSnapshot | None:
        """Return the version; None if it does not exist or belongs to another request."""
        version, own = self._registry.version(name), self._request.request_id
        is_own = version is not None and version.labels.get(REQUEST_ID_LABEL, own) == own
        return _snapshot(version) if version and is_own else None

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:  # noqa: ARG002 (the request has it)
        """Wait for running uploads, and return all versions with the request's alias or label."""
        request = self._request
        wait_until_idle(self._registry, request.model, request.title, self._wait)
        by_alias = self._registry.version(f"{request.model}@r-{request_id}")
        versions = [by_alias] if by_alias else []
        versions += [
            version
            for version in self._registry.versions(request.model)
            if version.labels.get(REQUEST_ID_LABEL) == request_id
        ]
        return [_snapshot(version) for version in {v.name: v for v in versions}.values()]

    def cancel(self, name: str) -> None:
        """Do nothing: a version has no run to cancel."""

    def delete(self, name: str) -> None:
        """Delete the version unless it is deployed."""
        self._registry.delete_version(name)

    def delete_all_but(self, name: str) -> None:
        """Delete the other new versions of the request."""
        try:
            for version in self.find(self._request.parent, self._request.request_id):
                if version.name != name and version.digest != NO_DIGEST:
                    self.delete(version.name)
        except OperatorError:
            return  # the version exists; after an error the engine would not store it


def _snapshot(version: VersionSnapshot) -> JobSnapshot:
    digest = version.labels.get(DIGEST_LABEL) or NO_DIGEST
    return JobSnapshot(version.name, EXISTS, version.created, digest)
