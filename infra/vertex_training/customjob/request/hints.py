"""Hints for mistakes of form: what to write instead."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from vertex_training import catalog
from vertex_training.customjob.kinds import CUSTOM_JOB, JobKind
from vertex_training.errors import MAX_WORD, Mend, abbreviate, did_you_mean, nearest

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
#: The same for a tuning job.
TUNING_PLACES: Final = {
    "HyperparameterTuningJob": "the top level, beside studySpec",
    "StudySpec": "studySpec",
    "StudySpec.MetricSpec": "an item of studySpec.metrics",
    "StudySpec.MetricSpec.SafetyMetricConfig": "safetyConfig of a metric",
    "StudySpec.ParameterSpec": "an item of studySpec.parameters",
    "StudySpec.ParameterSpec.DoubleValueSpec": "doubleValueSpec",
    "StudySpec.ParameterSpec.IntegerValueSpec": "integerValueSpec",
    "StudySpec.ParameterSpec.CategoricalValueSpec": "categoricalValueSpec",
    "StudySpec.ParameterSpec.DiscreteValueSpec": "discreteValueSpec",
    "StudySpec.ParameterSpec.ConditionalParameterSpec": "an item of conditionalParameterSpecs",
    "StudySpec.StudyStoppingConfig": "studySpec.studyStoppingConfig",
    **{name: place for name, place in PLACES.items() if name != "CustomJob"},
    "CustomJobSpec": "trialJobSpec",
}
#: The message of an item of ``env``.
ENV_VAR: Final = "EnvVar"
#: How alike a field of another place must be to be what was meant.
ELSEWHERE: Final = 0.85
#: How alike two words are, from 0 to 1, where one is surely the other misspelt.
SURE: Final = 0.84
#: TPUs that machine types name, and no accelerator type.
NEWER_TPU: Final = re.compile(r"TPU[-_]?V(5[ELP]|6|7)|TPU_?[67]X", re.IGNORECASE)
#: A number as JSON writes it.
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?")


#: Fields that only other messages have at their top level, and the message that has them.
OTHERS: Final = {
    "trainingTaskDefinition": "TrainingPipeline",
    "trainingTaskInputs": "TrainingPipeline",
    "modelToUpload": "TrainingPipeline",
    "pipelineSpec": "PipelineJob",
    "pipelineInfo": "PipelineJob",
    "runtimeConfig": "PipelineJob",
    "deploymentSpec": "PipelineJob",
    "trainingInput": "job of AI Platform Training",
    "apiVersion": "Kubernetes resource",
    "taskGroups": "job of Google Batch",
    "allocationPolicy": "job of Google Batch",
    "numNodes": "SkyPilot task",
    "fileMounts": "SkyPilot task",
    "setup": "SkyPilot task",
    "commands": "dstack configuration",
    "spotPolicy": "dstack configuration",
    "jobs": "workflow of GitHub",
    "main": "workflow of Google Workflows",
}
_OF_STACK: Final = "stack file of Pulumi"
_OF_PROJECT: Final = "project file of Pulumi"
#: Fields that a stack file of the engine alone has, beside its config.
_OF_STACK_ALONE: Final = frozenset({"secretsprovider", "encryptionsalt", "encryptedkey"})
#: Fields by which a file is a job's, whatever its name.
_SPECS: Final = frozenset({"jobSpec", "trialJobSpec", "studySpec", "workerPoolSpecs"})
#: How the engine names its files, whatever is in them.
ENGINE_FILE: Final = re.compile(r"(?:.*/)?Pulumi(?:\.(?P<stack>[^/]+))?\.ya?ml\Z", re.DOTALL)
OTHER_HINTS: Final = {
    "HyperparameterTuningJob": "name it in the stack file under vertex-training:tuning",
    "CustomJob": "name it in the stack file under vertex-training:jobs",
    "TrainingPipeline": "a job file is its trainingTaskInputs alone, for custom code",
    "PipelineJob": "pipelines are compiled and submitted by their own tools",
    "job of AI Platform Training": "a CustomJob says the same in workerPoolSpecs",
    "job of Google Batch": "`vt import` of this file makes a job file of it, with backend: batch",
    "SkyPilot task": "a CustomJob says the same in workerPoolSpecs, and its script in args",
    "dstack configuration": "a CustomJob says the same in workerPoolSpecs, and its script in args",
    "workflow of GitHub": "`vt import` of this file finds gcloud's commands in its steps",
    "workflow of Google Workflows": "`vt import` of this file finds the jobs in its calls",
    "Kubernetes resource": "a CustomJob names its machines and its image in workerPoolSpecs",
    _OF_STACK: "check it by `vt check --stack {stack}`, or preview the program it belongs to",
    _OF_PROJECT: "check a stack of it by `vt check --stack {stack}`",
}


def other_resource(fields: Iterable[str], file: str = "", config: Iterable[str] = ()) -> str:
    """Return the kind of a file with these top fields, if it is surely none of the jobs here.

    ``config``: the keys below its field ``config``; a stack file has them with a namespace.

    >>> other_resource(["config"], config=["gcp:project"]), other_resource(["config"])
    ('stack file of Pulumi', '')
    """
    keys = set(fields)
    named = None if keys & _SPECS else ENGINE_FILE.match(file)
    if named:
        return _OF_STACK if named["stack"] else _OF_PROJECT
    if keys & _SPECS:  # one wrong key beside them is a mistake of a job file
        return ""
    if other := next((kind for field, kind in OTHERS.items() if field in keys), ""):
        return other
    if any(map(_is_of_job, keys)):
        return ""
    if keys >= {"name", "runtime"}:
        return _OF_PROJECT
    is_stack = bool(keys & _OF_STACK_ALONE) or any(":" in key for key in config)
    return _OF_STACK if is_stack else ""


def hint_of_other(other: str, file: str) -> str:
    """Return the advice for such a file."""
    named = ENGINE_FILE.match(file)
    stack = named["stack"] if named else None
    return OTHER_HINTS[other].format(stack=stack or "STACK")


def _is_of_job(field: str) -> bool:
    """Return whether a job file of either form may have this field at its top."""
    tops = ("CustomJob", "CustomJobSpec", "HyperparameterTuningJob")
    return any(messages()[top].get(field, {"type": "output"})["type"] != "output" for top in tops)


@functools.cache
def messages() -> dict[str, dict[str, Any]]:
    """Message name -> field name -> its row in the catalogue."""
    custom, tuning = catalog.load("custom_job.json"), catalog.load("tuning_job.json")
    return custom["messages"] | tuning["messages"]


def places(kind: JobKind) -> Mapping[str, str]:
    """Return the location of each message in a file of this kind, in words."""
    return PLACES if kind is CUSTOM_JOB else TUNING_PLACES


def not_a_duration(text: str) -> str:
    """Return the right form of a duration that was written as 24h, 86400 or else."""
    duration = seconds(text)
    return f'write "{duration}"' if duration else 'seconds with an s, as text: "3600s"'


def seconds(text: str) -> str | None:
    """The API's form of a duration that was written as 24h or 86400; None if it is another."""
    if re.fullmatch(r"[0-9]{1,12}", text):
        return f"{text}s"
    if short := re.fullmatch(r"([0-9]{1,9})([mhd])", text):
        factor = {"m": 60, "h": 3600, "d": 86400}[short[2]]
        return f"{int(short[1]) * factor}s"
    return None


