"""Names that Google Cloud would refuse, and keys that name what the stack does not have."""

import pytest

from tests.unit.infra.stacks import refused, stack


@pytest.mark.parametrize(
    ("field", "kind"), [("reads", "bucket"), ("writes", "bucket"), ("secrets", "secret")]
)
def test_what_an_account_may_use_and_the_stack_has_not_is_told_by_its_kind(field, kind):
    given = {"buckets": {"data": {}}, "secrets": {"token": {}}}
    known = {"bucket": "data", "secret": "token"}[kind]
    account = {field: [known, f"{known}s"]}
    [(where, told)] = refused(**given, serviceAccounts={"trainer": account})
    assert where == f"serviceAccounts.trainer.{field}[1]"
    assert f"no such {kind} (got {known}s)" in told
    assert f"did you mean '{known}'?" in told


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


BUILT = {"a": {"context": "jobs/spot_resume"}}


def test_the_account_that_builds_images_is_the_stacks_own():
    found = dict(refused(images=BUILT, serviceAccounts={"image-build": {}}))
    assert "the stack makes this account itself" in found["serviceAccounts.image-build"]
    assert stack(serviceAccounts={"image-build": {}}).service_accounts


def test_a_stack_that_builds_images_has_a_name_short_enough_for_their_account():
    found = [": ".join(parts) for parts in refused(stack="nineteen-characters", images=BUILT)]
    assert any("images: the account that builds images" in text for text in found)
    assert stack(stack="nineteen-characters").stack
