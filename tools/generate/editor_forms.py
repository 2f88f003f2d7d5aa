"""Conditions on job files that a JSON schema can express beyond fields and types.

They use the expressions of the rules, and only of rules with level error: an editor must never be
stricter than ``vt check``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from vertex_training import naming
from vertex_training.catalog import machines
from vertex_training.customjob.rules import environment, identity, network, storage

REFERENCE: Final = r"\$\{[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+\}"

#: Patterns of text fields. References are always allowed: only a stack can resolve them.
PATTERNS: Final[dict[tuple[str, str], str]] = {
    ("CustomJobSpec", "experiment"): identity.CONTEXT.pattern,
    ("CustomJobSpec", "experimentRun"): identity.CONTEXT.pattern,
    ("CustomJobSpec", "network"): network.NETWORK.pattern.replace("[^/]+", "[0-9]+"),
    ("CustomJobSpec", "reservedIpRanges"): network.NAME.pattern,
    ("CustomJobSpec", "serviceAccount"): identity.EMAIL.pattern,
    ("CustomJobSpec", "tensorboard"): identity.TENSORBOARD.pattern,
    ("EncryptionSpec", "kmsKeyName"): identity.KEY.pattern,
    ("EnvVar", "name"): environment.ENV_NAME.pattern,
    ("GcsDestination", "outputUriPrefix"): storage.FOLDER_URI.pattern,
    ("PscInterfaceConfig", "networkAttachment"): (
        f"{network.NAME.pattern}|{network.ATTACHMENT.pattern}"
    ),
    ("PythonPackageSpec", "packageUris"): storage.OBJECT_URI.pattern,
}
#: Messages of editors if a pattern does not match, instead of the regular expression.
WORDS: Final[dict[tuple[str, str], str]] = {
    ("CustomJobSpec", "experiment"): (
        "projects/PROJECT/locations/REGION/metadataStores/default/contexts/EXPERIMENT"
    ),
    ("CustomJobSpec", "experimentRun"): (
        "projects/PROJECT/locations/REGION/metadataStores/default/contexts/EXPERIMENT-RUN"
    ),
    ("CustomJobSpec", "network"): (
        "projects/NUMBER/global/networks/NAME with the project number, or ${network.name}"
    ),
    ("CustomJobSpec", "reservedIpRanges"): (
        "name of an IP range (lowercase letters, digits and '-'), or ${network.ranges.NAME}"
    ),
    ("CustomJobSpec", "serviceAccount"): (
        "email of a service account, such as trainer@PROJECT.iam.gserviceaccount.com, or "
        "${serviceAccounts.NAME}"
    ),
    ("CustomJobSpec", "tensorboard"): "projects/PROJECT/locations/REGION/tensorboards/NUMBER",
    ("EncryptionSpec", "kmsKeyName"): (
        "projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY"
    ),
    ("EnvVar", "name"): "letters, digits and '_'; the first character is not a digit",
    ("GcsDestination", "outputUriPrefix"): "gs://BUCKET/FOLDER, or ${buckets.NAME}/FOLDER",
    ("PscInterfaceConfig", "networkAttachment"): (
        "projects/PROJECT/regions/REGION/networkAttachments/NAME, only NAME, or "
        "${network.attachment}"
    ),
    ("PythonPackageSpec", "packageUris"): "gs://BUCKET/FILE.tar.gz, or ${packages.NAME}",
}
#: Required fields. A worker pool may also be empty, and is then skipped.
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
#: Numbers that are at least 1.
COUNTS: Final = frozenset(
    {
        ("WorkerPoolSpec", "replicaCount"),
        ("HyperparameterTuningJob", "maxTrialCount"),
        ("HyperparameterTuningJob", "parallelTrialCount"),
    }
)
LABELS: Final = {
    "type": "object",
    "propertyNames": {
        "pattern": naming.LABEL_KEY.pattern.replace(r"\Z", "$"),
        "errorMessage": (
            "at most 63 lowercase letters, digits, '_' and '-'; the first character is a letter"
        ),
    },
}


def snake(key: str) -> str:
    """Convert ``bootDiskSizeGb`` to ``boot_disk_size_gb``."""
    return re.sub(r"(?<!^)([A-Z])", lambda match: f"_{match[1].lower()}", key)


def text(message: str, key: str) -> dict[str, Any]:
    """Return the schema of a text field."""
    if (message, key) == ("MachineSpec", "machineType"):
        return _one_of(sorted(machines.machine_types()), "not a machine type for training jobs")
    if (message, key) == ("DiskSpec", "bootDiskType"):
        return _one_of(list(machines.boot_disk_types()), "not a boot disk type")
    if key == "displayName":
        reference = {"pattern": REFERENCE, "errorMessage": "at most 128 characters"}
        return {"type": "string", "anyOf": [{"maxLength": 128}, reference]}
    if pattern := PATTERNS.get((message, key)):
        plain = pattern.replace(r"\Z", "$")
        words = f"write {WORDS[message, key]}"
        return {"type": "string", "pattern": f"^({plain})|({REFERENCE})", "errorMessage": words}
    return {"type": "string"}


def number(message: str, key: str) -> dict[str, Any]:
    """Return the schema of a whole number. JSON writes int64 as text; the checker accepts both."""
    schema: dict[str, Any] = {
        "type": ["integer", "string"],
        "pattern": "^-?[0-9]+$",
        "errorMessage": "write a whole number, such as 4",
    }
    if (message, key) in COUNTS:
        schema["minimum"] = 1
    if (message, key) == ("MachineSpec", "acceleratorCount"):
        schema["minimum"] = 0
    if (message, key) == ("DiskSpec", "bootDiskSizeGb"):
        sizes = machines.boot_disk_sizes()
        schema |= {"minimum": sizes.start, "maximum": sizes.stop - 1}
    return schema


def required(message: str) -> list[dict[str, Any]]:
    """Return conditions that a message has its required fields, in either spelling."""
    if message == "WorkerPoolSpec":
        needs = [*_present("machineSpec"), *_present("containerSpec", "pythonPackageSpec")]
        return [{"if": {"minProperties": 1}, "then": {"allOf": needs}}]
    return [schema for key in REQUIRED.get(message, ()) for schema in _present(key)]


def _present(*keys: str) -> list[dict[str, Any]]:
    spelled = dict.fromkeys(name for key in keys for name in (key, snake(key)))
    options = [{"required": [name]} for name in spelled]
    return options if len(options) == 1 else [{"anyOf": options}]


def _one_of(values: list[str], otherwise: str) -> dict[str, Any]:
    words = f"{otherwise}. `vt catalogue` lists valid values"
    reference = {"type": "string", "pattern": REFERENCE, "errorMessage": words}
    return {"anyOf": [{"enum": values, "errorMessage": words}, reference]}


def accelerator_rules() -> list[dict[str, Any]]:
    """Return conditions on the accelerators of a machine type and their counts."""
    kinds: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    counts: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for machine in machines.machine_types().values():
        if machine.tpu:
            continue  # what they need depends on the topology
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
