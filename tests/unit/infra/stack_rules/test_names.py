"""Names that Google Cloud would refuse, and keys that name what the stack does not have."""

import pytest

from tests.unit.infra.stacks import refused, stack


@pytest.mark.parametrize(
    "member",
    [
        "user:ada@example.com",
        "group:ml@example.com",
        "serviceAccount:ci@acme.iam.gserviceaccount.com",
        "principal://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/subject/s",
        "principalSet://iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/*",
    ],
)
def test_people_groups_accounts_and_principals_of_a_pool_may_submit(member):
    assert stack(submitters=[member]).submitters == [member]


@pytest.mark.parametrize("member", ["allUsers", "domain:example.com", "ada@example.com", ""])
def test_other_members_may_not_submit(member):
    for who in ("submitters", "deployers"):
        [(path, text)] = refused(**{who: [member]})
        assert path == f"{who}[0]"
        assert "not an IAM member" in text


@pytest.mark.parametrize("member", ["allUsers", "ada@example.com"])
def test_only_such_members_may_build_images(member):
    [(path, text)] = refused(builders=[member])
    assert path == "builders[0]"
    assert "not an IAM member" in text
