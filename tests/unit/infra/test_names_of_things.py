"""Names that a stack gives or is given, and whom IAM members and labels belong to."""

from __future__ import annotations

import hashlib

import pytest

from vertex_training import naming
from vertex_training.naming import Names

DERIVED = Names("acme-ml-dev", "210987654321", "us-central1", "dev")
GIVEN = Names(
    "acme-ml-dev",
    "210987654321",
    "us-central1",
    "dev",
    {
        ("buckets", "data"): "acme-datasets",
        ("serviceAccounts", "trainer"): "trainer-x",
        ("serviceAccounts", "other"): "other@acme-other.iam.gserviceaccount.com",
        ("secrets", "token"): "wandb",
        ("secrets", "other"): "projects/acme-keys/secrets/their-token",
        ("registry", ""): "projects/acme-images/locations/us/repositories/shared",
        ("tensorboard", ""): "projects/p/locations/r/tensorboards/1",
    },
)


def test_names_follow_from_project_stack_and_key() -> None:
    assert {
        name: getattr(DERIVED, name)("data")
        for name in (
            *("bucket", "account_id", "account_email", "account", "secret_id", "secret", "image"),
            *("ip_range", "firewall", "reservation", "model_id"),
        )
    } == {
        "bucket": "acme-ml-dev-data-dev",
        "account_id": "data-dev",
        "account_email": "data-dev@acme-ml-dev.iam.gserviceaccount.com",
        "account": (
            "projects/acme-ml-dev/serviceAccounts/data-dev@acme-ml-dev.iam.gserviceaccount.com"
        ),
        "secret_id": "data-dev",
        "secret": "projects/acme-ml-dev/secrets/data-dev",
        "image": "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/data",
        "ip_range": "training-data-dev",
        "firewall": "training-dev-data",
        "reservation": "data-dev",
        "model_id": "data-dev",
    }
    assert (DERIVED.repository_id(), DERIVED.repository_path(), DERIVED.repository()) == (
        "training-dev",
        "projects/acme-ml-dev/locations/us-central1/repositories/training-dev",
        "us-central1-docker.pkg.dev/acme-ml-dev/training-dev",
    )
    assert DERIVED.tensorboard() == (
        "projects/210987654321/locations/us-central1/tensorboards/0"
    )  # fmt: skip
    assert DERIVED.network() == "training-dev"
    assert naming.stack_of_repository("training-dev") == "dev"


def test_names_that_are_given_count() -> None:
    assert (GIVEN.bucket("data"), GIVEN.bucket("more")) == ("acme-datasets", "acme-ml-dev-more-dev")
    assert GIVEN.account_email("trainer") == "trainer-x@acme-ml-dev.iam.gserviceaccount.com"
    other = "other@acme-other.iam.gserviceaccount.com"
    assert (GIVEN.account_id("other"), GIVEN.account_email("other")) == ("other", other)
    assert GIVEN.account("other") == f"projects/acme-other/serviceAccounts/{other}"
    assert (GIVEN.secret_id("token"), GIVEN.secret("token")) == (
        *("wandb", "projects/acme-ml-dev/secrets/wandb"),
    )
    assert (GIVEN.secret_id("other"), GIVEN.secret("other")) == (
        *("their-token", "projects/acme-keys/secrets/their-token"),
    )
    assert (GIVEN.repository_id(), GIVEN.repository()) == (
        *("shared", "us-docker.pkg.dev/acme-images/shared"),
    )
    assert GIVEN.tensorboard() == "projects/p/locations/r/tensorboards/1"
    named = Names("p", "1", "us-central1", "dev", {("registry", ""): "mine"})
    assert named.repository_path() == "projects/p/locations/us-central1/repositories/mine"


