"""Write ``jobs/job.schema.json``, with which editors complete and check job files.

``python -m tools.generate.editor_schema`` writes the file. Fields and values come from
``custom_job.json`` and ``tuning_job.json`` of ``infra/vertex_training/catalog``, documentation from
the docstrings of Google's client, and machine types from the catalogue. A job file names the schema
in its first line: ``# yaml-language-server: $schema=job.schema.json``. VS Code shows
``errorMessage`` if a pattern does not match. The conditions use only rules with level error,
because an editor must never be stricter than ``vt check``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from google.cloud.aiplatform_v1 import types
from pydantic.alias_generators import to_snake

from vertex_training import naming
from vertex_training.catalog import machines
from vertex_training.customjob import kinds
from vertex_training.customjob.request import hints
from vertex_training.customjob.request import message as job_message
from vertex_training.customjob.rules import environment, identity, network, storage

#: The file is beside the job files of this repository. A template of `vt init` is a link to it.
TARGET: Final = Path(__file__).parents[2] / "jobs" / "job.schema.json"

#: Messages that a reference to the stack can replace.
FROM_STACK: Final = {
    "ReservationAffinity": "${reservations.NAME}",
    "PscInterfaceConfig": "${network.interface}",
}
#: Schemas of values by their type in the catalogue.
SCALARS: Final = {
    "bool": {"type": "boolean"},
    "duration": {
        "type": "string",
        "pattern": "^" + job_message.DURATION.pattern.replace(r"\Z", "$"),
        "errorMessage": 'write seconds as text with an s: "3600s"',
        "examples": ["3600s"],
    },
    "timestamp": {
        "type": "string",
        "pattern": "^" + job_message.TIMESTAMP.pattern.replace(r"\Z", "$"),
        "errorMessage": 'write a time as text: "2030-01-31T12:00:00Z"',
    },
    "double": {
        "type": ["number", "string"],
        "pattern": f"^{hints.NUMBER.pattern}$",
        "errorMessage": "write a number, such as 0.1 or 1e-4",
    },
}
ENTRY: Final = re.compile(r"^    (?:    )?(\w+) \(.*\):$")

REFERENCE: Final = r"\$\{[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+\}"

#: Patterns of text fields, and messages that editors show if a pattern does not match. References
#: are always allowed, because only a stack resolves them.
FORMS: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("CustomJobSpec", "experiment"): (
        identity.CONTEXT.pattern,
        "projects/PROJECT/locations/REGION/metadataStores/default/contexts/EXPERIMENT",
    ),
    ("CustomJobSpec", "experimentRun"): (
        identity.CONTEXT.pattern,
        "projects/PROJECT/locations/REGION/metadataStores/default/contexts/EXPERIMENT-RUN",
    ),
    ("CustomJobSpec", "network"): (
        network.NETWORK.pattern.replace("[^/]+", "[0-9]+"),
        "projects/NUMBER/global/networks/NAME with the project number, or ${network.name}",
    ),
    ("CustomJobSpec", "reservedIpRanges"): (
        network.NAME.pattern,
        "name of an IP range (lowercase letters, digits and '-'), or ${network.ranges.NAME}",
    ),
    ("CustomJobSpec", "serviceAccount"): (
        identity.EMAIL.pattern,
        "email of a service account, such as trainer@PROJECT.iam.gserviceaccount.com, or "
        "${serviceAccounts.NAME}",
    ),
    ("CustomJobSpec", "tensorboard"): (
        identity.TENSORBOARD.pattern,
        "projects/PROJECT/locations/REGION/tensorboards/NUMBER",
    ),
    ("EncryptionSpec", "kmsKeyName"): (
        identity.KEY.pattern,
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY",
    ),
    ("EnvVar", "name"): (
        environment.ENV_NAME.pattern,
        "letters, digits and '_'; the first character is not a digit",
    ),
    ("GcsDestination", "outputUriPrefix"): (
        storage.FOLDER_URI.pattern,
        "gs://BUCKET/FOLDER, or ${buckets.NAME}/FOLDER",
    ),
    ("PscInterfaceConfig", "networkAttachment"): (
        f"{network.NAME.pattern}|{network.ATTACHMENT.pattern}",
        "projects/PROJECT/regions/REGION/networkAttachments/NAME, only NAME, or "
        "${network.attachment}",
    ),
    ("PythonPackageSpec", "packageUris"): (
        storage.OBJECT_URI.pattern,
        "gs://BUCKET/FILE.tar.gz, or ${packages.NAME}",
    ),
}
#: Required fields of each message.
REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "CustomJob": ("jobSpec",),
    "CustomJobSpec": ("workerPoolSpecs", "serviceAccount"),
    "ContainerSpec": ("imageUri",),
    "EncryptionSpec": ("kmsKeyName",),
    "EnvVar": ("name", "value"),
    "PythonPackageSpec": ("executorImageUri", "packageUris", "pythonModule"),
    "HyperparameterTuningJob": (
        "studySpec", "trialJobSpec", "maxTrialCount", "parallelTrialCount",
    ),
    "StudySpec": ("metrics", "parameters"),
    "StudySpec.MetricSpec": ("metricId", "goal"),
    "StudySpec.ParameterSpec": ("parameterId",),
}  # fmt: skip
_SIZES: Final = machines.boot_disk_sizes()
#: Limits of numbers.
BOUNDS: Final = {
    ("WorkerPoolSpec", "replicaCount"): {"minimum": 1},
    ("HyperparameterTuningJob", "maxTrialCount"): {"minimum": 1},
    ("HyperparameterTuningJob", "parallelTrialCount"): {"minimum": 1},
    ("MachineSpec", "acceleratorCount"): {"minimum": 0},
    ("DiskSpec", "bootDiskSizeGb"): {"minimum": _SIZES.start, "maximum": _SIZES.stop - 1},
}
LABELS: Final = {
    "type": "object",
    "propertyNames": {
        "pattern": naming.LABEL_KEY.pattern.replace(r"\Z", "$"),
        "errorMessage": (
            "at most 63 lowercase letters, digits, '_' and '-'; the first character is a letter"
        ),
    },
}


def generate() -> str:
    """Return the text of the generated file."""
    messages = hints.messages()
    wrapper = sorted(set(messages["CustomJob"]) - set(messages["CustomJobSpec"]))
    spelled = {name for key in wrapper for name in (key, to_snake(key))}
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Vertex AI training job or tuning job",
        "description": "A CustomJob in REST form (displayName, labels, encryptionSpec, jobSpec), "
        "only its jobSpec (the form of gcloud's --config), or a HyperparameterTuningJob "
        "(studySpec, trialJobSpec and trial counts).",
        "type": "object",
        "if": _any_of(name for key in kinds.OF_TUNING for name in (key, to_snake(key))),
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
    """Return the class in Google's client of a message, such as ``StudySpec.MetricSpec``."""
    return functools.reduce(lambda owner, part: getattr(owner, part, None), name.split("."), types)


