"""Roles that are probably misspelled: what was meant, or nothing where nobody can tell."""

from __future__ import annotations

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import extra_grants

PAGE = "https://docs.cloud.google.com/iam/docs/roles-permissions/"


@pytest.mark.parametrize(
    ("role", "hint"),
    [
        ("roles/storage.objectViewer", ""),
        ("roles/storage.objectVewer", "did you mean 'roles/storage.objectViewer'?"),
        ("roles/storage.objectviewer", "did you mean 'roles/storage.objectViewer'?"),
        ("roles/storge.objectViewer", "did you mean 'roles/storage.objectViewer'?"),
        ("roles/Storage.objectViewer", "did you mean 'roles/storage.objectViewer'?"),
        # Alike, and no more than that.
        ("roles/storage.objectReader", f"{PAGE}storage"),
        # A service whose name is longer is another one.
    ],
)
def test_a_role_that_is_none_of_googles_is_told_with_what_was_meant(role: str, hint: str) -> None:
    group = ["group:a@example.com"]
    settings = unjudged(
        buckets={"data": {"members": {role: group}}},
        registry={"members": {role: group}},
        serviceAccounts={
            "trainer": {
                "members": {role: group},
                "roles": {"acme-other-1": ["roles/run.invoker", role]},
                "datasets": {"acme-dw-1.d": [role]},
            }
        },
    )
    account = "serviceAccounts.trainer"
    places = [
        f"{account}.members.{role}",
        f"buckets.data.members.{role}",
        f"registry.members.{role}",
        f"{account}.roles.acme-other-1.1",
        f"{account}.datasets.acme-dw-1.d.0",
    ]
    what = "is no predefined role of Google's that this release knows"
    found = rows(extra_grants.warnings(settings))
    assert sorted(found) == sorted((place, what, role, hint) for place in places if hint)
