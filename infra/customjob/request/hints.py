"""Hints for mistakes of form: what to write instead."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any, Final

from infra import catalog
from infra.errors import abbreviate, did_you_mean, nearest

#: Where each message belongs in a job file, in words for people.
PLACES: Final = {
    "CustomJob": "the top level, beside jobSpec",
    "CustomJobSpec": "jobSpec (the top level in gcloud's form)",
    "WorkerPoolSpec": "a worker pool",
    "EnvVar": "an item of env",
    "MachineSpec": "machineSpec",
    "ContainerSpec": "containerSpec",
    "PythonPackageSpec": "pythonPackageSpec",
    "DiskSpec": "diskSpec",
    "Scheduling": "scheduling",
    "ReservationAffinity": "machineSpec.reservationAffinity",
    "GcsDestination": "baseOutputDirectory",
    "EncryptionSpec": "encryptionSpec",
    "PscInterfaceConfig": "pscInterfaceConfig",
    "DnsPeeringConfig": "an item of pscInterfaceConfig.dnsPeeringConfigs",
    "NfsMount": "an item of nfsMounts",
    "LustreMount": "an item of lustreMounts",
}


#: Fields that only other messages have at their top level, and the message that has them.
OTHERS: Final = {
    "studySpec": "HyperparameterTuningJob",
    "trialJobSpec": "HyperparameterTuningJob",
    "trainingTaskDefinition": "TrainingPipeline",
    "trainingTaskInputs": "TrainingPipeline",
    "modelToUpload": "TrainingPipeline",
    "pipelineSpec": "PipelineJob",
    "pipelineInfo": "PipelineJob",
    "runtimeConfig": "PipelineJob",
    "deploymentSpec": "PipelineJob",
    "trainingInput": "job of AI Platform Training",
    "apiVersion": "Kubernetes resource",
}
OTHER_HINTS: Final = {
    "HyperparameterTuningJob": "a job file is its trialJobSpec alone; tuning is not submitted here",
    "TrainingPipeline": "a job file is its trainingTaskInputs alone, for custom code",
    "PipelineJob": "pipelines are compiled and submitted by their own tools",
    "job of AI Platform Training": "a CustomJob says the same in workerPoolSpecs",
    "Kubernetes resource": "a CustomJob names its machines and its image in workerPoolSpecs",
}


def other_resource(fields: Iterable[str]) -> str:
    """What a file with these fields at its top is, if it is surely no CustomJob."""
    return next((OTHERS[field] for field in fields if field in OTHERS), "")


@functools.cache
def messages() -> dict[str, dict[str, Any]]:
    """Message name -> field name -> its row in the catalogue."""
    return catalog.load("custom_job.json")["messages"]


def not_a_duration(text: str) -> str:
    """How to write a duration that was written as 24h, 86400 or else."""
    if re.fullmatch(r"[0-9]{1,12}", text):
        return f'write "{text}s"'
    if short := re.fullmatch(r"([0-9]{1,9})([mhd])", text):
        factor = {"m": 60, "h": 3600, "d": 86400}[short[2]]
        return f'write "{int(short[1]) * factor}s"'
    return 'seconds with an s, as text: "3600s"'


def not_a_value(text: str, values: list[str]) -> str:
    """Which of an enum's values was meant."""
    real = [name for name in values if not name.endswith("_UNSPECIFIED")]
    meant = catalog.load("wrong_values.yaml").get(text.upper())
    return f"write {meant}" if meant in real else did_you_mean(text, real)


def not_a_field(key: str, field: str, name: str) -> tuple[str, str]:
    """The rule that a field which message ``name`` does not have breaks, and a hint."""
    wrong = catalog.load("wrong_fields.yaml")
    if field in wrong:
        return "unknown-field", wrong[field]
    if places := _places(field, name):
        where = " or ".join(places[:2])
        return "misplaced-field", f"it belongs to {where}, not to {PLACES[name]}"
    return "unknown-field", _nearest_field(key, name)


def not_text(content: Any, text: str) -> str:
    """What YAML made of ``text``, and how to keep it."""
    made = str(content).lower() if isinstance(content, bool) else str(content)[:40]
    return f'YAML reads it as {made}; quote it: "{abbreviate(text)}"'


def not_whole(text: str) -> str:
    """How to write a whole number that was written as 1e3 or 4.0."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?([eE][+]?[0-9])?", text):
        number = float(text)
        if number.is_integer():
            return f"write {int(number)}"
    return "digits alone, like 4"


def _places(field: str, name: str) -> list[str]:
    """Where ``field`` would be right, in people's words; not in message ``name``."""
    return [
        place
        for message, place in PLACES.items()
        if message != name
        and messages()[message].get(field, {"type": "output"})["type"] != "output"
    ]


def _nearest_field(key: str, name: str) -> str:
    """A hint for a field that is nowhere: a near one here, a near one elsewhere, or all here."""
    here = [field for field, row in messages()[name].items() if row["type"] != "output"]
    everywhere = {field for message in PLACES for field in messages()[message]}
    best = nearest(key, everywhere)
    if best and best not in here and (places := _places(best, name)):
        return f"did you mean '{best}'? It belongs to {' or '.join(places[:2])}"
    return did_you_mean(key, here)
