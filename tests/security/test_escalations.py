"""Tests what ``deploy``, ``plan`` and ``preview`` of prod cannot access, and what deployments need.

Each escalation is a list of steps. It is refused if any step is; a grant that is allowed counts in
the next step. Decisions are made from the policies that ``bootstrap/`` registers
(``iam_evaluator``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests import fixture_project
from tests.security.iam_evaluator import Binding, Cloud, Target
from tests.unit.bootstrap.recorder import registered

PROJECT, NUMBER, OTHER = "acme-ml-prod", "109876543210", "acme-ml-dev"
STATE: Final = f"{PROJECT}-pulumi-state"
COMPUTE: Final = f"{NUMBER}-compute@developer.gserviceaccount.com"


def sa(account: str, project: str = PROJECT) -> str:
    return f"{account}@{project}.iam.gserviceaccount.com"


OUTSIDER: Final = "somebody@elsewhere.iam.gserviceaccount.com"
DEPLOY, PLAN, TRAINER = sa("ci-deploy-prod"), sa("ci-plan-prod"), sa("trainer-prod")


def of_project(path: str, *, type: str = "", name: str = "", project: str = PROJECT) -> Target:
    return Target(path, type, name, project, (project,))


PROJECT_ITSELF: Final = of_project(PROJECT, type="cloudresourcemanager.googleapis.com/Project")


def account(email: str) -> Target:
    return of_project(email, project=OTHER if OTHER in email else PROJECT)


def bucket(name: str) -> Target:
    project = OTHER if name.startswith(OTHER) else PROJECT
    path, type_ = f"projects/_/buckets/{name}", "storage.googleapis.com/Bucket"
    return of_project(f"b/{name}", type=type_, name=path, project=project)


def thing(of: str, name: str) -> Target:
    path, type_ = f"projects/_/buckets/{of}/objects/{name}", "storage.googleapis.com/Object"
    return Target(f"o/{of}/{name}", type_, path, PROJECT, (f"b/{of}", PROJECT))


def secret(id_: str, version: str = "") -> Target:
    path = f"projects/{NUMBER}/secrets/{id_}"
    if version:
        type_ = "secretmanager.googleapis.com/SecretVersion"
        name = f"{path}/versions/{version}"
        return Target(name, type_, name, PROJECT, (path, PROJECT))
    return of_project(path, type="secretmanager.googleapis.com/Secret", name=path)


RING: Final = f"projects/{PROJECT}/locations/us-central1/keyRings/pulumi-prod"
KEY: Final = Target(
    "key", "cloudkms.googleapis.com/CryptoKey", f"{RING}/cryptoKeys/stack-secrets", PROJECT,
    (PROJECT,),
)  # fmt: skip
OWN_KEY: Final = of_project(
    "own key",
    type="cloudkms.googleapis.com/CryptoKey",
    name=f"projects/{PROJECT}/locations/us-central1/keyRings/training/cryptoKeys/disks",
)
KEY_RING: Final = of_project("ring", type="cloudkms.googleapis.com/KeyRing", name=RING)
PLAIN: Final = of_project("a resource without attributes")
SETS: Final = {
    "cloudresourcemanager.googleapis.com/Project": "resourcemanager.projects.setIamPolicy",
    "storage.googleapis.com/Bucket": "storage.buckets.setIamPolicy",
    "secretmanager.googleapis.com/Secret": "secretmanager.secrets.setIamPolicy",
    "cloudkms.googleapis.com/CryptoKey": "cloudkms.cryptoKeys.setIamPolicy",
    "": "iam.serviceAccounts.setIamPolicy",
}


@dataclass(frozen=True)
class Use:
    """A request that requires one permission."""

    permission: str
    target: Target = PLAIN
    by: str = DEPLOY

    def done(self, cloud: Cloud) -> bool:
        return cloud.allows(f"serviceAccount:{self.by}", self.permission, self.target)


@dataclass(frozen=True)
class Grant:
    """A request that grants a role; the binding exists afterwards."""

    role: str
    target: Target = PROJECT_ITSELF
    to: str = DEPLOY
    by: str = DEPLOY

    def done(self, cloud: Cloud) -> bool:
        # "Project does not support allUsers and allAuthenticatedUsers as members in a Binding":
        # https://docs.cloud.google.com/resource-manager/reference/rest/v1/projects/setIamPolicy
        if self.target == PROJECT_ITSELF and self.to.startswith("all"):
            return False
        permission = SETS[self.target.type]
        if not cloud.allows(f"serviceAccount:{self.by}", permission, self.target, (self.role,)):
            return False
        member = self.to if ":" in self.to or self.to == "allUsers" else f"serviceAccount:{self.to}"
        cloud.bindings.append(Binding(self.target.path, member, self.role))
        return True


Step = Use | Grant

ACCOUNTS: Final = {
    "DEPLOY": DEPLOY, "PLAN": PLAN, "TRAINER": TRAINER, "COMPUTE": COMPUTE, "OUTSIDER": OUTSIDER,
    "FRESH": sa("made-by-deploy"), "SOMEBODY": sa("somebody"),
    "OTHER_TRAINER": sa("trainer-dev", OTHER),
}  # fmt: skip
TARGETS: Final = {
    "project": PROJECT_ITSELF, "key": KEY, "own key": OWN_KEY, "key ring": KEY_RING,
}  # fmt: skip
STEP: Final = re.compile(r"(use|grant) (\S+)(?: on (.+?))?(?: to (\S+))?(?: by (\S+))?")


def to_target(text: str) -> Target:
    kind, _, name = text.partition(" ")
    match kind if text not in TARGETS else "":
        case "account":
            return account(ACCOUNTS[name])
        case "bucket":
            return bucket(name)
        case "object":
            return thing(*name.split("/", 1))
        case "secret":
            return secret(*name.split(" "))
        case _:
            return TARGETS[text]


def to_step(text: str) -> Step:
    found = STEP.fullmatch(text)
    assert found, text
    kind, what, target, to, by = found.groups()
    who = ACCOUNTS[by] if by else DEPLOY
    if kind == "use":
        return Use(what, to_target(target) if target else PLAIN, who)
    role = what if what.startswith("projects/") else f"roles/{what}"
    member = ACCOUNTS.get(to, to) if to else DEPLOY
    return Grant(role, to_target(target or "project"), member, who)


def to_steps(table: dict[str, str | list[str]]) -> dict[str, list[Step]]:
    rows = {name: [row] if isinstance(row, str) else row for name, row in table.items()}
    return {name: [to_step(text) for text in row] for name, row in rows.items()}


TABLES: Final = yaml.safe_load(Path(__file__).with_name("escalations.yaml").read_text("utf-8"))
ESCALATIONS: Final = {
    **{
        f"grant itself {role} on the project": [Grant(f"roles/{role}")]
        for role in TABLES["roles on the project"]
    },
    **to_steps(TABLES["refused"]),
}
#: What a deployment, or a plan, does.
NEEDED: Final = to_steps(TABLES["needed"])
#: What these policies do not prevent: `bootstrap/README.md` says so.
POSSIBLE: Final = to_steps(TABLES["possible"])


@pytest.fixture(scope="module")
def resources() -> dict[str, dict[str, Any]]:
    return registered("prod", protectedAccounts=[COMPUTE])


def reached(resources: dict[str, dict[str, Any]], steps: list[Step]) -> bool:
    cloud = Cloud(resources)
    return all([step.done(cloud) for step in steps])


@pytest.mark.parametrize("name", ESCALATIONS)
def test_escalation_is_refused(name: str, resources: dict[str, dict[str, Any]]) -> None:
    assert not reached(resources, ESCALATIONS[name])


@pytest.mark.parametrize("name", NEEDED)
def test_permissions_that_deployments_need_are_granted(
    name: str, resources: dict[str, dict[str, Any]]
) -> None:
    assert reached(resources, NEEDED[name])


@pytest.mark.parametrize("name", POSSIBLE)
def test_documented_remaining_risks_exist(name: str, resources: dict[str, dict[str, Any]]) -> None:
    assert reached(resources, POSSIBLE[name])


def test_number_of_escalations_is_as_documented() -> None:
    assert len(ESCALATIONS) >= 40
    assert len(NEEDED) >= 15


@pytest.mark.parametrize(
    "name",
    ["read the stack's own secret", "act as plan", "act as Compute Engine's default account"],
)
def test_escalations_succeed_without_the_deny_policy(name: str) -> None:
    """Otherwise another rule would refuse these requests, and the deny policy would be untested."""
    assert reached(registered("prod", denyPolicy=False), ESCALATIONS[name])


@pytest.mark.parametrize(
    ("step", "refused"),
    [
        ("use storage.objects.get on object acme-ml-dev-staging-dev/x", True),
        ("use aiplatform.customJobs.create", True),
        ("use iam.serviceAccounts.getAccessToken", True),
        ("use secretmanager.versions.access", True),
        ("use storage.objects.create on object acme-ml-dev-pulumi-state/x", True),
        ("use storage.objects.get on object acme-ml-dev-pulumi-state/x", False),
    ],
)
def test_pull_request_can_read_only_the_state_of_dev(step: str, refused: bool) -> None:
    use = to_step(step)
    assert isinstance(use, Use)
    by = sa("ci-preview-dev", OTHER)
    assert replace(use, by=by).done(Cloud(registered("dev"))) is not refused


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_plans_and_pull_requests_can_read_but_not_push_images(stack: str) -> None:
    given = fixture_project.config(stack)["vertex-training:registry"]["members"]
    assert list(given) == ["roles/artifactregistry.reader"]
    end = f"-{stack}@acme-ml-{stack}.iam.gserviceaccount.com"
    names = ("plan", "preview") if stack == "dev" else ("plan",)
    assert given["roles/artifactregistry.reader"] == [f"serviceAccount:ci-{n}{end}" for n in names]
