"""Cloud KMS: neither a key ring nor a key is ever deleted there, and so neither is here.

Deleting the resource forgets it (a key's versions are destroyed); a second one of its name is
refused, as in the cloud. https://cloud.google.com/kms/docs/faq#cannot_delete
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory import resource_paths

KEY_RING: Final = "gcp:kms/keyRing:KeyRing"
CRYPTO_KEY: Final = "gcp:kms/cryptoKey:CryptoKey"
_DESTROY_AFTER: Final = "2592000s"


@dataclass(frozen=True)
class SoftDeletedType(ResourceType):
    """A resource that outlives its deletion."""

    api: str | None = "cloudkms.googleapis.com"

    def exists(self, id_: str) -> str:
        kind = "CryptoKey" if "/cryptoKeys/" in id_ else "KeyRing"
        return f"{kind} {id_} already exists."

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        return True


@dataclass(frozen=True)
class KeyRing(SoftDeletedType):
    """A key ring (``gcp.kms.KeyRing``)."""

    name_as_given: ClassVar = True
    longest_name: ClassVar = 255

    title: str = "KeyRing"


@dataclass(frozen=True)
class CryptoKey(SoftDeletedType):
    """A key (``gcp.kms.CryptoKey``); nothing is encrypted with it here."""

    name_as_given: ClassVar = True
    longest_name: ClassVar = 255
    rules: ClassVar = {"rotationPeriod": rules.rotation_period}

    title: str = "CryptoKey"

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        ring = text(dict(values), "keyRing")
        in_full = ring.startswith("projects/")
        return resource_paths.project_of(ring) if in_full else cloud.settings.project

    def verify(self, cloud: Cloud, project: str, inputs: dict[str, Any], doing: str) -> None:
        ring = text(inputs, "keyRing")
        if cloud.store.get(KEY_RING, ring) is None:
            raise CloudError(doing, 404, f"KeyRing {ring} not found.", "notFound")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {
            "destroyScheduledDuration": inputs.get("destroyScheduledDuration") or _DESTROY_AFTER,
            "primaries": [],
        }
        if text(inputs, "purpose") in ("", "ENCRYPT_DECRYPT"):
            made["primaries"] = [{"name": f"{id_}/cryptoKeyVersions/1", "state": "ENABLED"}]
        return made
