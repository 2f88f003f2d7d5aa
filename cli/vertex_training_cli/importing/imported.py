"""An imported job: the original message, and the parts that a job file cannot have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.kinds import CUSTOM_JOB
from vertex_training.customjob.request.hints import messages
from vertex_training.customjob.request.message import to_camel_case
from vertex_training.errors import CommandError
from vertex_training.located_yaml import document

#: Keys on the way to a task, in both spellings of the API.
SPECS: Final = ("trialJobSpec", "trial_job_spec", "jobSpec", "job_spec")
POOLS: Final = ("workerPoolSpecs", "worker_pool_specs")
TASKS: Final = ("containerSpec", "container_spec", "pythonPackageSpec", "python_package_spec")
#: Longest key of a stack file.
MAX_KEY: Final = 40
#: Longest text that is built: code may double a text line by line.
MAX_LENGTH: Final = 200_000
#: What templates fill in: `{{ image }}`, `${{ github.sha }}`; and expressions: `${bucket.name}`.
TEMPLATE: Final = re.compile(r"\$?\{\{(.*?)\}\}", re.DOTALL)
EXPRESSION: Final = re.compile(r"\$?\{\{(.*?)\}\}|\$\{([^}]*)\}", re.DOTALL)
#: Stands in a text for a value that is new for every submission, such as a time.
REQUEST_ID: Final = "${job.requestId}"


#: A part of a text that is to be filled in, or is new with each request.
OPEN: Final = re.compile(r"<[A-Z0-9_]+>|" + re.escape(REQUEST_ID))
#: Of a tuning job whose other fields are not in the source.
TRIALS_ALONE: Final = (
    "of a tuning job the source has the job of its trials alone: without studySpec and "
    "maxTrialCount it is imported as a job"
)


class Scalar(str):
    """A number, a switch or nothing, with the characters that it has in a file of YAML."""

    __slots__ = ()


def as_written(value: document.Value) -> Any:
    """A value of a file, where a scalar that is no text keeps the characters it has there."""
    if isinstance(value.content, dict):
        return {key: as_written(item) for key, item in value.content.items()}
    if isinstance(value.content, list):
        return [as_written(item) for item in value.content]
    return value.content if isinstance(value.content, str) else Scalar(value.text)


def placeholder(name: str) -> str:
    """Return what stands for a value that is not certain.

    >>> placeholder("image"), placeholder("config.machine-type")
    ('<YOUR_IMAGE>', '<CONFIG_MACHINE_TYPE>')
    """
    words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper() or "VALUE"
    return f"<{words if '_' in words else 'YOUR_' + words}>"


def with_placeholders(value: Any, pattern: re.Pattern[str] = TEMPLATE) -> Any:
    """Return a value where a placeholder stands for each part that a template fills in."""
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
    """A job that was found in a source. ``spec`` is its CustomJobSpec with the API's names."""

    name: str
    spec: dict[str, Any]
    study: dict[str, Any] = field(default_factory=dict)
    """Of a tuning job: its message without what else is here; ``spec`` is that of its trials."""
    labels: dict[str, str] = field(default_factory=dict)
    encryption_key: str = ""
    script: str = ""
    """Path of a script that is to be packaged, as the source names it; empty for none."""
    requirements: tuple[str, ...] = ()
    remarks: list[str] = field(default_factory=list)
    """Fields that were left out or are missing, and why; one sentence each."""
    notes: list[Note] = field(default_factory=list)
    """Values that reading code could not decide, or took from a default."""
    region: str = ""
    """The region that the source sends it to, if it names one."""
    project: str = ""
    """The project that gcloud is told, if it is told one."""
    backend: str = CUSTOM_JOB.backend
    """The service that it is for, as a stack file names it."""
    subnet: str = ""
    """The subnet of its machines, if they have no external addresses."""
    in_snake_case: bool = False
    """True if a file names its pools as protobuf does: gcloud then sets no arguments in them."""


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """One sentence about a value, with its place."""

    text: str
    place: str

    def __str__(self) -> str:
        return f"{self.text} ({self.place})"


def staged(job: ImportedJob, bucket: str) -> None:
    """The folder that the client makes for a job without one; its name has the time."""
    bucket = bucket if bucket.startswith("gs://") else f"gs://{bucket}"
    prefix = f"{bucket.rstrip('/')}/${{job.name}}/{REQUEST_ID}"
    job.spec["baseOutputDirectory"] = {"outputUriPrefix": prefix}
    job.remarks.append(
        f"the client makes a folder in {bucket} for each job: it is named by the request id"
    )


#: Folder that the client makes below a staging bucket for a job without one: jobs.py and
#: training_jobs.py of google-cloud-aiplatform 2.7.0.
STAGED: Final = re.compile(r"/aiplatform-custom-(?:job|training)-\d{4}-[\d-]+:[\d:.]+/?$")


def name_by_request(job: ImportedJob) -> None:
    """Give the folder that the client named by the time the name of each request."""
    output = job.spec.get("baseOutputDirectory")
    prefix = output.get("outputUriPrefix") if isinstance(output, dict) else None
    if isinstance(prefix, str) and (match := STAGED.search(prefix)):
        staged(job, prefix[: match.start()])


def key_of(text: str, default: str = "job") -> str:
    """A key for a stack file out of any text.

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
    """Return ``name`` if it is valid for a job: it becomes a part of paths.

    Raises:
        CommandError: it is no key for a stack file.
    """
    if key_of(name) != name:
        raise CommandError(f"{name!r} is no name of a job.", f"write {key_of(name)}")
    return name


def free_key(key: str, taken: object) -> str:
    """``key``, or with the first number behind it that nothing in ``taken`` has.

    >>> free_key("a", {"a", "a-2"})
    'a-3'
    """
    free, number = key, 2
    while free in taken:  # type: ignore[operator]
        free, number = f"{key}-{number}", number + 1
    return free


def with_api_names(value: Any) -> Any:
    """``value`` with camelCase keys, and without what is None."""
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
    """The job of a CustomJob, a CustomJobSpec or a HyperparameterTuningJob, by either's names."""
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
            f"{extra} is no field of a CustomJob, and is left out"
            for extra in content if not is_search and extra not in fields
        ] + alone,
    )  # fmt: skip


def labels_of(labels: Any) -> dict[str, str]:
    """Labels of a job; those that are open as a whole have a value to be filled in."""
    if isinstance(labels, dict):
        return {str(key): str(value) for key, value in labels.items()}
    return {"labels": _open(labels)} if _open(labels) else {}


def _open(value: Any) -> str:
    """Return the text in the place of a mapping: the name of an open one, or nothing."""
    return "" if value is None or isinstance(value, Scalar) else str(value)
