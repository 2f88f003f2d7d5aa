"""Checks the artifacts of a run, and uploads each model version once. Pure.

``UploadModel`` has no request id, and the service numbers the versions. So labels and the alias
``r-ID`` store the identity of an upload, and a record in the control bucket determines the process
that can send (``customjob.protocol.submission``). An upload takes effect at the end of its long
operation, which can be after the lease: so all operations on the model must end before a process
looks for a version.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.protocol.ports import (
    DIGEST_LABEL,
    FAILED,
    JOB_LABEL,
    PROGRAM_LABEL,
    REQUEST_ID_LABEL,
    RUN_LABEL,
    STACK_LABEL,
    SUCCEEDED,
    TERMINAL,
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
from vertex_training.serving.declared import MODEL_LABEL, ModelSource
from vertex_training.serving.ports import (
    ModelRegistry,
    OperationWait,
    RunFolder,
    Runs,
    VersionRequest,
    VersionSnapshot,
    wait_for_operation,
    wait_until_idle,
)

#: Name of the file with metrics that this project's jobs write beside a model.
METRICS_FILE: Final = "metrics.json"
#: Maximum number of metrics that a version stores.
MOST_METRICS: Final = 50
#: Valid names of metrics. Reports contain these names.
_METRIC: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.@/-]{0,63}")


@dataclass(frozen=True, slots=True)
class RunArtifacts:
    """The job of a run, and the artifacts that the job wrote."""

    job: str
    state: str
    artifact_uri: str
    metrics: Mapping[str, float] = field(default_factory=dict)

    def inputs(self) -> dict[str, Any]:
        """Return the artifacts as inputs of the resource ``ModelVersion``."""
        return {
            "job": self.job,
            "state": self.state,
            "artifactUri": self.artifact_uri,
            "metrics": dict(self.metrics),
        }


def find_artifacts(
    source: ModelSource, artifacts: str, files: Sequence[str], runs: Runs
) -> RunArtifacts:
    """Return the artifacts of a run that has succeeded.

    Raises:
        JobRefusedError: the run does not exist or has not succeeded, or its folder lacks files.
        OperatorError: Google Cloud did not respond.
    """
    job = _succeeded(source, _jobs_of(source, runs))
    title = f"run {source.run} of job '{source.job}' ({job.name})"
    if not job.output:
        raise JobRefusedError(
            f"{title} has no output directory. Add `baseOutputDirectory` to the job file, and "
            "raise `run` of the job."
        )
    uri = f"{job.output.rstrip('/')}/{artifacts}/"
    folder = runs.folder(uri)
    if not folder.files:
        raise JobRefusedError(
            f"{title} wrote no files to {uri}. Write the model to the folder AIP_MODEL_DIR in the "
            "job's code, or set `artifacts` of the model to another folder."
        )
    if missing := [file for file in files if file not in folder.files]:
        existing = ", ".join(sorted(folder.files)[:10])
        raise JobRefusedError(
            f"{title} did not write {', '.join(missing)} to {uri}, although `files` of the model "
            f"lists these files. The folder has only: {existing}."
        )
    return RunArtifacts(job.name, job.short_state, uri.rstrip("/"), metrics_of(folder))


def artifacts_of_version(
    source: ModelSource, artifacts: str, version: VersionSnapshot, runs: Runs
) -> RunArtifacts:
    """Return the artifacts of an existing version; without a job if the job is ambiguous.

    The version's folder identifies the job, because the job file may have been edited since.
    """
    uri = version.artifact_uri.rstrip("/")
    jobs = [
        job
        for job in _jobs_of(source, runs)
        if job.state in SUCCEEDED
        and job.created <= version.created
        and f"{job.output.rstrip('/')}/{artifacts}" == uri
    ]
    if len(jobs) != 1:
        return RunArtifacts("", "", uri)
    return RunArtifacts(jobs[0].name, jobs[0].short_state, uri, metrics_of(runs.folder(f"{uri}/")))


def _jobs_of(source: ModelSource, runs: Runs) -> list[JobSnapshot]:
    parent = f"projects/{source.project}/locations/{source.region}"
    labels = {STACK_LABEL: source.stack, JOB_LABEL: source.job, RUN_LABEL: str(source.run)}
    return runs.jobs(parent, labels)


def _succeeded(source: ModelSource, jobs: Sequence[JobSnapshot]) -> JobSnapshot:
    """Return the run's last succeeded job, unless the edited job file has rival jobs."""
    run = f"run {source.run} of job '{source.job}'"
    if not jobs:
        raise JobRefusedError(
            f"{run} has no job in project {source.project}, region {source.region}: no process "
            "submitted this run, or the job was deleted."
        )
    latest = max(jobs, key=lambda job: (job.state in SUCCEEDED, job.created, job.name))
    if latest.state in SUCCEEDED:
        rivals = [job for job in jobs if job.digest != latest.digest and job.state not in FAILED]
        if not rivals:
            return latest
        names = ", ".join(sorted(f"{job.name}: {job.short_state}" for job in (latest, *rivals)))
        raise JobRefusedError(
            f"{run} has several jobs ({names}), because the job file was edited. Hint: raise `run` "
            "of the job, and use the new run in `models` after its job has succeeded."
        )
    if latest.state in TERMINAL:
        hint = f"Set `run: {source.run + 1}` on the job to train again."
    else:
        hint = "Wait until the job has ended, then run the command again."
    raise JobRefusedError(f"{run} is {latest.short_state} ({latest.name}), not SUCCEEDED. {hint}")


