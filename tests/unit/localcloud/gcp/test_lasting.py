"""What the bootstrap of a project needs: keys that last, federation, alerts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

RING = "gcp:kms/keyRing:KeyRing"
KEY = "gcp:kms/cryptoKey:CryptoKey"
POOL = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
ALERT = "gcp:monitoring/alertPolicy:AlertPolicy"

RING_PATH = "projects/local-p1/locations/us-central1/keyRings/state"
OIDC = {"issuerUri": "https://token.actions.githubusercontent.com"}


@pytest.fixture
def ready(local: Plugin) -> Plugin:
    local.enable("cloudkms", "iam", "secretmanager", "monitoring")
    return local


def test_a_key_ring_and_its_keys_outlive_their_deletion(ready: Plugin) -> None:
    ring = {"name": "state", "location": "us-central1"}
    key = {"name": "config", "keyRing": RING_PATH}
    id_, olds = ready.create(RING, ring)
    key_id, key_olds = ready.create(KEY, key)
    assert key_id == f"{RING_PATH}/cryptoKeys/config"

    ready.delete(KEY, key_id, key_olds)
    ready.delete(RING, id_, olds)

    assert f"KeyRing {RING_PATH} already exists" in refused(lambda: ready.create(RING, ring))
    assert "already exists" in refused(lambda: ready.create(KEY, key))
    assert ready.read(RING, id_).id == id_


def test_a_key_needs_its_ring(ready: Plugin) -> None:
    text = refused(lambda: ready.create(KEY, {"name": "config", "keyRing": RING_PATH}))

    assert f"KeyRing {RING_PATH} not found" in text


def test_a_provider_needs_its_pool_and_a_subject(ready: Plugin) -> None:
    provider: dict[str, Any] = {
        "workloadIdentityPoolId": "ci-pool",
        "workloadIdentityPoolProviderId": "github",
        "oidc": OIDC,
        "attributeMapping": {"google.subject": "assertion.sub"},
    }
    assert "was not found" in refused(lambda: ready.create(PROVIDER, provider))
    ready.create(POOL, {"workloadIdentityPoolId": "ci-pool"})

    text = refused(lambda: ready.create(PROVIDER, {**provider, "attributeMapping": {}}))
    assert "google.subject" in text
    id_, outputs = ready.create(PROVIDER, provider)

    assert id_.endswith("/workloadIdentityPools/ci-pool/providers/github")
    assert outputs["state"] == "ACTIVE"


def test_an_alert_needs_its_channel(ready: Plugin) -> None:
    condition = {"displayName": "c", "conditionThreshold": {"comparison": "COMPARISON_LT",
                 "duration": "60s", "filter": "x"}}  # fmt: skip
    policy = {"displayName": "idle", "combiner": "OR", "conditions": [condition]}
    missing = "projects/local-p1/notificationChannels/1"

    text = refused(lambda: ready.create(ALERT, {**policy, "notificationChannels": [missing]}))

    assert f"refers to {missing}, which does not exist" in text
