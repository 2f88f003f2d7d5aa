"""The key that encrypts the secrets of a stack's state is where the stack file names it."""

from __future__ import annotations

from typing import Any

from tests.unit.bootstrap.recorder import registered


def of_type(resources: dict[str, dict[str, Any]], type_: str) -> list[dict[str, Any]]:
    return [inputs for inputs in resources.values() if inputs["type"] == type_]


def test_ring_and_key_have_the_names_that_the_stacks_secrets_provider_is_made_of() -> None:
    resources = registered("prod")
    [ring] = of_type(resources, "gcp:kms/keyRing:KeyRing")
    [key] = of_type(resources, "gcp:kms/cryptoKey:CryptoKey")
    assert (ring["name"], ring["location"], ring["project"]) == (
        "pulumi-prod",
        "us-central1",
        "acme-ml-prod",
    )
    assert (key["name"], key["purpose"]) == ("stack-secrets", "ENCRYPT_DECRYPT")
    assert key["rotationPeriod"] == f"{90 * 24 * 3600}s"
