"""A grant of each type: the resource that makes it, its inputs, and whether it stays."""

from __future__ import annotations

import asyncio
from typing import Any

import pulumi
import pytest
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import Recorder
from vertex_training.catalog.resource_types import (
    ON_ACCOUNT,
    ON_BUCKET,
    ON_DATASET,
    ON_KEY,
    ON_PROJECT,
    ON_REPOSITORY,
    ON_SECRET,
    ON_SUBNET,
)
from vertex_training.components.iam import make_grants
from vertex_training.plan.grants import Condition, GrantRequest

USER = "user:a@example.com"
AGENT = "serviceAccount:service-12@gcp-sa-aiplatform.iam.gserviceaccount.com"
EMAIL = "trainer@acme-ml.iam.gserviceaccount.com"
KEY = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/k"


def granted(
    type_: str,
    resource: str,
    *,
    member: str = USER,
    outputs: dict[str, Any] | None = None,
    ours: bool = True,
    condition: Condition | None = None,
) -> tuple[dict[str, tuple[str, dict[str, Any]]], dict[str, bool]]:
    """What a grant with this place registers, and whether it stays when the stack goes."""
    recorder, kept, patch = Recorder(), dict[str, bool](), pytest.MonkeyPatch()
    register = MockMonitor.RegisterResource

    def record(monitor: MockMonitor, request: Any) -> Any:
        if request.name.startswith("all-"):
            kept[request.name] = bool(request.retainOnDelete)
        return register(monitor, request)

    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "acme", "dev")

    @pulumi.runtime.test
    def run() -> None:
        one = GrantRequest(
            *("it", type_, "roles/x.y", member, "acme-ml", resource, ours, True, condition)
        )
        make_grants("all", [one], pulumi.ResourceOptions(), outputs)

    with patch.context() as patched:
        patched.setattr(MockMonitor, "RegisterResource", record)
        run()
    return recorder.registered, kept


@pytest.mark.parametrize(
    ("type_", "resource", "inputs"),
    [
        (ON_PROJECT, "", {"project": "acme-ml"}),
        (ON_BUCKET, "b/acme-data", {"bucket": "acme-data"}),
        (
            ON_DATASET,
            "projects/acme-ml/datasets/clicks",
            {"datasetId": "clicks", "project": "acme-ml"},
        ),
        (ON_SECRET, "projects/acme-ml/secrets/s", {"secretId": "projects/acme-ml/secrets/s"}),
        (
            ON_ACCOUNT,
            f"projects/acme-ml/serviceAccounts/{EMAIL}",
            {"serviceAccountId": f"projects/acme-ml/serviceAccounts/{EMAIL}"},
        ),
        (ON_KEY, KEY, {"cryptoKeyId": KEY}),
        (
            ON_SUBNET,
            "projects/acme-ml/regions/us-east1/subnetworks/s",
            {"subnetwork": "s", "project": "acme-ml", "region": "us-east1"},
        ),
        (
            ON_REPOSITORY,
            "projects/acme-ml/locations/europe/repositories/r",
            {"repository": "r", "project": "acme-ml", "location": "europe"},
        ),
    ],
)
def test_a_grant_names_what_it_is_on_as_its_type_does(
    type_: str, resource: str, inputs: dict[str, Any]
) -> None:
    expected = {"all-it": (type_, {**inputs, "role": "roles/x.y", "member": USER})}
    assert granted(type_, resource) == (expected, {"all-it": False})
    assert granted(type_, resource, ours=False) == ({}, {})


@pytest.mark.parametrize(
    ("member", "outputs", "stays"),
    [
        (USER, {}, False),
        (f"serviceAccount:{EMAIL}", {}, False),
        (AGENT, {}, True),
        # What the stack makes goes with the grants on it.
        (AGENT, {KEY: "made"}, False),
        (AGENT, {"projects/acme-ml/secrets/s": "made"}, True),
    ],
)
def test_a_service_agent_keeps_its_grants_on_what_the_stack_does_not_make(
    member: str, outputs: dict[str, Any], stays: bool
) -> None:
    made, kept = granted(ON_KEY, KEY, member=member, outputs=outputs)
    assert kept == {"all-it": stays}
    assert made["all-it"][1]["cryptoKeyId"] == outputs.get(KEY, KEY)


def test_a_grant_takes_member_and_condition_from_its_request_and_what_is_made() -> None:
    made, _ = granted(
        ON_BUCKET,
        "b/acme-data",
        member=f"serviceAccount:{EMAIL}",
        outputs={f"serviceAccount:{EMAIL}": "serviceAccount:made", "b/acme-data": "made-data"},
        condition=Condition("of images", "resource.name.startsWith('x')"),
    )
    assert made["all-it"][1] == {
        "bucket": "made-data",
        "role": "roles/x.y",
        "member": "serviceAccount:made",
        "condition": {"title": "of images", "expression": "resource.name.startsWith('x')"},
    }
