"""Names of resources that were given none: the resource's name and seven random characters."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import NameTooLongError
from localgcp.gcp.schema import TypeSchema

RANDOM_LENGTH: Final = 7


@dataclass(frozen=True)
class Naming:
    """What the engine says about names in one Check: the seed, and the stack's autonaming rule."""

    seed: bytes = b""
    proposed: str = ""
    mode: str = ""  # "", "propose", "enforce" or "disabled"


def auto_name(type_: TypeSchema, name: str, naming: Naming) -> str | None:
    """A name for the resource called ``name``; None if the stack forbids making one.

    Raises NameTooLongError.
    """
    if naming.mode == "disabled":
        return None
    if naming.mode == "enforce":
        return naming.proposed
    traits = type_.traits
    prefix = name if traits.name_as_given else name.lower()
    if naming.mode == "propose":
        return naming.proposed if traits.name_as_given else naming.proposed.lower()
    longest = traits.longest_name
    if len(prefix) + 1 + RANDOM_LENGTH > longest:
        raise NameTooLongError(
            f"could not make instance of '{type_.token}': name '{prefix}-' plus {RANDOM_LENGTH} "
            f"random chars is longer than maximum length {longest}"
        )
    return f"{prefix}-{_random(naming.seed)}"


def _random(seed: bytes) -> str:
    digest = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(RANDOM_LENGTH)
    return digest[:RANDOM_LENGTH]


def kept_name(olds: dict[str, Any], key: str) -> Any:
    """The name an earlier Check made for this resource, or None."""
    return olds.get(key) if key in (olds.get("__defaults") or ()) else None
