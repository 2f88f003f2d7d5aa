"""Write ``jobs/job.schema.json``, with which editors complete and check job files.

    .venv/bin/python -m tools.generate.editor_schema          rewrite the file
    .venv/bin/python -m tools.generate.editor_schema --check  exit 1 if it is not up to date

Fields and values come from ``custom_job.json`` and ``tuning_job.json`` of
``infra/vertex_training/catalog``: a file with a ``studySpec`` or a ``trialJobSpec`` is a tuning
job. Their documentation comes from the docstrings of the official client's types, machine types
from the catalogue. A job file names the schema in its first line: ``# yaml-language-server:
$schema=job.schema.json``. Where a pattern does not match, ``errorMessage`` has a message, which VS
Code's YAML server shows. ``vt check`` also finds mistakes that a schema cannot express, but
accepts only files that are valid here. A test runs ``--check``.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from google.cloud.aiplatform_v1 import types

from tools.generate import editor_forms, generated
from tools.generate.editor_forms import snake
from vertex_training.customjob import kinds
from vertex_training.customjob.request import hints
from vertex_training.customjob.request import message as job_message

#: Beside the job files of this repository. The templates of `vt init` link to it.
TARGET: Final = Path(__file__).parents[2] / "jobs" / "job.schema.json"

#: Messages that one reference may replace.
FROM_STACK: Final = {
    "ReservationAffinity": "${reservations.NAME}",
    "PscInterfaceConfig": "${network.interface}",
}
DURATION: Final = {
    "type": "string",
    "pattern": "^" + job_message.DURATION.pattern.replace(r"\Z", "$"),
    "errorMessage": 'write seconds as text with an s: "3600s"',
}
ENTRY: Final = re.compile(r"^    (?:    )?(\w+) \(.*\):$")


def generate() -> str:
    """Return the file's text."""
    messages = hints.messages()
    wrapper = sorted(set(messages["CustomJob"]) - set(messages["CustomJobSpec"]))
    spelled = {name for key in wrapper for name in (key, snake(key))}
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Vertex AI training job or tuning job",
        "description": "A CustomJob in REST form (displayName, labels, encryptionSpec, jobSpec), "
        "only its jobSpec (the form of gcloud's --config), or a HyperparameterTuningJob "
        "(studySpec, trialJobSpec and trial counts).",
        "type": "object",
        "if": _any_of(name for key in kinds.OF_TUNING for name in (key, snake(key))),
        "then": {"$ref": "#/definitions/HyperparameterTuningJob"},
        "else": {
            "if": _any_of(spelled),
            "then": {"$ref": "#/definitions/CustomJob"},
            "else": {"$ref": "#/definitions/CustomJobSpec"},
        },
        "definitions": {name: message(name, fields) for name, fields in messages.items()},
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _any_of(keys: Iterable[str]) -> dict[str, Any]:
    return {"anyOf": [{"required": [key]} for key in sorted(keys)]}


def client_type(name: str) -> Any:
    """Return the client's class of a message: ``StudySpec.MetricSpec`` is nested in a class."""
    return functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), types)


