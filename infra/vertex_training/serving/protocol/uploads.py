"""One request, one model version: the submission of jobs, over a model registry.

``UploadModel`` names no request, and the service numbers the versions. So the alias ``r-ID`` and
labels carry the identity of an upload, and a record in the control bucket decides which process
may send (``customjob.protocol.submission``, used as it is). An upload takes effect when its long
operation ends, which may be after the lease: so nobody looks for a version before every operation
on its model has ended. Imports neither Pulumi nor Google.
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

#: A version exists or does not: to the protocol it is a job that has succeeded.
EXISTS = "JOB_STATE_SUCCEEDED"
#: Digest of a version that has the alias of a request and no digest: nobody's request has it.
NO_DIGEST = "none"


def upload(
    request: VersionRequest,
    registry: ModelRegistry,
    intents: IntentStore,
    timing: Timing = Timing(),
    wait: OperationWait = OperationWait(),
) -> str:
    """Name of the version of this request, ``MODEL@VERSION``: uploaded now, or adopted.

    Raises:
        JobRefusedError: the model, or what has the request's alias, is not this stack's.
        NotSubmittedError: nothing was made, for certain; with the reason.
        InDoubtError: the answer was lost, and no version appeared in time.
    """
    if reason := foreign_model(request, registry):
        raise JobRefusedError(reason)
    uploads = _Uploads(request, registry, wait)
    version, _ = submit(request, uploads, intents, timing, wait.environment)
    uploads.delete_all_but(version.name)
    return version.name


def foreign_model(request: VersionRequest, registry: ModelRegistry) -> str:
    """Return why the stack may not add versions to the model; empty if it may, or none exists."""
    versions = registry.versions(request.model)
    own = {STACK_LABEL: request.stack, MODEL_LABEL: request.job}
    program = request.labels.get(PROGRAM_LABEL)
    # A version without the label is older than it.
    if not versions or any(
        own.items() <= dict(version.labels).items()
        and (not program or version.labels.get(PROGRAM_LABEL, program) == program)
        for version in versions
    ):
        return ""
    stack, other = (versions[0].labels.get(label) for label in (STACK_LABEL, PROGRAM_LABEL))
    owner = f"stack '{stack}'" if stack else "somebody outside of this program"
    if stack and other:
        owner += f" of program '{other}'"
    return (
        f"model '{request.job}': {request.model} is there and belongs to {owner}. Nothing was "
        "uploaded. Give the model another key in the stack file."
    )


class _Uploads:
    """``JobService`` over the versions of one model."""

    def __init__(
        self, request: VersionRequest, registry: ModelRegistry, wait: OperationWait
    ) -> None:
        self._request, self._registry, self._wait = request, registry, wait

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:  # noqa: ARG002 (the request has it)
        """Send the upload once, and wait for the end of its operation."""
        request = self._request
        name = self._registry.upload(request, body, labels)
        try:
            ended = wait_for_operation(self._registry, name, request.title, self._wait)
        except OperatorError as error:
            raise InDoubtError(str(error)) from None
        if ended.error:
            refused = PermissionDeniedError if ended.is_permission else NotSubmittedError
            raise refused(f"{request.title} was not uploaded: {ended.error}")
        if found := self._registry.version(f"{request.model}@{request.alias}"):
            return _snapshot(found)
        raise InDoubtError(f"{request.title}: the upload ended, and its version is not there")

    def get(self, name: str) -> JobSnapshot | None:
        """The version, or None if it does not exist, or another request has its number now."""
        found, own = self._registry.version(name), self._request.request_id
        is_own = found is not None and found.labels.get(REQUEST_ID_LABEL, own) == own
        return _snapshot(found) if found and is_own else None

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:  # noqa: ARG002 (the request has it)
        """The version with the request's alias, and all with its label, once no upload runs."""
        request = self._request
        wait_until_idle(self._registry, request.model, request.title, self._wait)
        by_alias = self._registry.version(f"{request.model}@r-{request_id}")
        found = [by_alias] if by_alias else []
        found += [
            version
            for version in self._registry.versions(request.model)
            if version.labels.get(REQUEST_ID_LABEL) == request_id
        ]
        return [_snapshot(version) for version in {each.name: each for each in found}.values()]

    def cancel(self, name: str) -> None:
        """Does nothing: a version does not run."""

    def delete(self, name: str) -> None:
        """Delete the version, unless something uses it."""
        self._registry.delete_version(name)

    def delete_all_but(self, kept: str) -> None:
        """Of several versions of one request keep one; the others have only just been made."""
        try:
            for version in self.find(self._request.parent, self._request.request_id):
                if version.name != kept and version.digest != NO_DIGEST:
                    self.delete(version.name)
        except OperatorError:
            return  # the version exists; an error would make the engine forget it


def _snapshot(version: VersionSnapshot) -> JobSnapshot:
    digest = version.labels.get(DIGEST_LABEL) or NO_DIGEST
    return JobSnapshot(version.name, EXISTS, version.created, digest)
