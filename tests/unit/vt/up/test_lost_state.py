"""Which id each resource is imported by, and which of them are left to ``up``."""

from __future__ import annotations

import pytest

from vertex_training.catalog import resource_types


@pytest.mark.parametrize(
    ("type_", "inputs", "expected"),
    [
        (resource_types.BUCKET, {"name": "acme-data"}, "acme-data"),
        (
            resource_types.ACCOUNT,
            {"accountId": "trainer-dev", "project": "acme"},
            "projects/acme/serviceAccounts/trainer-dev@acme.iam.gserviceaccount.com",
        ),
        (resource_types.ACCOUNT, {"accountId": "trainer-dev"}, ""),
        (
            "gcp:servicenetworking/connection:Connection",
            {"network": "projects/acme/global/networks/n", "service": "s.googleapis.com"},
            "projects/acme/global/networks/n:s.googleapis.com",
        ),
        (resource_types.ON_BUCKET, {"bucket": "b", "role": "r", "member": "m"}, ""),
        (resource_types.JOB, {"requestId": "x"}, ""),
    ],
)
def test_an_id_is_made_of_known_inputs(type_: str, inputs: dict[str, str], expected: str) -> None:
    assert resource_types.find(type_).id_to_import(inputs) == expected
