"""Job of a run, and checks whether its artifacts can be a model version. Pure."""

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

#: What code writes beside its model, by the convention of this project's jobs.
METRICS_FILE: Final = "metrics.json"
#: How many metrics a version has at most, and the form of their names: they go into reports.
MOST_METRICS: Final = 50
_METRIC: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.@/-]{0,63}")


@dataclass(frozen=True, slots=True)
class RunArtifacts:
    """The job that a run is, and what it left."""

    job: str
    state: str
    artifact_uri: str
    metrics: Mapping[str, float] = field(default_factory=dict)

    def inputs(self) -> dict[str, Any]:
        """As the inputs of a resource."""
        return {
            "job": self.job,
            "state": self.state,
            "artifactUri": self.artifact_uri,
            "metrics": dict(self.metrics),
        }


def find_artifacts(
    source: ModelSource, artifacts: str, files: Sequence[str], runs: Runs
) -> RunArtifacts:
    """The artifacts of a run.

    Raises:
        JobRefusedError: the run does not exist or has not succeeded, or its folder lacks something.
        OperatorError: the service did not answer.
    """
    job = _succeeded(source, _jobs_of(source, runs))
    title = f"run {source.run} of job '{source.job}' ({job.name})"
    if not job.output:
        raise JobRefusedError(
            f"{title} has no output directory. Give its job file a baseOutputDirectory, and raise "
            "run."
        )
    uri = f"{job.output.rstrip('/')}/{artifacts}/"
    folder = runs.folder(uri)
    if not folder.files:
        raise JobRefusedError(
            f"{title} left nothing in {uri}. Its code writes a model to AIP_MODEL_DIR; `artifacts` "
            "of the model names another folder."
        )
    if missing := [file for file in files if file not in folder.files]:
        there = ", ".join(sorted(folder.files)[:10])
        raise JobRefusedError(
            f"{title} left no {', '.join(missing)} in {uri}. The model's container expects that "
            f"(files); there is: {there}."
        )
    return RunArtifacts(job.name, job.short_state, uri.rstrip("/"), metrics_of(folder))


def artifacts_of_version(
    source: ModelSource, artifacts: str, version: VersionSnapshot, runs: Runs
) -> RunArtifacts:
    """The artifacts of an existing version; without a job where several may have left them.

    Of a run whose job file was edited, only the version's folder shows which job it was.

    Raises:
        OperatorError: the service did not answer.
    """
    uri = version.artifact_uri.rstrip("/")
    found = [
        job
        for job in _jobs_of(source, runs)
        if job.state in SUCCEEDED
        and job.created <= version.created
        and f"{job.output.rstrip('/')}/{artifacts}" == uri
    ]
    if len(found) != 1:
        return RunArtifacts("", "", uri)
    return RunArtifacts(
        found[0].name, found[0].short_state, uri, metrics_of(runs.folder(f"{uri}/"))
    )


def _jobs_of(source: ModelSource, runs: Runs) -> list[JobSnapshot]:
    parent = f"projects/{source.project}/locations/{source.region}"
    labels = {STACK_LABEL: source.stack, JOB_LABEL: source.job, RUN_LABEL: str(source.run)}
    return runs.jobs(parent, labels)


def _succeeded(source: ModelSource, found: Sequence[JobSnapshot]) -> JobSnapshot:
    """The latest job of the run that succeeded.

    A job file that was edited is another job of the same run, and leaves other weights: which of
    them a version is to have, nobody has said.
    """
    run = f"run {source.run} of job '{source.job}'"
    if not found:
        raise JobRefusedError(
            f"{run} is not in {source.project}, {source.region}: no job has its labels. It was "
            "never submitted, or its record was deleted."
        )
    latest = max(found, key=lambda job: (job.state in SUCCEEDED, job.created, job.name))
    if latest.state in SUCCEEDED:
        rivals = [job for job in found if job.digest != latest.digest and job.state not in FAILED]
        if not rivals:
            return latest
        names = ", ".join(sorted(f"{each.name}: {each.short_state}" for each in (latest, *rivals)))
        raise JobRefusedError(
            f"{run} is more than one job ({names}): its file was edited. Hint: raise `run` on the "
            "job, and name that run in `models` once it has succeeded."
        )
    if latest.state in TERMINAL:
        hint = f"Set run: {source.run + 1} on the job to train once more."
    else:
        hint = "Wait for its end, then run this again."
    raise JobRefusedError(f"{run} is {latest.short_state} ({latest.name}), not SUCCEEDED. {hint}")


def metrics_of(folder: RunFolder) -> dict[str, float]:
    """The numbers at the top of ``metrics.json``; nothing where it is no such file."""
    try:
        document = json.loads(folder.metrics)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(document, dict):
        return {}
    found = {
        key: value
        for key, value in document.items()
        if _METRIC.fullmatch(key)
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and math.isfinite(value)
    }
    return dict(sorted(found.items())[:MOST_METRICS])


def unanswered(error: OperatorError | None) -> dict[str, str]:
    """Inputs in place of artifacts that could not be looked up."""
    return {"unanswered": str(error) if error else "Google Cloud did not answer in time"}