def message(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one message."""
    texts = documentation(client_type(name))
    properties: dict[str, Any] = {}
    for key, row in fields.items():
        if row["type"] == "output":
            continue
        properties[key] = {"description": texts.get(snake(key), key), **field(name, key, row)}
        if snake(key) != key:  # the Python client's spelling is accepted, but not proposed
            properties[snake(key)] = {"doNotSuggest": True, **field(name, key, row)}
    schema: dict[str, Any] = {
        "type": "object",
        "description": texts.get("") or name,
        "properties": properties,
        "additionalProperties": False,
    }
    conditions = [*exclusions(fields), *editor_forms.required(name)]
    if name == "MachineSpec":
        conditions += editor_forms.accelerator_rules()
    if conditions:
        schema["allOf"] = conditions
    if name in FROM_STACK:
        text = {
            "type": "string",
            "pattern": rf"^\s*{editor_forms.REFERENCE}\s*$",
            "errorMessage": f"write {FROM_STACK[name]}, or the fields",
            "examples": [FROM_STACK[name]],
        }
        return {"anyOf": [schema, text], "description": schema.pop("description")}
    return schema


def exclusions(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return conditions that only one field of a oneof is set, in either spelling."""
    groups: dict[str, list[str]] = {}
    for key, row in fields.items():
        if "oneof" in row:
            groups.setdefault(row["oneof"], []).append(key)
    return [
        {"not": {"required": [one, other]}}
        for keys in groups.values()
        for index, first in enumerate(keys)
        for second in keys[index + 1 :]
        for one in sorted({first, snake(first)})
        for other in sorted({second, snake(second)})
    ]


def field(message_name: str, key: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of one field."""
    single = one_value(message_name, key, row)
    if not row.get("repeated"):
        return single
    if row.get("message") == "WorkerPoolSpec":  # gcloud accepts one pool without a list
        return {
            "if": {"type": "object"},
            "then": single,
            "else": {"type": "array", "items": single},
        }
    return {"type": "array", "items": single}


def one_value(message_name: str, key: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field's value, or of one of its values."""
    kind = row["type"]
    if kind == "message":
        return {"$ref": f"#/definitions/{row['message']}"}
    if kind == "map":
        return {**editor_forms.LABELS, "additionalProperties": {"type": "string"}}
    if kind == "enum":
        values = [value for value in row["values"] if not value.endswith("_UNSPECIFIED")]
        texts = documentation(enum_class(message_name, key))
        unspecified = [value for value in row["values"] if value not in values]
        return {
            "enum": [*values, *unspecified],
            "markdownEnumDescriptions": [texts.get(v, "") for v in [*values, *unspecified]],
        }
    if kind in job_message.LIMITS:
        return editor_forms.number(message_name, key)
    if kind == "bool":
        return {"type": "boolean"}
    if kind == "duration":
        return {**DURATION, "examples": ["3600s"]}
    if kind == "timestamp":
        pattern = "^" + job_message.TIMESTAMP.pattern.replace(r"\Z", "$")
        words = 'write a time as text: "2030-01-31T12:00:00Z"'
        return {"type": "string", "pattern": pattern, "errorMessage": words}
    if kind == "double":
        words = "write a number, such as 0.1 or 1e-4"
        pattern = f"^{hints.NUMBER.pattern}$"
        return {"type": ["number", "string"], "pattern": pattern, "errorMessage": words}
    return editor_forms.text(message_name, key)


def enum_class(message_name: str, key: str) -> Any:
    """Return the client's class of an enum field."""
    owner = client_type(message_name)
    return owner.meta.fields[snake(key)].enum


def documentation(owner: Any) -> dict[str, str]:
    """Return a type's docstring in parts: "" for the type, fields or values by name."""
    texts: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(getattr(owner, "__doc__", "") or "").splitlines():
        if line in ("Attributes:", "Values:"):
            current = "-"  # nothing is kept until the first entry
        elif current and (entry := ENTRY.match(line)):
            current = entry[1]
        elif not line.startswith((".. _oneof", "This message has `oneof`_")):
            texts.setdefault(current, []).append(line)
    return {name: tidy(lines) for name, lines in texts.items() if name != "-"}


def tidy(lines: list[str]) -> str:
    """Return a docstring's lines as text: the first paragraphs, without reST and oneof remarks."""
    text = inspect.cleandoc("\n".join(lines)).strip()
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    kept = [p for p in paragraphs if "`oneof`_" not in p and "For each oneof" not in p]
    plain = "\n\n".join(kept)
    plain = re.sub(r"``([^`]*)``", r"`\1`", plain)
    plain = re.sub(r"`([^`<]*?)\s*<([^>]*)>`__?", r"[\1](\2)", plain)
    plain = re.sub(r"\[([\w.]+)\]\[[\w.]+\]", r"`\1`", plain)
    return plain


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.editor_schema"))
