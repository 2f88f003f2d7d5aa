"""Finds the job of a run, and checks that its artifacts can become a model version. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.protocol.ports import (
    FAILED,
    JOB_LABEL,
    RUN_LABEL,
    STACK_LABEL,
    SUCCEEDED,
    TERMINAL,
    JobSnapshot,
)
from vertex_training.errors import JobRefusedError, OperatorError
from vertex_training.serving.declared import ModelSource
from vertex_training.serving.protocol.ports import RunFolder, Runs, VersionSnapshot

#: File with metrics beside a model, by the convention of this project's jobs.
METRICS_FILE: Final = "metrics.json"
#: Maximum number of metrics of a version.
MOST_METRICS: Final = 50
#: Form of metric names, which occur in reports.
_METRIC: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.@/-]{0,63}")


@dataclass(frozen=True, slots=True)
class RunArtifacts:
    """The job of a run and its artifacts."""

    job: str
    state: str
    artifact_uri: str
    metrics: Mapping[str, float] = field(default_factory=dict)

    def inputs(self) -> dict[str, Any]:
        """Return the artifacts as inputs of a resource."""
        return {
            "job": self.job,
            "state": self.state,
            "artifactUri": self.artifact_uri,
            "metrics": dict(self.metrics),
        }


def find_artifacts(
    source: ModelSource, artifacts: str, files: Sequence[str], runs: Runs
) -> RunArtifacts:
    """Return the artifacts of a run.

    Raises:
        JobRefusedError: the run does not exist or has not succeeded, or its folder is incomplete.
        OperatorError: the service did not respond.
    """
    job = _succeeded(source, _jobs_of(source, runs))
    title = f"run {source.run} of job '{source.job}' ({job.name})"
    if not job.output:
        raise JobRefusedError(
            f"{title} has no output directory. Add baseOutputDirectory to the job file, and raise "
            "run."
        )
    uri = f"{job.output.rstrip('/')}/{artifacts}/"
    folder = runs.folder(uri)
    if not folder.files:
        raise JobRefusedError(
            f"{title} wrote no files to {uri}. Write the model to AIP_MODEL_DIR in the job's code, "
            "or set `artifacts` of the model to another folder."
        )
    if missing := [file for file in files if file not in folder.files]:
        existing = ", ".join(sorted(folder.files)[:10])
        raise JobRefusedError(
            f"{title} did not write {', '.join(missing)} to {uri}, which `files` of the model "
            f"requires. Existing files: {existing}."
        )
    return RunArtifacts(job.name, job.short_state, uri.rstrip("/"), metrics_of(folder))


def artifacts_of_version(
    source: ModelSource, artifacts: str, version: VersionSnapshot, runs: Runs
) -> RunArtifacts:
    """Return the artifacts of an existing version, without a job if the source job is ambiguous.

    If the job file of the run was edited, only the version's folder identifies the job.

    Raises:
        OperatorError: the service did not respond.
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
    """Return the job of the run that succeeded last.

    After an edit of the job file, the run has several jobs with different weights, and the choice
    for a version is ambiguous.
    """
    run = f"run {source.run} of job '{source.job}'"
    if not jobs:
        raise JobRefusedError(
            f"{run} has no job in project {source.project}, region {source.region}: the run was "
            "never submitted, or its record was deleted."
        )
    latest = max(jobs, key=lambda job: (job.state in SUCCEEDED, job.created, job.name))
    if latest.state in SUCCEEDED:
        rivals = [job for job in jobs if job.digest != latest.digest and job.state not in FAILED]
        if not rivals:
            return latest
        names = ", ".join(sorted(f"{job.name}: {job.short_state}" for job in (latest, *rivals)))
        raise JobRefusedError(
            f"{run} has several jobs ({names}), because its file was edited. Hint: raise `run` of "
            "the job, and use that run in `models` after it has succeeded."
        )
    if latest.state in TERMINAL:
        hint = f"Set run: {source.run + 1} on the job to train again."
    else:
        hint = "Wait until the job has ended, then run the command again."
    raise JobRefusedError(f"{run} is {latest.short_state} ({latest.name}), not SUCCEEDED. {hint}")


def metrics_of(folder: RunFolder) -> dict[str, float]:
    """Return the numbers at the top level of ``metrics.json``; empty for an invalid file."""
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
    """Return the inputs for artifacts that could not be read."""
    return {"unanswered": str(error) if error else "Google Cloud did not respond in time"}
