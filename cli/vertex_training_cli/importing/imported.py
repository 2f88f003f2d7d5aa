"""Imported jobs: the message of each job, and properties that a job file cannot have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.request.hints import messages
from vertex_training.customjob.request.message import to_camel_case
from vertex_training.errors import CommandError
from vertex_training.located_yaml import document

#: Keys that lead to a task in a job's message, in both spellings of the API.
SPECS: Final = ("trialJobSpec", "trial_job_spec", "jobSpec", "job_spec")
POOLS: Final = ("workerPoolSpecs", "worker_pool_specs")
TASKS: Final = ("containerSpec", "container_spec", "pythonPackageSpec", "python_package_spec")
#: Longest key of a stack file.
MAX_KEY: Final = 40
#: Maximum length of a text that is computed from the source.
MAX_LENGTH: Final = 200_000
#: Fields of templates, such as `{{ image }}` and `${{ github.sha }}`. EXPRESSION also matches
#: references, such as `${bucket.name}`.
TEMPLATE: Final = re.compile(r"\$?\{\{(.*?)\}\}", re.DOTALL)
EXPRESSION: Final = re.compile(r"\$?\{\{(.*?)\}\}|\$\{([^}]*)\}", re.DOTALL)
#: Text that replaces a value that differs in each submission, such as a time.
REQUEST_ID: Final = "${job.requestId}"
#: A part of a text that the user must replace, or that differs in each submission.
OPEN: Final = re.compile(r"<[A-Z0-9_]+>|" + re.escape(REQUEST_ID))
#: Remark on a source that contains only the trial job of a tuning job.
TRIALS_ALONE: Final = (
    "the source contains only the trial job of a tuning job: it is imported as a job, "
    "without studySpec and maxTrialCount"
)


class Scalar(str):
    """A number, boolean or null, as written in a YAML file."""

    __slots__ = ()


def as_written(value: document.Value) -> Any:
    """Return a value of a file with numbers, booleans and nulls as written in the file."""
    if isinstance(value.content, dict):
        return {key: as_written(item) for key, item in value.content.items()}
    if isinstance(value.content, list):
        return [as_written(item) for item in value.content]
    return value.content if isinstance(value.content, str) else Scalar(value.text)


def placeholder(name: str) -> str:
    """Return the placeholder for an unknown value.

    >>> placeholder("image"), placeholder("config.machine-type")
    ('<YOUR_IMAGE>', '<CONFIG_MACHINE_TYPE>')
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper() or "VALUE"
    return f"<{words if '_' in words else 'YOUR_' + words}>"


def with_placeholders(value: Any, pattern: re.Pattern[str] = TEMPLATE) -> Any:
    """Return a value with a placeholder in place of each part that matches ``pattern``."""
    if isinstance(value, dict):
        return {key: with_placeholders(item, pattern) for key, item in value.items()}
    if isinstance(value, list):
        return [with_placeholders(item, pattern) for item in value]
    if not isinstance(value, str) or not pattern.search(value):
        return value
    return pattern.sub(
        lambda match: placeholder("".join(filter(None, match.groups())).strip()[:60]), value
    )


@dataclass(slots=True)
class ImportedJob:
    """A job in a source. ``spec`` is its CustomJobSpec with the API's names."""

    name: str
    spec: dict[str, Any]
    study: dict[str, Any] = field(default_factory=dict)
    """Message of a tuning job, without the trials' job spec, which is ``spec``."""
    labels: dict[str, str] = field(default_factory=dict)
    encryption_key: str = ""
    script: str = ""
    """Path of a script to package, as the source names it; empty if there is none."""
    requirements: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)
    """Sentences about omitted or missing fields."""
    notes: list[Note] = field(default_factory=list)
    """Notes on values that were guessed or are defaults."""
    region: str = ""
    """Region that the source submits the job to, if it names one."""
    project: str = ""
    """Project that the gcloud command names, if any."""
    in_snake_case: bool = False
    """True if a file names its pools in snake case: gcloud then sets no arguments in them."""

    def tasks(self, *kinds: str) -> Iterator[dict[str, Any]]:
        """Yield the tasks of these kinds in all worker pools."""
        pools = self.spec.get("workerPoolSpecs")
        for pool in pools if isinstance(pools, list) else [pools]:
            tasks = [pool.get(kind) for kind in kinds] if isinstance(pool, dict) else []
            yield from (task for task in tasks if isinstance(task, dict))


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """A sentence about a value, with its location."""

    text: str
    place: str

    def __str__(self) -> str:
        return f"{self.text} ({self.place})"


def batch_remark(place: str) -> str:
    """Return the remark on a Batch job, which is not imported."""
    return (
        f"Batch job at {place} is not imported. Write a job file with `backend: batch` "
        "(docs/batch.md)"
    )


