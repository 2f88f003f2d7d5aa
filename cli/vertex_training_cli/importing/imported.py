"""An imported job: the message as it was found, and what of it has no place in a job file."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.request.message import to_camel_case

#: Longest key of a stack file.
MAX_KEY: Final = 40
#: Stands in a text for a value that is new for every submission, such as a time.
REQUEST_ID: Final = "${job.requestId}"


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
    """What was left out or is missing, and why; one sentence each."""


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


def free_key(key: str, taken: object) -> str:
    """``key``, or with the first number behind it that nothing in ``taken`` has.

    >>> free_key("a", {"a", "a-2"})
    'a-3'
    """
    found, number = key, 2
    while found in taken:  # type: ignore[operator]
        found, number = f"{key}-{number}", number + 1
    return found


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
    given = with_api_names({k: v for k, v in message.items() if k != "labels"})
    field_name = next((name for name in ("jobSpec", "trialJobSpec") if name in given), "")
    if not field_name:
        return ImportedJob(key_of(name), given)
    key = given.pop("encryptionSpec", None) or {}
    display, spec = given.pop("displayName", None), given.pop(field_name)
    return ImportedJob(
        key_of(str(display or name)),
        dict(spec or {}),
        given if field_name == "trialJobSpec" else {},
        {str(k): str(v) for k, v in (message.get("labels") or {}).items()},
        str(key.get("kmsKeyName", "")) if isinstance(key, dict) else "",
    )