def test_numbers_of_local_projects_and_endpoints_are_the_same_on_every_machine() -> None:
    digest = int(hashlib.sha256(b"local-x").hexdigest(), 16)
    assert naming.local_project_number("local-x") == str(100_000_000_000 + digest % 900_000_000_000)
    assert naming.local_project_number("local-training") == "971240389164"
    parts = "acme-ml-dev\0us-central1\0dev\0titanic"
    digest = int(hashlib.sha256(parts.encode()).hexdigest(), 16)
    assert DERIVED.endpoint_id("titanic") == str(100_000_000 + digest % 900_000_000)
    assert (naming.is_local("local-x"), naming.is_local("x-local-")) == (True, False)


def test_agents_of_google_have_the_projects_number() -> None:
    end = "iam.gserviceaccount.com"
    assert DERIVED.vertex_agent() == f"service-210987654321@gcp-sa-aiplatform.{end}"
    assert DERIVED.custom_code_agent() == f"service-210987654321@gcp-sa-aiplatform-cc.{end}"
    assert DERIVED.service_agent("gs-project-accounts") == (
        f"service-210987654321@gs-project-accounts.{end}"
    )
    assert naming.deployer("acme-ml", "dev") == (
        f"serviceAccount:ci-deploy-dev@acme-ml.{end}"
    )  # fmt: skip
    assert naming.ci_account_id("plan", "dev") == "ci-plan-dev"
    assert naming.project_of_account(f"a@acme-ml.{end}") == "acme-ml"


POOL = "principalSet://iam.googleapis.com/projects/12/locations/global/workloadIdentityPools/ci"
PEOPLE = "principal://iam.googleapis.com/locations/global/workforcePools/eu-staff"


@pytest.mark.parametrize(
    ("member", "domain", "may_be_named"),
    [
        ("user:kim@example.com", "example.com", True),
        ("group:ml@sub.example.com", "sub.example.com", True),
        ("serviceAccount:a@acme-ml.iam.gserviceaccount.com", "acme-ml.iam.gserviceaccount.com",
         True),
        ("serviceAccount:acme-ml@appspot.gserviceaccount.com", "acme-ml.iam.gserviceaccount.com",
         True),
        ("serviceAccount:acme-ml.svc.id.goog[ns/name]", "acme-ml.iam.gserviceaccount.com", True),
        ("serviceAccount:12-compute@developer.gserviceaccount.com", "projects/12", True),
        ("serviceAccount:12@cloudbuild.gserviceaccount.com", "projects/12", True),
        ("serviceAccount:12@cloudservices.gserviceaccount.com", "projects/12", True),
        ("serviceAccount:service-12@gcp-sa-aiplatform.iam.gserviceaccount.com", "projects/12",
         True),
        ("serviceAccount:service-12@compute-system.iam.gserviceaccount.com", "projects/12", True),
        ("domain:example.com", "example.com", False),
        ("deleted:user:kim@example.com?uid=123", "example.com", False),
        ("deleted:user:kim@example.com", "", False),
        (f"{POOL}/*", "projects/12", True),
        (f"{POOL}/attribute.repository/acme/x", "projects/12", True),
        (f"{POOL}/", "", True),
        (f"{PEOPLE}/subject/kim", "workforcePools/eu-staff", True),
        ("principalSet://cloudresourcemanager.googleapis.com/folders/7/type/ServiceAccount",
         "folders/7", True),
        ("principal://other.googleapis.com/x", "", True),
        ("principal://with space", "", False),
        ("user:kim@example", "", False),
        ("user:a@evil.com/@example.com", "", False),
        ("allUsers", "", False),
        ("kim@example.com", "", False),
        ("", "", False),
    ],
)  # fmt: skip
def test_a_member_belongs_to_a_domain_a_project_or_a_pool(
    member: str, domain: str, may_be_named: bool
) -> None:
    assert naming.domain_of_member(member) == domain
    assert naming.is_member(member) is may_be_named


