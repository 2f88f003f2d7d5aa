"""Hints about mistakes in job files: the text to write instead."""

import difflib
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from vertex_training import catalog
from vertex_training.customjob.kinds import JobKind
from vertex_training.errors import MAX_WORD, Mend, abbreviate, did_you_mean, nearest

#: The message of an item of ``env``.
ENV_VAR: Final = "EnvVar"
#: Minimum similarity, from 0 to 1, to a field that belongs to another place.
ELSEWHERE: Final = 0.85
#: Minimum similarity, from 0 to 1, of a certain misspelling.
SURE: Final = 0.84
#: TPUs with machine types instead of accelerator types.
NEWER_TPU: Final = re.compile(r"TPU[-_]?V(5[ELP]|6|7)|TPU_?[67]X", re.IGNORECASE)
#: A number as JSON writes it.
NUMBER: Final = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?")
_OF_STACK: Final = "Pulumi stack file"
_OF_PROJECT: Final = "Pulumi project file"
#: Fields of a Pulumi stack file other than ``config``.
_OF_STACK_ALONE: Final = frozenset({"secretsprovider", "encryptionsalt", "encryptedkey"})
#: Fields that identify a job file, regardless of its name.
_SPECS: Final = frozenset({"jobSpec", "trialJobSpec", "studySpec", "workerPoolSpecs"})
#: Names of Pulumi's files.
ENGINE_FILE: Final = re.compile(r"(?:.*/)?Pulumi(?:\.(?P<stack>[^/]+))?\.ya?ml\Z", re.DOTALL)


def other_resource(fields: Iterable[str], file: str = "", config: Iterable[str] = ()) -> str:
    """Return the kind of a file with these top-level fields; empty for a possible job file.

    ``config`` are the keys below the field ``config``; in a stack file they have a namespace.

    >>> other_resource(["config"], config=["gcp:project"]), other_resource(["config"])
    ('Pulumi stack file', '')
    """
    keys = set(fields)
    if keys & _SPECS:  # a job file, whose other keys may be wrong
        return ""
    if engine_file := ENGINE_FILE.match(file):
        return _OF_STACK if engine_file["stack"] else _OF_PROJECT
    for kind, row in catalog.load("other_files.yaml").items():
        if not keys.isdisjoint(row["fields"]):
            return kind
    tops = ("CustomJob", "CustomJobSpec", "HyperparameterTuningJob")
    if any(not keys.isdisjoint(_inputs(top)) for top in tops):
        return ""
    if keys >= {"name", "runtime"}:
        return _OF_PROJECT
    is_stack = bool(keys & _OF_STACK_ALONE) or any(":" in key for key in config)
    return _OF_STACK if is_stack else ""


def hint_of_other(other: str, file: str) -> str:
    """Return the hint for a file that is no job file."""
    engine_file = ENGINE_FILE.match(file)
    stack = engine_file["stack"] if engine_file else None
    return catalog.load("other_files.yaml")[other]["hint"].format(stack=stack or "STACK")


@functools.cache
def messages() -> dict[str, dict[str, Any]]:
    """Return the fields of all API messages in the catalogue, by message and field."""
    custom, tuning = catalog.load("custom_job.json"), catalog.load("tuning_job.json")
    return custom["messages"] | tuning["messages"]


def _inputs(message: str) -> list[str]:
    """Return the fields of an API message that a job file can set."""
    return [field for field, row in messages()[message].items() if row["type"] != "output"]


def places(kind: JobKind) -> Mapping[str, str]:
    """Return a description of each message's place in a job file of this kind."""
    table = catalog.load("places.yaml")
    return table[kind.message] | table["both"]


def seconds(text: str) -> str | None:
    """Return a duration like 24h or 86400 in the API's form; None for other text."""
    if re.fullmatch(r"[0-9]{1,12}", text):
        return f"{text}s"
    if short := re.fullmatch(r"([0-9]{1,9})([mhd])", text):
        factor = {"m": 60, "h": 3600, "d": 86400}[short[2]]
        return f"{int(short[1]) * factor}s"
    return None


