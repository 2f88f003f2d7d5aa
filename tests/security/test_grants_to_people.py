"""Tests that direct grants to people are reported like grants through accounts; strangers are
refused.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.unit.vt.review import plans
from vertex_training import stack
from vertex_training.catalog.resource_types import ON_DATASET
from vertex_training.errors import ConfigError
from vertex_training.guardrails.policy import Resource, load
from vertex_training.naming import domain_of_member, is_of_domains
from vertex_training.plan.grants import COMMANDS, GrantRequest, command
from vertex_training_cli import iam, policy_levels
from vertex_training_cli.engine import events
from vertex_training_cli.review import formats, report
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline import answers, verdict
from vertex_training_cli.review.report import ReviewReport

BOB: Final = "user:bob@gmail.com"
KIM: Final = "user:kim@example.com"
POOL: Final = "locations/global/workloadIdentityPools/ci"
MEMBERS: Final = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text("utf-8"))[
    "members"
]
EXTRA: Final = "vertextraining:iam:ExtraGrants"
ON_PROJECT: Final = "gcp:projects/iAMMember:IAMMember"
CONFIG: Final = {
    "gcp:project": "acme-ml-dev",
    "gcp:region": "us-central1",
    "vertex-training:projectNumber": "210987654321",
}
STACK: Final = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:limits: {memberDomains: [example.com]}
  vertex-training:submitters: ["group:ml@example.com", "group:ml@example.org"]
  vertex-training:buckets:
    data:
      members:
        roles/storage.objectViewer:
          - user:bob@gmail.com
          - serviceAccount:reader@acme-ml-dev.iam.gserviceaccount.com
          - serviceAccount:reader@other-project.iam.gserviceaccount.com
"""
#: Granted before every change: to somebody of the company.
KEPT: Final = plans.step(
    "same", plans.MEMBER, "kept", *[plans.member("raw", who="user:ann@example.com")] * 2
)


def asked_for(who: str, role: str, type_: str = plans.MEMBER, **on: str) -> plans.Event:
    """Return a grant that the stack file requests by name."""
    event = plans.create(
        type_, "extra-grant", role=role, member=who, **(on or {"bucket": "vision-data"})
    )
    metadata = event["resourcePreEvent"]["metadata"]
    metadata["urn"] = metadata["urn"].replace("vertextraining:test:Test", EXTRA)
    return event


def reviewed(*told: plans.Event, config: dict[str, str] = CONFIG) -> ReviewReport:
    plan = events.parse(plans.lines(KEPT, *told, config=config), "dev")
    return report.build(plan, source="here")


def answer(found: ReviewReport, question: str) -> tuple[str, ...]:
    return tuple(answers(found, lambda text, _=0: text)[question])


@pytest.mark.parametrize(
    ("role", "verb"),
    [("roles/storage.objectViewer", "reads"), ("roles/storage.admin", "writes")],
)
def test_direct_read_access_of_a_person_is_reported(role: str, verb: str) -> None:
    found = reviewed(asked_for(BOB, role))
    assert answer(found, "whose data becomes readable") == (f"{BOB} {verb} bucket vision-data",)


@pytest.mark.parametrize(
    ("role", "what"),
    [
        ("roles/storage.objectViewer", "reads all buckets of project acme-ml-dev"),
        ("roles/secretmanager.secretAccessor", "reads all secrets of project acme-ml-dev"),
        ("roles/artifactregistry.reader", "reads all repositories of project acme-ml-dev"),
        ("roles/viewer", "reads everything of project acme-ml-dev"),
        ("roles/owner", "writes everything of project acme-ml-dev"),
    ],
)
def test_role_on_the_project_is_reported_for_all_its_data(role: str, what: str) -> None:
    found = reviewed(asked_for(KIM, role, ON_PROJECT, project="acme-ml-dev"))
    assert answer(found, "whose data becomes readable") == (f"{KIM} {what}",)


def test_role_on_the_project_without_data_access_is_not_reported() -> None:
    found = reviewed(asked_for(KIM, "roles/logging.viewer", ON_PROJECT, project="acme-ml-dev"))
    assert answer(found, "whose data becomes readable") == ()


def test_grant_of_the_stack_file_is_reported_as_requested() -> None:
    told = formats.to_markdown(reviewed(asked_for(KIM, "roles/storage.objectViewer")))
    [row] = [line for line in told.splitlines() if line.startswith("| gained")]
    assert row.endswith("| listed in the stack file |")