@pytest.mark.parametrize(
    ("member", "patterns", "is_of"),
    [
        ("user:kim@Example.com", ["example.COM"], True),
        ("user:kim@sub.example.com", ["example.com"], False),
        ("user:kim@sub.example.com", ["*.example.com"], True),
        ("user:kim@example.com", ["*.example.com"], False),
        ("user:kim@example.com", ["other.com", "example.com"], True),
        ("user:kim@example.com", [], False),
        ("allUsers", ["*"], False),
        (f"{PEOPLE}/subject/kim", ["workforcepools/eu-staff"], True),
    ],
)
def test_a_member_is_of_a_domain_that_a_pattern_names(
    member: str, patterns: list[str], is_of: bool
) -> None:
    assert naming.is_of_domains(member, patterns) is is_of


def test_a_stacks_own_members_are_of_its_project() -> None:
    assert naming.own_domains("acme-ml", "12", ["example.com"]) == [
        *("acme-ml.iam.gserviceaccount.com", "projects/12", "example.com"),
    ]


@pytest.mark.parametrize(
    ("member", "is_agent"),
    [
        ("serviceAccount:service-12@gcp-sa-aiplatform.iam.gserviceaccount.com", True),
        ("serviceAccount:service-12@gs-project-accounts.iam.gserviceaccount.com", True),
        ("serviceAccount:service-12@compute-system.iam.gserviceaccount.com", True),
        ("serviceAccount:service-12@acme.iam.gserviceaccount.com", False),
        ("serviceAccount:12@gcp-sa-aiplatform.iam.gserviceaccount.com", False),
    ],
)
def test_an_agent_of_a_service_is_told_by_its_address(member: str, is_agent: bool) -> None:
    assert naming.is_service_agent(member) is is_agent


KEY_RULE = (
    "label key '{}' must be 1 to 63 characters: lowercase letters, digits, '_' and '-', starting "
    "with a letter"
)
VALUE_RULE = "value of label '{}' must be at most 63 lowercase letters, digits, '_' and '-'"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("a", "", None),
        ("a" * 63, "1_-a" + "x" * 59, None),
        ("a" * 64, "x", KEY_RULE.format("a" * 64)),
        ("1a", "x", KEY_RULE.format("1a")),
        ("", "x", KEY_RULE.format("")),
        ("a\n", "x", KEY_RULE.format("a\n")),
        ("a", "x" * 64, VALUE_RULE.format("a")),
        ("a", "X", VALUE_RULE.format("a")),
        ("a", "x\n", VALUE_RULE.format("a")),
    ],
)
def test_a_label_is_told_with_what_is_wrong(key: str, value: str, problem: str | None) -> None:
    assert naming.label_problem(key, value) == problem


@pytest.mark.parametrize(
    ("key", "is_own"),
    [("managed-by", True), ("stack", True), ("vt-run", True), ("run", False), ("x-vt-", False)],
)
def test_labels_of_the_program_are_its_own(key: str, is_own: bool) -> None:
    assert naming.is_own_label(key) is is_own


@pytest.mark.parametrize(
    ("pattern", "taken", "refused"),
    [
        (naming.KEY, ["a", "a1", "a-b"], ["", "A", "1a", "a-", "a_b", "a\n"]),
        (naming.BUCKET, ["abc", "1_a", "a" * 63], ["ab", "a" * 64, "-ab", "ab-", "a.b", "Abc"]),
        (naming.ACCOUNT_ID, ["trainr", "a" * 30], ["train", "a" * 31, "1rainer", "trainer-"]),
        (naming.COMPUTE, ["a", "a" * 63, "a-1"], ["", "a" * 64, "1a", "a-", "A"]),
        (naming.MODEL_ID, ["_", "a" * 63, "a-"], ["", "a" * 64, "1a", "A"]),
        (naming.BUCKET_GOOGLE, ["goog-x", "my-google", "g00gle"], ["my-goog", "gogle"]),
    ],
)
def test_a_name_is_one_that_its_service_takes(
    pattern: object, taken: list[str], refused: list[str]
) -> None:
    match = pattern.match  # pyright: ignore[reportAttributeAccessIssue]
    assert [name for name in taken if not match(name)] == []
    assert [name for name in refused if match(name)] == []
