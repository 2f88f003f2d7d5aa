"""References, ``${kind.name}``, from a job file to resources of the stack.

A reference always has a dot. Text without one stays as it is: the shell's ``${HOME}``, and
``$(VAR)`` of Kubernetes and Vertex AI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.errors import UnknownReferenceError, did_you_mean

REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+)\}")

#: Kinds whose names a stack file declares, each under a section of the same name.
DECLARED: Final = (
    "buckets",
    "images",
    "packages",
    "reservations",
    "secrets",
    "serviceAccounts",
    "snapshots",
)

#: What only a network of a certain mode has: ``${network.name}``.
OF_MODE: Final = {"name": "peering", "attachment": "psc", "interface": "psc"}


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """Stands in a table for a name that is declared, and has no value yet."""

    hint: str
    """Key of the stack file that defines the missing reference."""


#: Known name -> text, or a mapping where a whole message is meant, or an ``UnknownValue``.
Table = Mapping[str, Any]


def names_in(text: str) -> list[str]:
    """Names of the references in ``text``, in order.

    >>> names_in("${buckets.data}/x ${HOME}")
    ['buckets.data']
    """
    return REFERENCE.findall(text)


def resolve(text: str, table: Table) -> str:
    """``text`` with every reference replaced by what it stands for.

    Raises:
        UnknownReferenceError: for the first one that is unknown, or stands for a whole message.
    """

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        value = table.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, UnknownValue):
            raise UnknownReferenceError(name, value.hint)
        if value is not None:
            raise UnknownReferenceError(name, "it stands for a whole section, not for text")
        raise UnknownReferenceError(name, _hint(name, table))

    return REFERENCE.sub(replace, text)


def message_of(text: str, table: Table) -> Any | None:
    """Return the value that ``text`` refers to if it is a single reference, else None."""
    match = REFERENCE.fullmatch(text.strip())
    value = table.get(match.group(1)) if match else None
    return None if isinstance(value, UnknownValue) else value


def _hint(name: str, table: Table) -> str:
    kind, _, rest = name.partition(".")
    same_kind = [known for known in table if known.split(".")[0] == kind]
    if not same_kind and kind in DECLARED:
        key = rest.partition(".")[0]
        return f"this stack declares no {kind}; name '{key}' under vertex-training:{kind}"
    if kind == "network" and rest in OF_MODE and name not in same_kind:
        return f"vertex-training:network gives it in mode {OF_MODE[rest]}"
    if name == "tensorboard.name":
        return "vertex-training:tensorboard names the instance"
    return did_you_mean(name, same_kind or list(table))
