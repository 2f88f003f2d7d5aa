"""No grant is made twice, and none opens more than it says."""

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import extra_grants

TRAINER = "serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
READ, WRITE = "roles/storage.objectViewer", "roles/storage.objectUser"


GROUP = "group:a@example.com"
BASIC, NARROWER = "is a basic role", "a role of the one service that is needed"
TWICE = "is granted already: one of the two, removed, would take the other's"


def told(**sections):
    return rows(extra_grants.problems(unjudged(**sections)))


def test_a_grant_that_the_stack_makes_anyway_is_refused():
    """Two resources of one membership: the one that is deleted first takes the access of both."""
    act = "roles/iam.serviceAccountUser"
    logs, call = "roles/logging.logWriter", "roles/aiplatform.user"
    of_account = {"members": {act: ["group:ml@example.com", GROUP]}}
    of_account |= {"roles": {"acme-ml-prod": [logs, call], "acme-other": [logs, call]}}
    given = {"buckets": {"new": {"formerly": "data", "members": {READ: [GROUP, TRAINER]}}}}
    given["buckets"]["new"]["members"][WRITE] = [TRAINER]
    account = {"formerly": "trainer", "reads": ["new"], "callsVertex": True, **of_account}
    path = "serviceAccounts.own"
    assert told(**given, serviceAccounts={"own": account}) == [
        (f"buckets.new.members.{READ}.1", TWICE, TRAINER, "remove it"),
        (f"{path}.members.{act}.0", TWICE, "group:ml@example.com", "remove it"),
        (f"{path}.roles.acme-ml-prod.0", "is granted already by the stack", logs, "remove it"),
        (f"{path}.roles.acme-ml-prod.1", "is granted already by the stack", call, "remove it"),
    ]
    account = {"roles": {"acme-ml-prod": [call]}}  # nothing of the stack's needs it
    assert told(serviceAccounts={"trainer": account}) == []


@pytest.mark.parametrize(
    "role", [f"roles/{name}" for name in ("owner", "editor", "viewer", "admin", "writer", "reader")]
)
def test_a_basic_role_is_refused_everywhere(role):
    roles = {"acme-warehouse": ["roles/run.invoker", role], "acme-ml-prod": [role]}
    found = told(
        buckets={"data": {"members": {READ: [GROUP], role: [GROUP]}}},
        secrets={"key": {"members": {role: [GROUP]}}},
        registry={"members": {role: [GROUP]}},
        serviceAccounts={"trainer": {"roles": roles, "datasets": {"acme-dw-1.d": [role]}}},
    )
    assert found == [
        (path, BASIC, role, NARROWER)
        for path in (
            *(f"{place}.members.{role}" for place in ("buckets.data", "secrets.key", "registry")),
            "serviceAccounts.trainer.roles.acme-warehouse.1",
            "serviceAccounts.trainer.roles.acme-ml-prod.0",
            "serviceAccounts.trainer.datasets.acme-dw-1.d.0",
        )
    ]


def test_an_account_of_another_team_gets_nothing_of_what_a_team_owns():
    act, access = "roles/iam.serviceAccountUser", "roles/secretmanager.secretAccessor"

    def of(team):
        return told(
            teams={"vision": {}, "speech": {}},
            buckets={
                "images": {"team": "vision", "members": {READ: [TRAINER, GROUP]}},
                "all": {"members": {READ: [TRAINER]}},
            },
            secrets={"key": {"team": "vision", "members": {access: [TRAINER]}}},
            serviceAccounts={
                "trainer": {"team": team},
                "other": {"team": "vision", "members": {act: [TRAINER]}},
            },
        )

    what = "is an account of the stack that team vision does not own"
    rows_of = {
        f"buckets.images.members.{READ}.0": "images",
        f"secrets.key.members.{access}.0": "key",
        f"serviceAccounts.other.members.{act}.0": "other",
    }
    assert sorted(of("speech")) == sorted(
        (path, what, TRAINER, f"share {name}: remove its team") for path, name in rows_of.items()
    )
    assert of("vision") == []


def test_everybody_is_no_exception_of_drift():
    members = {"a": "allUsers", "b": GROUP, "c": "allAuthenticatedUsers"}
    more = {"role": READ, "policy": "b/*", "reason": "of another team"}
    allowed = {key: {"member": member, **more} for key, member in members.items()}
    hint = "name the user, group or account: what everybody may do is always reported"
    assert told(drift={"allowed": allowed}) == [
        (f"drift.allowed.{key}.member", "everybody is no exception of drift", members[key], hint)
        for key in ("a", "c")
    ]
