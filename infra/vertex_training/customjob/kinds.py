"""The kinds of jobs that a stack submits, and how the services spell each.

A tuning job runs trials, and each trial is a CustomJob that the service makes of ``trialJobSpec``.
What holds for a CustomJob holds for a trial; :meth:`JobKind.trial_of` makes one of either message.

A job with ``backend: batch`` is a CustomJob as well, by its file and in the state; what is sent of
it is a job of Google Batch (``vertex_training.customjob.batch``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import quote

from vertex_training.errors import Path
from vertex_training.naming import JOB_LABEL_PREFIX, is_local


@dataclass(frozen=True, slots=True)
class JobKind:
    """Kind of job that a file of a stack becomes: on Vertex AI or on Google Batch."""

    message: str
    """Name of the API's message."""
    spec: str
    """The field that has the CustomJobSpec."""
    section: str
    """The section of the stack file that names such files."""
    collection: str
    """Collection in resource names: ``projects/P/locations/R/COLLECTION/ID``."""
    argument: str
    """Argument of the official client's methods, and the end of their names."""
    label_prefix: str
    """Prefix of the labels that the program sets."""
    records: str
    """Folder of its records in the control bucket, with a ``/``; empty for the bucket itself."""
    backend: str = "vertex"
    """The service that runs it, as a stack file names it."""
    id_prefix: str = ""
    """Prefix of request ids, so that an id alone tells the service of its job."""

    @property
    def noun(self) -> str:
        """Return its name in messages: ``job``, ``tuning job`` or ``Batch job``."""
        if self.backend != CUSTOM_JOB.backend:
            return f"{self.backend.capitalize()} job"
        return "job" if self.section == CUSTOM_JOB.section else f"{self.section} job"

    def trial_of(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The CustomJob message that runs: the message itself, or that of one trial."""
        if self.spec == CUSTOM_JOB.spec:
            return dict(message)
        shared = {key: message[key] for key in SHARED if key in message}
        trial = {CUSTOM_JOB.spec: message[self.spec]} if self.spec in message else {}
        return shared | trial

    def path_in_trial(self, path: Path) -> Path:
        """A path of the message as one of :meth:`trial_of` it."""
        return (CUSTOM_JOB.spec, *path[1:]) if path[:1] == (self.spec,) else path

    def path_in_message(self, path: Path) -> Path:
        """The reverse of :meth:`path_in_trial`."""
        return (self.spec, *path[1:]) if path[:1] == (CUSTOM_JOB.spec,) else path

    def sent_label(self, label: str) -> str:
        """A label of the program (``vt-…``) as this kind has it; other labels stay.

        Tuning jobs have keys of their own: should the service copy a tuning job's labels to its
        trials, no search for CustomJobs finds them.

        >>> TUNING_JOB.sent_label("vt-request-id"), TUNING_JOB.sent_label("team")
        ('vt-tuning-request-id', 'team')
        """
        own = label.startswith(CUSTOM_JOB.label_prefix)
        return self.label_prefix + label.removeprefix(CUSTOM_JOB.label_prefix) if own else label

    def sent_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Labels by the keys that this kind has."""
        return {self.sent_label(key): value for key, value in labels.items()}

    def labels_of(self, sent: Mapping[str, str]) -> dict[str, str]:
        """The reverse of :meth:`sent_labels`; without the program's labels of other kinds.

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


#: Fields that both messages have.
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
#: Its records are among those of CustomJobs, so that a job has one turn, whatever runs it.
BATCH_JOB: Final = replace(
    CUSTOM_JOB,
    message="Job",
    collection="jobs",
    argument="job",
    backend="batch",
    id_prefix="batch-",
)
#: Those of Vertex AI.
KINDS: Final = (CUSTOM_JOB, TUNING_JOB)
#: Keys of the ``submission`` of a job that is no CustomJob, or that Vertex AI does not run.
SECTION: Final = "section"
BACKEND: Final = "backend"
#: Fields that only a tuning job has at its top.
OF_TUNING: Final = frozenset({"studySpec", TUNING_JOB.spec})


def kind_in_section(section: str, backend: str = CUSTOM_JOB.backend) -> JobKind:
    """The kind of what this section of a stack file has for this service.

    >>> kind_in_section("jobs", "batch").collection
    'jobs'
    """
    kinds = (*KINDS, BATCH_JOB)
    return next(kind for kind in kinds if (kind.section, kind.backend) == (section, backend))


def kind_of_submission(submission: Mapping[str, str]) -> JobKind:
    """The kind of a job by the ``submission`` that its inputs have, and so the state."""
    section = submission.get(SECTION, CUSTOM_JOB.section)
    return kind_in_section(section, submission.get(BACKEND, CUSTOM_JOB.backend))


def kind_of_request(request_id: str) -> JobKind:
    """The kind of a request that is no tuning job's, by its id."""
    return BATCH_JOB if request_id.startswith(BATCH_JOB.id_prefix) else CUSTOM_JOB


def kind_of_fields(fields: Iterable[str]) -> JobKind:
    """The kind of a file with these fields (camelCase) at its top."""
    return CUSTOM_JOB if OF_TUNING.isdisjoint(fields) else TUNING_JOB


def kind_of_name(name: str) -> JobKind | None:
    """The kind of a resource name, ``projects/P/locations/R/COLLECTION/ID``; None of another.

    >>> kind_of_name("projects/1/locations/r/customJobs/2").section
    'jobs'
    """
    parts = name.split("/")
    kinds = (*KINDS, BATCH_JOB)
    return next((kind for kind in kinds if kind.collection in parts[4:5]), None)


def console_urls(
    project: str, region: str, number: str, kind: JobKind = CUSTOM_JOB
) -> tuple[str, str]:
    """URLs of the job and of its logs, or the commands for a local job. ``number`` is its id."""
    if is_local(project):  # the local cloud has no console
        if kind is CUSTOM_JOB:
            return "vt local status", f"vt local logs {number}"
        return f"vt jobs show {number}", f"vt jobs logs {number}"
    console = "https://console.cloud.google.com"
    if kind is BATCH_JOB:
        # The uid that log entries have begins with the job's id.
        text = f'resource.type="batch.googleapis.com/Job" labels.job_uid:"{number}"'
        query = quote(text, safe="")
        job = f"{console}/batch/jobsDetail/regions/{region}/jobs/{number}/details?project={project}"
        return job, f"{console}/logs/query;query={query}?project={project}"
    query = quote(f'resource.type="ml_job" resource.labels.job_id="{number}"', safe="")
    # The path since the product was renamed, as the official SDK prints it (2.7.0, jobs.py).
    job = f"{console}/agent-platform/locations/{region}/training/{number}?project={project}"
    return job, f"{console}/logs/query;query={query}?project={project}"
