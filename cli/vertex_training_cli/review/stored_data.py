"""Data that stays, and is encrypted with another key, or costs something to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.resource_types import BUCKET
from vertex_training.plan.access import VERBS
from vertex_training_cli.engine.plan import WITH_REQUEST, Plan
from vertex_training_cli.review import grants
from vertex_training_cli.review.jobs import request
from vertex_training_cli.review.risk import COSTS, LOST, Quote, first, told_alike

#: Inputs with the key that encrypts a resource.
KEYS: Final = ("kmsKeyName", "defaultKmsKeyName")
#: USD a GB read of each class; none for STANDARD, which has no retrieval fee:
#: https://cloud.google.com/storage/pricing#retrieval-pricing
RETRIEVAL: Final = {"NEARLINE": 0.01, "COLDLINE": 0.02, "ARCHIVE": 0.05}


@dataclass(frozen=True, slots=True, order=True)
class KeyChange:
    """A key of Cloud KMS that no longer encrypts new data of resources that stay."""

    old: str
    new: str
    """What encrypts it instead; empty for a key of Google's."""
    names: tuple[str, ...]
    """The resources, by their names in the program."""


def key_changes(plan: Plan) -> tuple[KeyChange, ...]:
    """All of a plan, by key."""
    found: dict[tuple[str, str], list[str]] = {}
    for step in plan.changed:
        if step.old and step.new:
            old, new = (set(_keys(step.type, state.inputs)) for state in (step.old, step.new))
            for key in old - new:
                found.setdefault((key, min(new - old, default="")), []).append(step.name)
    return tuple(sorted(KeyChange(*keys, tuple(sorted(names))) for keys, names in found.items()))


def _keys(type_: str, inputs: Mapping[str, Any]) -> Iterator[str]:
    """Keys that are named at any depth of a resource's inputs."""
    yield from _named(request(inputs) if type_ in WITH_REQUEST else inputs)


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (str(value[key]) for key in KEYS if value.get(key))
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _named(each)


@dataclass(frozen=True, slots=True, order=True)
class ColdBucket:
    """A bucket that members read, in a class whose reads are paid for."""

    name: str
    old: str
    """The class before; empty for a new bucket."""
    new: str


def cold_buckets(plan: Plan) -> tuple[ColdBucket, ...]:
    """Buckets of which reads cost more than before, and that accounts or people read."""
    reads = {each.target for each in grants.held(plan) if each.role in VERBS}
    found = [
        ColdBucket(step.name, _class(step.old.inputs) if step.old else "", _class(step.new.inputs))
        for step in plan.changed
        if step.type == BUCKET and step.new and str(step.new.inputs.get("name")) in reads
    ]
    return tuple(sorted(e for e in found if _fee(e.new) > _fee(e.old)))


def _class(inputs: Mapping[str, Any]) -> str:
    return str(inputs.get("storageClass") or "STANDARD").upper()


def _fee(storage_class: str) -> float:
    return RETRIEVAL.get(storage_class, 0.0)


def _change(each: KeyChange, quote: Quote) -> str:
    short = [key.rpartition("/")[2] for key in (each.old, each.new)]
    old, new = (each.old, each.new) if short[0] == short[1] else short
    changed = f"{quote(old)} → {quote(new)}" if each.new else quote(old)
    return f"{changed} ({first([quote(name) for name in each.names])})"


def _cold(each: ColdBucket, quote: Quote) -> str:
    before = f"{quote(each.old)} → " if each.old else ""
    return f"{quote(each.name)} ({before}{quote(each.new)}, ${_fee(each.new):.2f} a GB)"


UNENCRYPTED: Final = told_alike(
    lambda plan: [each for each in key_changes(plan) if not each.new],
    _change,
    "keysGone",
    "no longer encrypted with your key",
    LOST,
    "destroys",
)
OTHER_KEY: Final = told_alike(
    lambda plan: [each for each in key_changes(plan) if each.new],
    _change,
    "keysChanged",
    "encrypted with another key",
)
COLD: Final = told_alike(cold_buckets, _cold, "coldBuckets", "reads are paid for", COSTS)