def staged(job: ImportedJob, bucket: str) -> None:
    """Set the client's default output folder, named by the request id instead of the time."""
    bucket = bucket if bucket.startswith("gs://") else f"gs://{bucket}"
    prefix = f"{bucket.rstrip('/')}/${{job.name}}/{REQUEST_ID}"
    job.spec["baseOutputDirectory"] = {"outputUriPrefix": prefix}
    job.remarks.append(
        f"the client names the job's folder in {bucket} by the time; the imported job's folder "
        "is named by the request id"
    )


#: Name of the folder that the client creates in a staging bucket for a job without an output
#: folder: jobs.py and training_jobs.py of google-cloud-aiplatform 2.7.0.
STAGED: Final = re.compile(r"/aiplatform-custom-(?:job|training)-\d{4}-[\d-]+:[\d:.]+/?$")


def name_by_request(job: ImportedJob) -> None:
    """Name the client's default output folder by the request id instead of the time."""
    output = job.spec.get("baseOutputDirectory")
    prefix = output.get("outputUriPrefix") if isinstance(output, dict) else None
    if isinstance(prefix, str) and (match := STAGED.search(prefix)):
        staged(job, prefix[: match.start()])


def region_of(parent: Any) -> str:
    """Return the region in the name of a resource; empty without a region."""
    match = re.search(r"/locations/([^/]+)", str(parent))
    return match[1] if match else ""


def key_of(text: str, default: str = "job") -> str:
    """Convert any text to a key of a stack file.

    >>> key_of("Fine_tune: ${job.requestId}"), key_of("8 GPUs")
    ('fine-tune', 'job-8-gpus')
    >>> key_of("DOE_nn_<RUN_ID>"), key_of("<YOUR_NAME>")
    ('doe-nn', 'your-name')
    """
    known = re.sub(r"<[A-Z_]+>", "", text.replace(REQUEST_ID, ""))
    plain = (known if re.search(r"[A-Za-z0-9]", known) else text).lower()
    key = re.sub(r"[^a-z0-9]+", "-", plain)[: MAX_KEY - 4].strip("-")
    if not key:
        return default
    return key if key[0].isalpha() else f"{default}-{key}"[:MAX_KEY].strip("-")


def to_key(name: str) -> str:
    """Return ``name`` if it is a valid key of a stack file; else raise CommandError."""
    if key_of(name) != name:
        raise CommandError(f"{name!r} is not a valid name of a job.", f"write {key_of(name)}")
    return name


def free_key(key: str, taken: object) -> str:
    """Return ``key``, or ``key`` with the first number that is not in ``taken``.

    >>> free_key("a", {"a", "a-2"})
    'a-3'
    """
    free, number = key, 2
    while free in taken:  # type: ignore[operator]
        free, number = f"{key}-{number}", number + 1
    return free


def with_api_names(value: Any) -> Any:
    """Return ``value`` with camelCase keys, without None."""
    if isinstance(value, dict):
        return {
            to_camel_case(str(key)): with_api_names(item)
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list | tuple):
        return [with_api_names(item) for item in value]
    return value


def from_message(message: dict[str, Any], name: str) -> ImportedJob:
    """Return the job of a CustomJob, CustomJobSpec or HyperparameterTuningJob message."""
    content = with_api_names({k: v for k, v in message.items() if k != "labels"})
    field_name = next((name for name in ("jobSpec", "trialJobSpec") if name in content), "")
    labels = labels_of(message.get("labels"))
    if not field_name:
        return ImportedJob(key_of(name), content, labels=labels)
    key = content.pop("encryptionSpec", "")
    display, spec = content.pop("displayName", None), content.pop(field_name)
    is_search, fields = field_name == "trialJobSpec", messages()["CustomJob"]
    study = content if is_search else {}
    alone = [TRIALS_ALONE] if is_search and not study else []
    if study and display:
        study["displayName"] = display
    return ImportedJob(
        key_of(str(display or name)),
        spec if isinstance(spec, dict) else {"workerPoolSpecs": spec},
        study,
        labels,
        str(key.get("kmsKeyName", "")) if isinstance(key, dict) else _open(key),
        remarks=[
            f"field {extra} is not imported: a CustomJob has no such field"
            for extra in content if not is_search and extra not in fields
        ] + alone,
    )  # fmt: skip


def labels_of(labels: Any) -> dict[str, str]:
    """Return the labels of a job. A placeholder for all labels becomes the value of one label."""
    if isinstance(labels, dict):
        return {str(key): str(value) for key, value in labels.items()}
    return {"labels": _open(labels)} if _open(labels) else {}


def _open(value: Any) -> str:
    return "" if value is None or isinstance(value, Scalar) else str(value)
