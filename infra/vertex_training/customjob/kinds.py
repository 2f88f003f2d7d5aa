"""Kinds of jobs that a stack submits, and the names of each kind in the APIs.

The trials of a tuning job are CustomJobs. A job with ``backend: batch`` is a CustomJob in its file
and in the state, and is sent as a Google Batch job (``vertex_training.customjob.batch``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from vertex_training.errors import Path
from vertex_training.naming import JOB_LABEL_PREFIX, is_local


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job on Vertex AI or on Google Batch."""

    message: str
    """Name of the API's message."""
    spec: str
    """The field with the CustomJobSpec."""
    section: str
    """The section of the stack file for these jobs."""
    collection: str
    """Collection in resource names: ``projects/P/locations/R/COLLECTION/ID``."""
    argument: str
    """Argument name in the official client's methods, and end of the methods' names."""
    label_prefix: str
    """Prefix of the labels that the program sets."""
    records: str
    """Folder of the records in the control bucket, with a ``/``; empty for the top level."""
    backend: str = "vertex"
    """The service that runs the job, by its name in a stack file."""
    id_prefix: str = ""
    """Prefix of request ids, which identifies the service."""

    @property
    def noun(self) -> str:
        """Return the name for messages: ``job``, ``tuning job`` or ``Batch job``."""
        if self.backend != CUSTOM_JOB.backend:
            return f"{self.backend.capitalize()} job"
        return "job" if self.section == CUSTOM_JOB.section else f"{self.section} job"

    def trial_of(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return the CustomJob in a message: the message itself, or a trial of a tuning job."""
        if self.spec == CUSTOM_JOB.spec:
            return dict(message)
        shared = {key: message[key] for key in SHARED if key in message}
        trial = {CUSTOM_JOB.spec: message[self.spec]} if self.spec in message else {}
        return shared | trial

    def path_in_trial(self, path: Path) -> Path:
        """Convert a path of the message into a path of :meth:`trial_of`."""
        return (CUSTOM_JOB.spec, *path[1:]) if path[:1] == (self.spec,) else path

    def path_in_message(self, path: Path) -> Path:
        """Reverse :meth:`path_in_trial`."""
        return (self.spec, *path[1:]) if path[:1] == (CUSTOM_JOB.spec,) else path

    def sent_label(self, label: str) -> str:
        """Return a label of the program (``vt-…``) in this kind's spelling, other labels unchanged.

        Tuning jobs have other keys, so that a search for CustomJobs does not return their trials.

        >>> TUNING_JOB.sent_label("vt-request-id"), TUNING_JOB.sent_label("team")
        ('vt-tuning-request-id', 'team')
        """
        own = label.startswith(CUSTOM_JOB.label_prefix)
        return self.label_prefix + label.removeprefix(CUSTOM_JOB.label_prefix) if own else label

    def sent_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Return labels with keys in the spelling of this kind of job."""
        return {self.sent_label(key): value for key, value in labels.items()}

    def labels_of(self, sent: Mapping[str, str]) -> dict[str, str]:
        """Reverse :meth:`sent_labels`, and remove the program's labels of other kinds.

        >>> TUNING_JOB.labels_of({"vt-tuning-run": "2", "vt-run": "3", "team": "ml"})
        {'vt-run': '2', 'team': 'ml'}
        """
        if self.label_prefix == CUSTOM_JOB.label_prefix:
            return dict(sent)
        prefix, result = CUSTOM_JOB.label_prefix, dict[str, str]()
        for key, value in sent.items():
            if key.startswith(self.label_prefix):
                result[prefix + key.removeprefix(self.label_prefix)] = value
            elif not key.startswith(prefix):
                result[key] = value
        return result


#: Common fields of the messages CustomJob and HyperparameterTuningJob.
SHARED: Final = ("displayName", "labels", "encryptionSpec")
CUSTOM_JOB: Final = JobKind(
    "CustomJob", "jobSpec", "jobs", "customJobs", "custom_job", JOB_LABEL_PREFIX, ""
)
TUNING_JOB: Final = JobKind(
    "HyperparameterTuningJob",
    "trialJobSpec",
    "tuning",
    "hyperparameterTuningJobs",
    "hyperparameter_tuning_job",
    f"{JOB_LABEL_PREFIX}tuning-",
    "tuning/",
)
#: Batch jobs share the records of CustomJobs, so that a job has one turn on both services.
BATCH_JOB: Final = replace(
    CUSTOM_JOB,
    message="Job",
    collection="jobs",
    argument="job",
    backend="batch",
    id_prefix="batch-",
)
#: Kinds of jobs on Vertex AI.
KINDS: Final = (CUSTOM_JOB, TUNING_JOB)
ALL: Final = (*KINDS, BATCH_JOB)
#: Additional keys in the ``submission`` of tuning jobs and Batch jobs.
SECTION: Final = "section"
BACKEND: Final = "backend"
#: Top-level fields of tuning jobs.
OF_TUNING: Final = frozenset({"studySpec", TUNING_JOB.spec})


def kind_in_section(section: str, backend: str = CUSTOM_JOB.backend) -> JobKind:
    """Return the kind of the jobs in this section of a stack file on this service."""
    return next(kind for kind in ALL if (kind.section, kind.backend) == (section, backend))


def kind_of_submission(submission: Mapping[str, str]) -> JobKind:
    """Return the kind of a job from the ``submission`` in its inputs or state."""
    section = submission.get(SECTION, CUSTOM_JOB.section)
    return kind_in_section(section, submission.get(BACKEND, CUSTOM_JOB.backend))


def kind_of_request(request_id: str) -> JobKind:
    """Return the kind of a CustomJob or a Batch job from the id of its request."""
    return BATCH_JOB if request_id.startswith(BATCH_JOB.id_prefix) else CUSTOM_JOB


def kind_of_fields(fields: Iterable[str]) -> JobKind:
    """Return the kind of a file with these top-level fields (camelCase)."""
    return CUSTOM_JOB if OF_TUNING.isdisjoint(fields) else TUNING_JOB


def kind_of_name(name: str) -> JobKind | None:
    """Return the kind of a resource name, ``projects/P/locations/R/COLLECTION/ID``, or None."""
    parts = name.split("/")
    return next((kind for kind in ALL if kind.collection in parts[4:5]), None)


def console_urls(
    project: str, region: str, number: str, kind: JobKind = CUSTOM_JOB
) -> tuple[str, str]:
    """Return the URLs of a job and its log, or commands for a local job. ``number``: its id."""
    if is_local(project):  # the local cloud has no console
        return f"vt jobs show {number}", f"vt jobs logs {number}"
    console = "https://console.cloud.google.com"
    # The path of the official SDK since the product was renamed (2.7.0, jobs.py).
    page = f"agent-platform/locations/{region}/training/{number}"
    text = f'resource.type="ml_job" resource.labels.job_id="{number}"'
    if kind is BATCH_JOB:  # the uid in log entries begins with the job's id
        page = f"batch/jobsDetail/regions/{region}/jobs/{number}/details"
        text = f'resource.type="batch.googleapis.com/Job" labels.job_uid:"{number}"'
    query = quote(text, safe="")
    return (
        f"{console}/{page}?project={project}",
        f"{console}/logs/query;query={query}?project={project}",
    )