def test_grant_of_a_teams_own_code_is_reported_as_such() -> None:
    event = plans.create(plans.MEMBER, "reports", **plans.member("data", who=KIM))
    metadata = event["resourcePreEvent"]["metadata"]
    metadata["urn"] = f"urn:pulumi:dev::vertex-training::{plans.MEMBER}::reports"
    told = formats.to_markdown(reviewed(event))
    [row] = [line for line in told.splitlines() if line.startswith("| gained")]
    assert row.endswith("| granted by a team's own code |")


@pytest.mark.parametrize(
    "role",
    ["roles/storage.admin", "roles/owner", "roles/iam.serviceAccountTokenCreator"],
)
def test_administrator_role_is_in_the_headline(role: str) -> None:
    told = verdict(reviewed(asked_for(KIM, role)))
    assert f"new administrator roles: {KIM} {role} on bucket vision-data" in told


def test_required_grant_to_a_service_agent_is_not_in_the_headline() -> None:
    agent = "serviceAccount:service-210987654321@gcp-sa-aiplatform.iam.gserviceaccount.com"
    granted = plans.create(
        ON_PROJECT, "agent", role="roles/compute.networkAdmin", member=agent, project="acme-ml-dev"
    )
    told = verdict(reviewed(granted))
    assert "administrator roles" not in told
    assert "other domains" not in told


@pytest.mark.parametrize("member", [*MEMBERS["of other domains"], *MEMBERS["own"]])
def test_first_member_of_a_new_domain_is_in_the_headline(member: str) -> None:
    told = member not in MEMBERS["own"]
    line = verdict(reviewed(asked_for(member, "roles/storage.objectViewer")))
    assert (f"new members of other domains: {member}" in line) is told


def test_domain_in_the_limits_is_not_foreign() -> None:
    own = CONFIG | {"vertex-training:limits": json.dumps({"memberDomains": ["example.*"]})}
    line = verdict(reviewed(asked_for("group:all@example.org", "roles/x"), config=own))
    assert "other domains" not in line


def test_additional_domain_is_reported_as_a_raised_limit() -> None:
    outputs = {"limits": {"limits": {"memberDomains": ["example.com"]}}}
    deployed = plans.step("same", "pulumi:pulumi:Stack", "dev", {}, {}, outputs=outputs)
    more = {"memberDomains": ["example.com", "gmail.com"]}
    found = reviewed(deployed, config=CONFIG | {"vertex-training:limits": json.dumps(more)})
    assert "limits.memberDomains example.com → example.com, gmail.com" in verdict(found)


def test_whole_policy_is_reported_member_by_member() -> None:
    data = {"bindings": [{"role": "roles/storage.objectViewer", "members": [BOB, "allUsers"]}]}
    policy = plans.create(
        "gcp:storage/bucketIAMPolicy:BucketIAMPolicy", "whole",
        bucket="vision-data", policyData=json.dumps(data),
    )  # fmt: skip
    found = reviewed(policy)
    assert [each.member for each in found.gained] == ["allUsers", BOB]
    assert "opened to everybody: bucket vision-data" in verdict(found)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: vertex-training\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    return tmp_path


