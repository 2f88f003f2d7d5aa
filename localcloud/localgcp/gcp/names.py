"""Names of resources that were given none: the resource's name and seven random characters."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any, Final

from localgcp.errors import NameTooLongError

RANDOM_LENGTH: Final = 7

# Longest name of each type (default: 63, in lower case, as Compute Engine wants it).
# Cloud Storage's plugin code neither lowers nor limits: a bad name fails when it is created.
_AS_GIVEN: Final = frozenset(
    {
        "gcp:storage/bucket:Bucket",
        "gcp:storage/bucketObject:BucketObject",
        "gcp:secretmanager/secret:Secret",
        "gcp:logging/metric:Metric",
        "gcp:kms/keyRing:KeyRing",
        "gcp:kms/cryptoKey:CryptoKey",
    }
)
_LONGEST: Final = {"gcp:serviceaccount/account:Account": 30}


@dataclass(frozen=True)
class Naming:
    """What the engine says about names in one Check: the seed, and the stack's autonaming rule."""

    seed: bytes = b""
    proposed: str = ""
    mode: str = ""  # "", "propose", "enforce" or "disabled"


def auto_name(token: str, name: str, naming: Naming) -> str | None:
    """A name for the resource called ``name``; None if the stack forbids making one.

    Raises NameTooLongError.
    """
    if naming.mode == "disabled":
        return None
    if naming.mode == "enforce":
        return naming.proposed
    longest = 255 if token in _AS_GIVEN else _LONGEST.get(token, 63)
    prefix = name if token in _AS_GIVEN else name.lower()
    if naming.mode == "propose":
        return naming.proposed if token in _AS_GIVEN else naming.proposed.lower()
    if len(prefix) + 1 + RANDOM_LENGTH > longest:
        raise NameTooLongError(
            f"could not make instance of '{token}': name '{prefix}-' plus {RANDOM_LENGTH} random "
            f"chars is longer than maximum length {longest}"
        )
    return f"{prefix}-{_random(naming.seed)}"


def _random(seed: bytes) -> str:
    digest = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(RANDOM_LENGTH)
    return digest[:RANDOM_LENGTH]


def kept_name(olds: dict[str, Any], key: str) -> Any:
    """The name an earlier Check made for this resource, or None."""
    return olds.get(key) if key in (olds.get("__defaults") or ()) else None