def env_item(variable: tuple[str, str]) -> str:
    """Return an item of ``env`` as it is to be written; text stays hidden: it may be a secret.

    >>> env_item(("EPOCHS", "3")), env_item(("TOKEN", "abc"))
    ('{name: EPOCHS, value: "3"}', '{name: TOKEN, value: "…"}')
    """
    name, text = variable
    is_shown = re.fullmatch(r"-?[0-9]{1,6}(\.[0-9]{1,6})?|true|false", text)
    return f'{{name: {name}, value: "{text if is_shown else "…"}"}}'


def not_a_value(text: str, values: list[str]) -> str:
    """Return the enum value that was probably meant."""
    real = [name for name in values if not name.endswith("_UNSPECIFIED")]
    if "TPU_V2" in real and NEWER_TPU.match(text):
        return "machineType and tpuTopology alone name a TPU since v5e; vt catalogue lists them"
    meant = catalog.load("wrong_values.yaml").get(text.upper())
    return f"write {meant}" if meant in real else did_you_mean(text, real)


def mend_of_value(text: str, values: list[str]) -> Mend | None:
    """The value that was certainly meant: but for case and hyphens it is there, or often so."""
    if text.upper().replace("-", "_") in values:
        return Mend("value", text.upper().replace("-", "_"))
    meant = catalog.load("wrong_values.yaml").get(text.upper())
    return Mend("value", meant, guessed=True) if meant in values else None