def env_item(variable: tuple[str, str]) -> str:
    """Return a variable as an item of ``env``. Hides its value, which may be a secret.

    >>> env_item(("EPOCHS", "3")), env_item(("TOKEN", "abc"))
    ('{name: EPOCHS, value: "3"}', '{name: TOKEN, value: "…"}')
    """
    name, text = variable
    is_shown = re.fullmatch(r"-?[0-9]{1,6}(\.[0-9]{1,6})?|true|false", text)
    return f'{{name: {name}, value: "{text if is_shown else "…"}"}}'


def not_a_value(text: str, values: list[str]) -> str:
    """Return a hint with the enum value that was probably meant."""
    real = [name for name in values if not name.endswith("_UNSPECIFIED")]
    if "TPU_V2" in real and NEWER_TPU.match(text):
        return "remove acceleratorType; since v5e, machineType and tpuTopology select a TPU"
    meant = catalog.load("wrong_values.yaml").get(text.upper())
    return f"write {meant}" if meant in real else did_you_mean(text, real)


def mend_of_value(text: str, values: list[str]) -> Mend | None:
    """Return the fix for an enum value with wrong case or hyphens, or a common mistake."""
    if text.upper().replace("-", "_") in values:
        return Mend("value", text.upper().replace("-", "_"))
    meant = catalog.load("wrong_values.yaml").get(text.upper())
    return Mend("value", meant, guessed=True) if meant in values else None


def certain_field(key: str, name: str, kind: JobKind) -> str | None:
    """Return the field of message ``name`` that ``key`` certainly means, or None.

    The meaning is certain if only the case differs, or if one other field has a similar name.
    """
    if to_folded(key) in {to_folded(field) for field in catalog.load("wrong_fields.yaml")}:
        return None
    here = _inputs(name)
    everywhere = {field for message in places(kind) for field in messages()[message]}
    same = [field for field in here if to_folded(field) == to_folded(key)]
    if same:
        return same[0]
    folded = {to_folded(field): field for field in sorted(everywhere)}
    near = difflib.get_close_matches(to_folded(key), folded, n=2, cutoff=SURE)
    return folded[near[0]] if len(near) == 1 and folded[near[0]] in here else None


def to_folded(key: str) -> str:
    """Return a key in lowercase, without underscores and hyphens."""
    return key.lower().replace("_", "").replace("-", "")[:MAX_WORD]


def not_a_field(key: str, field: str, name: str, kind: JobKind) -> tuple[str, str]:
    """Return rule id and hint for a field that message ``name`` does not have."""
    wrong = catalog.load("wrong_fields.yaml")
    if field in wrong:
        return "unknown-field", wrong[field].format(spec=kind.spec, section=kind.section)
    if matches := _places(field, name, kind):
        where, here = " or ".join(matches[:2]), places(kind).get(name, "this place")
        return "misplaced-field", f"move {field} from {here} to {where}"
    fields = _inputs(name)
    everywhere = {field for message in places(kind) for field in messages()[message]}
    best = nearest(key, everywhere)
    if best is not None and best not in fields:  # a field of another place must be very similar
        best = nearest(key, everywhere, ELSEWHERE)
    if best and best not in fields and (matches := _places(best, name, kind)):
        return "unknown-field", f"did you mean '{best}' of {' or '.join(matches[:2])}?"
    return "unknown-field", did_you_mean(key, fields)


def not_text(content: Any, text: str) -> str:
    """Return a hint about text that YAML reads as another type."""
    parsed = str(content).lower() if isinstance(content, bool) else str(content)[:40]
    return f'write "{abbreviate(text)}" in quotes; YAML reads the text as {parsed}'


def whole_number(text: str) -> int | None:
    """Return a text like 1e3 or 4.0 as a whole number; None for other text."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?([eE][+]?[0-9])?", text):
        number = float(text)
        return int(number) if number.is_integer() else None
    return None


def _places(field: str, name: str, kind: JobKind) -> list[str]:
    others = [message for message in places(kind) if message != name and field in _inputs(message)]
    return [places(kind)[message] for message in others]