def metrics_of(folder: RunFolder) -> dict[str, float]:
    """Return the numbers at the top level of ``metrics.json``; empty if the file is invalid."""
    try:
        document = json.loads(folder.metrics)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    metrics = {
        key: value
        for key, value in document.items()
        if _METRIC.fullmatch(key)
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    }
    return dict(sorted(metrics.items())[:MOST_METRICS])


def unanswered(error: OperatorError | None) -> dict[str, str]:
    """Return the inputs of ``ModelVersion`` for artifacts that could not be read."""
    return {"unanswered": str(error) if error else "Google Cloud did not respond in time"}


#: State of an existing version: the submission protocol treats a version as a succeeded job.
EXISTS = "JOB_STATE_SUCCEEDED"
#: Digest of a version that has the request's alias but no digest label. No real digest equals it.
NO_DIGEST = "none"


def upload(
    request: VersionRequest,
    registry: ModelRegistry,
    intents: IntentStore,
    timing: Timing = Timing(),
    wait: OperationWait = OperationWait(),
) -> str:
    """Upload the version of this request, or adopt the existing version, and return its name.

    Raises:
        JobRefusedError: another owner has the model, or the version with the request's alias.
        NotSubmittedError: no version was created; the text has the reason.
        InDoubtError: the response was lost, and no version appeared in time.
    """
    if reason := foreign_model(request, registry):
        raise JobRefusedError(reason)
    uploads = _Uploads(request, registry, wait)
    version, _ = submit(request, uploads, intents, timing, wait.environment)
    uploads.delete_all_but(version.name)
    return version.name


def foreign_model(request: VersionRequest, registry: ModelRegistry) -> str:
    """Return the reason why the stack cannot add versions to the model; empty if the stack can."""
    versions = registry.versions(request.model)
    own = {STACK_LABEL: request.stack, MODEL_LABEL: request.job}
    program = request.labels.get(PROGRAM_LABEL)
    # Earlier releases created versions without the program label.
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
        f"model '{request.job}' cannot use {request.model}, because this model already exists and "
        f"belongs to {owner}. Nothing was uploaded. Rename the key of the model in the stack file."
    )


class _Uploads:
    """Implements ``JobService`` for the versions of a model."""

    def __init__(
        self, request: VersionRequest, registry: ModelRegistry, wait: OperationWait
    ) -> None:
        self._request, self._registry, self._wait = request, registry, wait

    def create(self, parent: str, body: str, labels: Mapping[str, str]) -> JobSnapshot:  # noqa: ARG002 (the request has it)
        """Send the upload once, and wait until its operation has ended."""
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
        raise InDoubtError(f"{request.title}: the upload has ended, but created no version")

    def get(self, name: str) -> JobSnapshot | None:
        """Return the version; None if it does not exist or belongs to another request."""
        version, own = self._registry.version(name), self._request.request_id
        is_own = version is not None and version.labels.get(REQUEST_ID_LABEL, own) == own
        return _snapshot(version) if version and is_own else None

    def find(self, parent: str, request_id: str) -> list[JobSnapshot]:  # noqa: ARG002 (the request has it)
        """Wait until uploads have ended; return the versions with the request's alias or label."""
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
        """Delete the other versions that this request created."""
        try:
            for version in self.find(self._request.parent, self._request.request_id):
                if version.name != name and version.digest != NO_DIGEST:
                    self.delete(version.name)
        except OperatorError:
            return  # after an error, the engine would not store the existing version


def _snapshot(version: VersionSnapshot) -> JobSnapshot:
    digest = version.labels.get(DIGEST_LABEL) or NO_DIGEST
    return JobSnapshot(version.name, EXISTS, version.created, digest)