def certain_field(key: str, name: str, kind: JobKind) -> str | None:
    """The field of message ``name`` that ``key`` certainly is: the same but for case, or near it.

    None if another field is near as well, here or at another place.
    """
    if to_folded(key) in {to_folded(field) for field in catalog.load("wrong_fields.yaml")}:
        return None
    here = [field for field, row in messages()[name].items() if row["type"] != "output"]
    everywhere = {field for message in places(kind) for field in messages()[message]}
    same = [field for field in here if to_folded(field) == to_folded(key)]
    if same:
        return same[0]
    folded = {to_folded(field): field for field in sorted(everywhere)}
    near = difflib.get_close_matches(to_folded(key), folded, n=2, cutoff=SURE)
    return folded[near[0]] if len(near) == 1 and folded[near[0]] in here else None


def to_folded(key: str) -> str:
    """A key without what people mistake most: case, underscores, hyphens."""
    return key.lower().replace("_", "").replace("-", "")[:MAX_WORD]


def not_a_field(key: str, field: str, name: str, kind: JobKind) -> tuple[str, str]:
    """The rule that a field which message ``name`` does not have breaks, and a hint."""
    wrong = catalog.load("wrong_fields.yaml")
    if field in wrong:
        return "unknown-field", wrong[field].format(spec=kind.spec, section=kind.section)
    if matches := _places(field, name, kind):
        where, here = " or ".join(matches[:2]), places(kind).get(name, "this place")
        return "misplaced-field", f"it belongs to {where}, not to {here}"
    return "unknown-field", _nearest_field(key, name, kind)


def not_text(content: Any, text: str) -> str:
    """Return YAML's reading of ``text``, and how to keep the text."""
    made = str(content).lower() if isinstance(content, bool) else str(content)[:40]
    return f'YAML reads it as {made}; quote it: "{abbreviate(text)}"'


def not_whole(text: str) -> str:
    """Return the right form of a whole number that was written as 1e3 or 4.0."""
    number = whole_number(text)
    return "digits alone, like 4" if number is None else f"write {number}"


def whole_number(text: str) -> int | None:
    """The whole number that was written as 1e3 or 4.0; None if it is none."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?([eE][+]?[0-9])?", text):
        number = float(text)
        return int(number) if number.is_integer() else None
    return None


def _places(field: str, name: str, kind: JobKind) -> list[str]:
    """Return the right location of ``field``, in words; not in message ``name``."""
    return [
        place
        for message, place in places(kind).items()
        if message != name
        and messages()[message].get(field, {"type": "output"})["type"] != "output"
    ]


def _nearest_field(key: str, name: str, kind: JobKind) -> str:
    """A hint for a field that is nowhere: a near one here, a near one elsewhere, or all here."""
    here = [field for field, row in messages()[name].items() if row["type"] != "output"]
    everywhere = {field for message in places(kind) for field in messages()[message]}
    best = nearest(key, everywhere)
    elsewhere = best is not None and best not in here
    # A word that only resembles a field of another place was not meant to be that.
    best = nearest(key, everywhere, ELSEWHERE) if elsewhere else best
    if best and best not in here and (matches := _places(best, name, kind)):
        return f"did you mean '{best}'? It belongs to {' or '.join(matches[:2])}"
    return did_you_mean(key, here)
