"""References like ``${kind.name}`` in a job file to resources of the stack.

A reference has a dot, unlike the shell's ``${HOME}`` and Vertex AI's ``$(VAR)``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.errors import UnknownReferenceError, did_you_mean

REFERENCE: Final = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+)\}")

#: Kinds of references to keys of a stack file's section; kind and section have the same name.
DECLARED: Final = frozenset(
    ("buckets", "images", "packages", "reservations", "secrets", "serviceAccounts", "snapshots")
)
#: Attribute of a network, as in ``${network.name}`` -> network mode in which it has a value.
OF_MODE: Final = {"name": "peering", "attachment": "psc", "interface": "psc"}


@dataclass(frozen=True, slots=True)
class UnknownValue:
    """Placeholder in the table of references for a declared name whose value is unknown."""

    hint: str
    """Hint with the key of the stack file that sets the value."""


#: Name of a reference -> its value: text, a mapping (a whole message), or an ``UnknownValue``.
Table = Mapping[str, Any]


def names_in(text: str) -> list[str]:
    """Return the names of the references in ``text``, in order.

    >>> names_in("${buckets.data}/x ${HOME}")
    ['buckets.data']
    """
    return REFERENCE.findall(text)


def resolve(text: str, table: Table) -> str:
    """Return ``text`` with all references replaced by their values.

    Raises UnknownReferenceError for the first reference that is unknown or a whole message.
    """

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        value = table.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, UnknownValue):
            raise UnknownReferenceError(name, value.hint)
        whole = "use this reference as the whole value of a field, not inside text"
        raise UnknownReferenceError(name, _hint(name, table) if value is None else whole)

    return REFERENCE.sub(replace, text)


def message_of(text: str, table: Table) -> Any | None:
    """Return the value of ``text`` if it is a single reference, else None."""
    match = REFERENCE.fullmatch(text.strip())
    value = table.get(match.group(1)) if match else None
    return None if isinstance(value, UnknownValue) else value


def _hint(name: str, table: Table) -> str:
    kind, _, rest = name.partition(".")
    same_kind = [known for known in table if known.split(".")[0] == kind]
    if not same_kind and kind in DECLARED:
        key = rest.partition(".")[0]
        return f"add '{key}' to vertex-training:{kind} in the stack file, which has no {kind}"
    if kind == "network" and rest in OF_MODE and name not in same_kind:
        return f"set mode: {OF_MODE[rest]} in vertex-training:network"
    if name == "tensorboard.name":
        return "name the TensorBoard in vertex-training:tensorboard"
    return did_you_mean(name, same_kind or list(table))