def message(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a message."""
    texts = documentation(client_type(name))
    properties: dict[str, Any] = {}
    for key, row in fields.items():
        if row["type"] == "output":
            continue
        properties[key] = {"description": texts.get(to_snake(key), key), **field(name, key, row)}
        if to_snake(key) != key:  # the Python client's spelling is accepted, but not proposed
            properties[to_snake(key)] = {"doNotSuggest": True, **field(name, key, row)}
    schema: dict[str, Any] = {
        "type": "object",
        "description": texts.get("") or name,
        "properties": properties,
        "additionalProperties": False,
    }
    conditions = [*exclusions(fields), *required(name)]
    if name == "MachineSpec":
        conditions += accelerator_rules()
    if conditions:
        schema["allOf"] = conditions
    if name in FROM_STACK:
        text = {
            "type": "string",
            "pattern": rf"^\s*{REFERENCE}\s*$",
            "errorMessage": f"write {FROM_STACK[name]}, or the fields",
            "examples": [FROM_STACK[name]],
        }
        return {"anyOf": [schema, text], "description": schema.pop("description")}
    return schema


def exclusions(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions that only one field of a oneof is set, in either spelling."""
    groups: dict[str, list[str]] = {}
    for key, row in fields.items():
        if "oneof" in row:
            groups.setdefault(row["oneof"], []).append(key)
    return [
        {"not": {"required": [one, other]}}
        for keys in groups.values()
        for first, second in itertools.combinations(keys, 2)
        for one in sorted({first, to_snake(first)})
        for other in sorted({second, to_snake(second)})
    ]


def field(message_name: str, key: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field."""
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
    """Return the schema of a field's value, or of an element of a repeated field."""
    kind = row["type"]
    if kind == "message":
        return {"$ref": f"#/definitions/{row['message']}"}
    if kind == "map":
        return {**LABELS, "additionalProperties": {"type": "string"}}
    if kind == "enum":
        values = [value for value in row["values"] if not value.endswith("_UNSPECIFIED")]
        texts = documentation(client_type(message_name).meta.fields[to_snake(key)].enum)
        values += [value for value in row["values"] if value not in values]
        return {
            "enum": values,
            "markdownEnumDescriptions": [texts.get(value, "") for value in values],
        }
    if kind in job_message.LIMITS:
        return number(message_name, key)
    return SCALARS.get(kind) or text(message_name, key)


def documentation(owner: Any) -> dict[str, str]:
    """Return the parts of a type's docstring: by field or value, and "" for the type itself."""
    texts: dict[str, list[str]] = {"": []}
    current = ""
    for line in inspect.cleandoc(getattr(owner, "__doc__", "") or "").splitlines():
        if line in ("Attributes:", "Values:"):
            current = "-"  # lines before the first entry are omitted
        elif current and (entry := ENTRY.match(line)):
            current = entry[1]
        elif not line.startswith((".. _oneof", "This message has `oneof`_")):
            texts.setdefault(current, []).append(line)
    return {name: tidy(lines) for name, lines in texts.items() if name != "-"}


def tidy(lines: list[str]) -> str:
    """Return the text of a docstring's lines, without reST markup and remarks about oneofs."""
    text = inspect.cleandoc("\n".join(lines)).strip()
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    kept = [p for p in paragraphs if "`oneof`_" not in p and "For each oneof" not in p]
    plain = "\n\n".join(kept)
    plain = re.sub(r"``([^`]*)``", r"`\1`", plain)
    plain = re.sub(r"`([^`<]*?)\s*<([^>]*)>`__?", r"[\1](\2)", plain)
    plain = re.sub(r"\[([\w.]+)\]\[[\w.]+\]", r"`\1`", plain)
    return plain


def text(message: str, key: str) -> dict[str, Any]:
    """Return the schema of a text field."""
    if (message, key) == ("MachineSpec", "machineType"):
        return _one_of(sorted(machines.machine_types()), "not a machine type for training jobs")
    if (message, key) == ("DiskSpec", "bootDiskType"):
        return _one_of(list(machines.boot_disk_types()), "not a boot disk type")
    if key == "displayName":
        reference = {"pattern": REFERENCE, "errorMessage": "at most 128 characters"}
        return {"type": "string", "anyOf": [{"maxLength": 128}, reference]}
    if (message, key) in FORMS:
        pattern, words = FORMS[message, key]
        plain = pattern.replace(r"\Z", "$")
        schema = {"type": "string", "pattern": f"^({plain})|({REFERENCE})"}
        return {**schema, "errorMessage": f"write {words}"}
    return {"type": "string"}


def number(message: str, key: str) -> dict[str, Any]:
    """Return the schema of a whole number. JSON writes int64 as text, so text is also valid."""
    return {
        "type": ["integer", "string"],
        "pattern": "^-?[0-9]+$",
        "errorMessage": "write a whole number, such as 4",
        **BOUNDS.get((message, key), {}),
    }


def required(message: str) -> list[dict[str, Any]]:
    """Return the conditions that a message has its required fields, in either spelling."""
    if message == "WorkerPoolSpec":
        needs = [*_present("machineSpec"), *_present("containerSpec", "pythonPackageSpec")]
        return [{"if": {"minProperties": 1}, "then": {"allOf": needs}}]
    return [schema for key in REQUIRED.get(message, ()) for schema in _present(key)]


def _present(*keys: str) -> list[dict[str, Any]]:
    spelled = dict.fromkeys(name for key in keys for name in (key, to_snake(key)))
    options = [{"required": [name]} for name in spelled]
    return options if len(options) == 1 else [{"anyOf": options}]


def _one_of(values: list[str], otherwise: str) -> dict[str, Any]:
    words = f"{otherwise}. `vt catalogue` lists valid values"
    reference = {"type": "string", "pattern": REFERENCE, "errorMessage": words}
    return {"anyOf": [{"enum": values, "errorMessage": words}, reference]}


def accelerator_rules() -> list[dict[str, Any]]:
    """Return the conditions on the accelerators of a machine type and their counts."""
    kinds: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    counts: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for machine in machines.machine_types().values():
        if machine.tpu:
            continue  # the accelerators of TPU machines depend on the topology
        has = tuple(sorted(machine.accelerators))
        kinds.setdefault((machine.accelerator_required, has), []).append(machine.name)
        for kind, allowed in machine.accelerators.items():
            counts.setdefault((kind, allowed), []).append(machine.name)
    return [
        *(_has(sorted(names), kinds, must) for (must, kinds), names in sorted(kinds.items())),
        *(_takes(sorted(names), kind, many) for (kind, many), names in sorted(counts.items())),
    ]


def _has(names: list[str], kinds: tuple[str, ...], required: bool) -> dict[str, Any]:
    none = [] if required else ["ACCELERATOR_TYPE_UNSPECIFIED"]
    then: dict[str, Any] = {"properties": {"acceleratorType": {"enum": [*kinds, *none]}}}
    if required:
        then["allOf"] = [*_present("acceleratorType"), *_present("acceleratorCount")]
    return {"if": _given(machineType={"enum": names}), "then": then}


def _takes(names: list[str], kind: str, counts: tuple[int, ...]) -> dict[str, Any]:
    allowed = [0, *counts, "0", *map(str, counts)]  # 0 means the same as no count
    return {
        "if": _given(machineType={"enum": names}, acceleratorType={"const": kind}),
        "then": {"properties": {"acceleratorCount": {"enum": allowed}}},
    }


def _given(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"properties": fields, "required": list(fields)}


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
