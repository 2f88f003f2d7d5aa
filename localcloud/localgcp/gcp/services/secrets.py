"""Secrets, key rings and keys; the local cloud encrypts nothing.

As in the cloud, key rings and keys are never deleted. Deleting the resource only removes it from
Pulumi's state, and a second key ring or key of this name is refused
(https://cloud.google.com/kms/docs/faq#cannot_delete).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from localgcp.errors import CloudError, RefusedError
from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Values, text
from localgcp.gcp.services.base import ResourceType
from localgcp.inventory import resource_paths
from localgcp.inventory.store import project_number

SECRET: Final = "gcp:secretmanager/secret:Secret"
KEY_RING: Final = "gcp:kms/keyRing:KeyRing"
CRYPTO_KEY: Final = "gcp:kms/cryptoKey:CryptoKey"
_ID: Final = re.compile(r"^[a-zA-Z0-9_-]{1,255}$")


class Secret(ResourceType):
    """A secret (``gcp.secretmanager.Secret``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        name = text(inputs, "secretId")
        if not _ID.fullmatch(name):
            reason = f"Secret ID [{name}] does not match the pattern [{_ID.pattern}]."
            raise CloudError(400, reason)

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        name = f"projects/{project_number(project)}/secrets/{text(inputs, 'secretId')}"
        return {"name": name, **self.remake(cloud, id_, inputs, {})}

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        return {"effectiveAnnotations": dict(inputs.get("annotations") or {})}

    def delete(self, cloud: Cloud, id_: str, olds: Values) -> None:
        if olds.get("deletionProtection"):
            raise RefusedError(
                f"cannot destroy secret {id_} without setting deletion_protection=false "
                "and running `pulumi up`"
            )
        super().delete(cloud, id_, olds)


class CryptoKey(ResourceType):
    """A key (``gcp.kms.CryptoKey``)."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        ring = text(values, "keyRing")
        in_full = ring.startswith("projects/")
        return resource_paths.project_of(ring) if in_full else cloud.settings.project

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        ring = text(inputs, "keyRing")
        if cloud.store.get(KEY_RING, ring) is None:
            raise CloudError(404, f"KeyRing {ring} not found.", "notFound")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        encrypts = text(inputs, "purpose") in ("", "ENCRYPT_DECRYPT")
        primary = {"name": f"{id_}/cryptoKeyVersions/1", "state": "ENABLED"}
        return {
            "destroyScheduledDuration": inputs.get("destroyScheduledDuration") or "2592000s",
            "primaries": [primary] if encrypts else [],
        }


_KMS: Final = "cloudkms.googleapis.com"
_EXISTS: Final = "{title} {id} already exists."
TYPES: Final[dict[str, ResourceType]] = {
    SECRET: Secret(
        "Secret",
        "secretmanager.googleapis.com",
        exists="Secret [{id}] already exists.",
        name_as_given=True,
        longest_name=255,
        updated_in_place=("customerManagedEncryption",),  # resource_secret_manager_secret.go
    ),
    KEY_RING: ResourceType(
        "KeyRing", _KMS, exists=_EXISTS, outlives=True, name_as_given=True, longest_name=255
    ),
    CRYPTO_KEY: CryptoKey(
        "CryptoKey",
        _KMS,
        exists=_EXISTS,
        outlives=True,
        name_as_given=True,
        longest_name=255,
        rules={"rotationPeriod": check.rotation_period},
    ),
}