def test_members_of_other_domains_are_refused_with_their_location(root: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        stack.load(root, "dev")
    told = [(p.path[1:], p.value, p.rule) for p in refused.value.problems]
    assert told == [
        ((1,), "group:ml@example.org", "limit-member-domain"),
        (
            ("data", "members", "roles/storage.objectViewer", 0),
            "user:bob@gmail.com",
            "limit-member-domain",
        ),
        (
            ("data", "members", "roles/storage.objectViewer", 2),
            "serviceAccount:reader@other-project.iam.gserviceaccount.com",
            "limit-member-domain",
        ),
    ]


def test_policy_receives_the_domains_of_the_stack_file(root: Path) -> None:
    config = policy_levels.policy_config(root, "dev", None)
    assert policy_levels.levels_of(config) == {}
    policy = next(each for each in load() if each.id == "members-of-own-domains")

    def refuses(member: str) -> bool:
        props: dict[str, Any] = plans.member("data", who=member)
        resource = Resource(plans.MEMBER, "m", props, "dev")
        assert policy.violations(resource) == []
        return bool(policy.violations(resource, config["members-of-own-domains"]))

    assert refuses(BOB)
    assert refuses("serviceAccount:service-999999999999@gcp-sa-aiplatform.iam.gserviceaccount.com")
    assert not refuses(KIM)
    assert not refuses("serviceAccount:x@acme-ml-dev.iam.gserviceaccount.com")
    agent = "serviceAccount:service-210987654321@gcp-sa-aiplatform.iam.gserviceaccount.com"
    assert not refuses(agent)


@pytest.mark.parametrize("member", MEMBERS["no members"])
def test_invalid_member_has_no_domain(member: str) -> None:
    assert domain_of_member(member) == ""
    assert not is_of_domains(member, ["*", "example.com", "*example.com", "projects/*"])


@pytest.mark.parametrize(("member", "domain"), MEMBERS["domains"].items())
def test_member_belongs_to_one_domain_project_or_pool(member: str, domain: str) -> None:
    assert domain_of_member(member) == domain
    assert is_of_domains(member, [domain])
    assert not is_of_domains(member, ["example.org", "projects/210987654321"])


def test_existing_account_of_another_project_is_checked_as_a_member(root: Path) -> None:
    account = "trainer@other-project.iam.gserviceaccount.com"
    accounts = f"  vertex-training:serviceAccounts:\n    trainer: {{existing: {account}}}\n"
    (root / "Pulumi.dev.yaml").write_text(STACK + accounts)
    with pytest.raises(ConfigError) as refused:
        stack.load(root, "dev")
    told = [(p.path[1:], p.rule) for p in refused.value.problems if p.value == account]
    assert told == [(("trainer", "existing"), "limit-member-domain")]


@pytest.mark.parametrize(
    ("entry", "member"),
    [
        ("workforcePools/acme-people", "locations/global/workforcePools/acme-people/*"),
        ("projects/123456789012", f"projects/123456789012/{POOL}/*"),
    ],
)
def test_pool_is_allowed_by_its_name(root: Path, entry: str, member: str) -> None:
    member = f"principalSet://iam.googleapis.com/{member}"
    told = STACK.replace('"group:ml@example.com", "group:ml@example.org"', f'"{member}"')
    (root / "Pulumi.dev.yaml").write_text(told)
    with pytest.raises(ConfigError) as refused:
        stack.load(root, "dev")
    assert member in [p.value for p in refused.value.problems]
    told = told.replace("[example.com]", f"[example.com, {entry}]")
    (root / "Pulumi.dev.yaml").write_text(told)
    with pytest.raises(ConfigError) as refused:
        stack.load(root, "dev")
    assert member not in [p.value for p in refused.value.problems]


@pytest.mark.parametrize("entry", MEMBERS["entries that allow more than they say"])
def test_ambiguous_entry_of_allowed_members_is_refused(root: Path, entry: str) -> None:
    told = STACK.replace("[example.com]", json.dumps([entry]))
    (root / "Pulumi.dev.yaml").write_text(told, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        stack.load(root, "dev")
    [problem] = [p for p in refused.value.problems if "memberDomains" in p.path]
    assert "must look like example.com" in problem.message


@pytest.mark.parametrize(
    "member", [each for each in MEMBERS["no members"] if each[:5] in ("user:", "princ")]
)
def test_stack_file_rejects_members_unknown_to_iam(root: Path, member: str) -> None:
    told = STACK.replace('"group:ml@example.com"', json.dumps(member))
    told = told.replace("[example.com]", "[example.com, example.org]")
    (root / "Pulumi.dev.yaml").write_text(told, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        stack.load(root, "dev")
    assert ("submitters", 0) in [
        (p.path[0].rpartition(":")[2], *p.path[1:]) for p in refused.value.problems
    ]


@pytest.mark.parametrize(
    "member",
    [
        "user:o'neil@example.com",
        "principal://iam.googleapis.com/x/subject/';touch${IFS}PWNED;'",
        "principal://iam.googleapis.com/x/subject/$(touch)`touch`",
    ],
)
@pytest.mark.parametrize("type_", sorted({*COMMANDS} - {ON_DATASET}))
def test_member_is_quoted_in_a_suggested_command(member: str, type_: str) -> None:
    resource = "" if type_ == ON_PROJECT else "b/name"
    grant = GrantRequest(
        "key", type_, "roles/x.y", member, "acme", resource, ours=False, asked_for=True
    )
    words = shlex.split(command(grant))
    assert f"--member={member}" in words


def test_member_cannot_end_a_code_span_on_the_page_of_grants() -> None:
    member = "principal://iam.googleapis.com/x/subject/`</code><img>\u202e|"
    grants = (IamBinding(member, "r", "bucket", "b"),)
    page = iam.as_markdown([iam.EnvironmentIam("dev", grants, {}, ())])
    [row] = [line for line in page.splitlines() if "principal" in line]
    assert "<img>" not in row
    assert "\u202e" not in row
    assert row.count("|") == 5
