"""No grant is made twice, and none opens more than it says."""

import pytest

from tests.unit.infra.stacks import refused as refused_by
from tests.unit.infra.stacks import stack

TRAINER = "serviceAccount:trainer-prod@acme-ml-prod.iam.gserviceaccount.com"
READ, WRITE = "roles/storage.objectViewer", "roles/storage.objectUser"


def refused(**changes):
    return [(path, text.split(". Hint")[0]) for path, text in refused_by(**changes)]


def test_a_grant_that_the_stack_makes_anyway_is_refused():
    """Two resources of one membership: the one that is deleted first takes the access of both."""
    found = refused(
        buckets={"data": {"members": {READ: [TRAINER], WRITE: [TRAINER]}}},
        serviceAccounts={
            "trainer": {
                "reads": ["data"],
                "callsVertex": True,
                "members": {"roles/iam.serviceAccountUser": ["group:ml@example.com"]},
                "roles": {"acme-ml-prod": ["roles/logging.logWriter", "roles/aiplatform.user"]},
            }
        },
    )
    assert [path for path, _ in found] == [
        f"buckets.data.members.{READ}[0]",
        "serviceAccounts.trainer.members.roles/iam.serviceAccountUser[0]",
        "serviceAccounts.trainer.roles.acme-ml-prod[0]",
        "serviceAccounts.trainer.roles.acme-ml-prod[1]",
    ]


@pytest.mark.parametrize("member", ["allUsers", "allAuthenticatedUsers", "ml@example.com"])
def test_nobody_is_everybody(member):
    [(path, text)] = refused(buckets={"data": {"members": {READ: [member]}}})
    assert path == f"buckets.data.members.{READ}[0]"
    assert text == f"not an IAM member (got {member})"


@pytest.mark.parametrize("role", ["roles/owner", "roles/editor", "roles/viewer"])
def test_a_basic_role_is_refused_everywhere(role):
    found = refused(
        secrets={"key": {"members": {role: ["group:a@example.com"]}}},
        serviceAccounts={"trainer": {"roles": {"acme-warehouse": [role]}}},
    )
    assert [text for _, text in found] == [f"is a basic role (got {role})"] * 2


def test_an_account_of_another_team_gets_nothing_of_a_teams_bucket():
    teams = {"vision": {}, "speech": {}}
    buckets = {"images": {"team": "vision", "members": {READ: [TRAINER]}}}
    of_speech = {"trainer": {"team": "speech"}}
    assert refused(teams=teams, buckets=buckets, serviceAccounts=of_speech) == [
        (
            f"buckets.images.members.{READ}[0]",
            f"is an account of the stack that team vision does not own (got {TRAINER})",
        )
    ]
    stack(teams=teams, buckets=buckets, serviceAccounts={"trainer": {"team": "vision"}})


@pytest.mark.parametrize("role", ["storage.objectViewer", "roles/", "roles/a b", "roles/x\n"])
def test_what_is_no_role_is_refused(role):
    [(path, _)] = refused(buckets={"data": {"members": {role: []}}})
    assert path.startswith("buckets.data.members")


def test_a_label_of_ones_own_is_judged_like_the_stacks():
    labels = {"stack": "x", "Team": "y", "data-class": "internal"}
    found = refused(
        buckets={"data": {"labels": labels}}, secrets={"key": {"labels": {"vt-job": "x"}}}
    )
    assert [path for path, _ in found] == [
        "buckets.data.labels.stack",
        "buckets.data.labels.Team",
        "secrets.key.labels.vt-job",
    ]
