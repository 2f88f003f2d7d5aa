"""What ``deploy``, ``plan`` and ``preview`` of prod cannot reach, and what deployments need.

Each escalation is a list of steps. It is refused if any step is; a grant that is allowed counts in
the next step. Decisions are made from the policies that ``bootstrap/`` registers
(``iam_evaluator``).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests import fixture_project
from tests.security.iam_evaluator import Binding, Cloud, Target
from tests.unit.bootstrap.recorder import registered

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT, NUMBER, OTHER = "acme-ml-prod", "109876543210", "acme-ml-dev"
STATE: Final = f"{PROJECT}-pulumi-state"
COMPUTE: Final = f"{NUMBER}-compute@developer.gserviceaccount.com"
DENY: Final = "roles/iam.denyAdmin"
USER, TOKENS = "roles/iam.serviceAccountUser", "roles/iam.serviceAccountTokenCreator"
READ, WRITE, SECRET = (
    "roles/storage.objectViewer",
    "roles/storage.objectUser",
    "roles/secretmanager.secretAccessor",
)


def sa(account: str, project: str = PROJECT) -> str:
    return f"{account}@{project}.iam.gserviceaccount.com"


OUTSIDER: Final = "somebody@elsewhere.iam.gserviceaccount.com"
DEPLOY, PLAN, TRAINER = sa("ci-deploy-prod"), sa("ci-plan-prod"), sa("trainer-prod")
FRESH: Final = sa("made-by-deploy")


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
    """A request that needs one permission."""

    permission: str
    target: Target = PLAIN
    by: str = DEPLOY

    def done(self, cloud: Cloud) -> bool:
        return cloud.allows(f"serviceAccount:{self.by}", self.permission, self.target)


@dataclass(frozen=True)
class Grant:
    """A request that grants a role; the binding holds from then on."""

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
ACT, TOKEN = "iam.serviceAccounts.actAs", "iam.serviceAccounts.getAccessToken"
SUBMIT: Final = "aiplatform.customJobs.create"

ESCALATIONS: Final[dict[str, list[Step]]] = {
    # grant oneself a role on the project
    **{
        f"grant itself {role} on the project": [Grant(f"roles/{role}")]
        for role in (
            "owner",
            "editor",
            "viewer",
            "iam.securityAdmin",
            "iam.roleAdmin",
            "iam.denyAdmin",
            "iam.serviceAccountAdmin",
            "iam.serviceAccountKeyAdmin",
            "iam.workloadIdentityPoolAdmin",
            "resourcemanager.projectIamAdmin",
            "resourcemanager.tagAdmin",
            "orgpolicy.policyAdmin",
            "cloudkms.admin",
            "storage.admin",
            "secretmanager.admin",
            "compute.admin",
        )
    },
    "act as every account of the project": [Grant(USER), Use(ACT, account(COMPUTE))],
    "take tokens of every account of the project": [Grant(TOKENS), Use(TOKEN, account(TRAINER))],
    "read every secret of the project": [
        Grant(SECRET),
        Use("secretmanager.versions.access", secret("x", "1")),
    ],
    "write every object of the project": [
        Grant(WRITE),
        Use("storage.objects.create", thing("x", "y")),
    ],
    "read every object of the project": [Grant(READ), Use("storage.objects.get", thing("x", "y"))],
    "make an outsider an owner": [Grant("roles/owner", to=OUTSIDER)],
    "let everybody use Vertex AI, which a project's policy cannot say": [
        Grant("roles/aiplatform.user", to="allUsers")
    ],
    "grant its own role to plan": [
        Grant(f"projects/{PROJECT}/roles/training_deploy_prod", to=PLAN)
    ],
    "grant itself the role that grants, without its condition": [
        Grant(f"projects/{PROJECT}/roles/training_grant_projects_prod"),
        Grant("roles/owner"),
    ],
    # the state, and keys of its secrets
    "set the policy of the state bucket": [Grant(READ, bucket(STATE), "allUsers")],
    "turn versions of the state bucket off": [Use("storage.buckets.update", bucket(STATE))],
    "delete the state bucket": [Use("storage.buckets.delete", bucket(STATE))],
    "give away the key of the state's secrets": [
        Grant("roles/cloudkms.cryptoKeyDecrypter", KEY, TRAINER),
    ],
    "use the key of the state's secrets for a job's disks": [
        Grant("roles/cloudkms.cryptoKeyEncrypterDecrypter", KEY, TRAINER),
    ],
    "give away more than the use of a key": [Grant("roles/cloudkms.admin", OWN_KEY)],
    "set the policy of the key ring": [Use("cloudkms.keyRings.setIamPolicy", KEY_RING)],
    "destroy a version of the key": [Use("cloudkms.cryptoKeyVersions.destroy", KEY)],
    # buckets and secrets of others
    "write to another stack's bucket": [
        Use("storage.objects.create", thing(f"{PROJECT}-data-other", "x")),
    ],
    "write an object whose own name ends like the stack's buckets": [
        Use("storage.objects.create", thing(f"{PROJECT}-data-other", "x-prod")),
    ],
    "write an object whose own name looks like one of the stack's": [
        Use("storage.objects.create", thing(f"{PROJECT}-other", "a-prod/objects/b-prod")),
    ],
    "read a bucket of another team": [Use("storage.objects.get", thing("team-b-data", "x"))],
    "set the policy of another stack's bucket": [Grant(READ, bucket(f"{PROJECT}-data-other"))],
    "set the policy of the other environment's bucket": [Grant(READ, bucket(f"{OTHER}-data-dev"))],
    "grant more than objects on its own bucket": [
        Grant("roles/storage.admin", bucket(f"{PROJECT}-data-prod")),
    ],
    "read another stack's secret": [
        Grant(SECRET, secret("token-other")),
        Use("secretmanager.versions.access", secret("token-other", "1")),
    ],
    "read the stack's own secret": [
        Grant(SECRET, secret("token-prod")),
        Use("secretmanager.versions.access", secret("token-prod", "1")),
    ],
    "delete another stack's secret": [Use("secretmanager.secrets.delete", secret("token-other"))],
    "change the value of a secret": [Use("secretmanager.versions.add", secret("token-prod"))],
    # other accounts
    "act as plan": [Grant(USER, account(PLAN)), Use(ACT, account(PLAN))],
    "run a job as itself, so that its code is deploy": [
        Grant(USER, account(DEPLOY)),
        Use(ACT, account(DEPLOY)),
    ],
    "act as Compute Engine's default account": [
        Grant(USER, account(COMPUTE)),
        Use(ACT, account(COMPUTE)),
    ],
    "act as the other environment's account": [
        Grant(USER, account(sa("trainer-dev", OTHER))),
        Use(ACT, account(sa("trainer-dev", OTHER))),
    ],
    "let a training account act as deploy": [Grant(USER, account(DEPLOY), TRAINER)],
    "let anybody sign in as deploy": [
        Grant("roles/iam.workloadIdentityUser", account(DEPLOY), "allUsers")
    ],
    "take tokens of a training account": [
        Grant(TOKENS, account(TRAINER)),
        Use(TOKEN, account(TRAINER)),
    ],
    "take a token of plan": [Use(TOKEN, account(PLAN))],
    "take an OpenID token of plan": [Use("iam.serviceAccounts.getOpenIdToken", account(PLAN))],
    "sign as plan": [Use("iam.serviceAccounts.signJwt", account(PLAN))],
    "sign bytes as plan": [Use("iam.serviceAccounts.signBlob", account(PLAN))],
    "delegate through plan": [Use("iam.serviceAccounts.implicitDelegation", account(PLAN))],
    "make a key of plan": [Use("iam.serviceAccountKeys.create", account(PLAN))],
    "make a key of a training account": [Use("iam.serviceAccountKeys.create", account(TRAINER))],
    "delete plan": [Use("iam.serviceAccounts.delete", account(PLAN))],
    "disable plan": [Use("iam.serviceAccounts.disable", account(PLAN))],
    "rename deploy": [Use("iam.serviceAccounts.update", account(DEPLOY))],
    # the way in, the roles, and what denies
    "edit the provider of the pool": [Use("iam.workloadIdentityPoolProviders.update")],
    "make another provider": [Use("iam.workloadIdentityPoolProviders.create")],
    "make another pool": [Use("iam.workloadIdentityPools.create")],
    "delete the pool": [Use("iam.workloadIdentityPools.delete")],
    "edit its own role": [Use("iam.roles.update")],
    "make a role with more": [Use("iam.roles.create")],
    "bring a deleted role back": [Use("iam.roles.undelete")],
    "edit the deny policy": [Use("iam.denypolicies.update")],
    "delete the deny policy": [Use("iam.denypolicies.delete")],
    "take the tag off plan": [Use("iam.serviceAccounts.deleteTagBinding", account(PLAN))],
    "tag plan anew": [Use("iam.serviceAccounts.createTagBinding", account(PLAN))],
    "change the tag": [Use("resourcemanager.tagValues.delete")],
    # the project
    "set an organization policy": [Use("orgpolicy.policy.set")],
    "delete the project": [Use("resourcemanager.projects.delete", PROJECT_ITSELF)],
    "bill another account": [
        Use("resourcemanager.projects.createBillingAssignment", PROJECT_ITSELF)
    ],
    "turn an API off": [Use("serviceusage.services.disable")],
    # plan, and from plan to deploy
    "plan takes a token of deploy": [Use(TOKEN, account(DEPLOY), PLAN)],
    "plan grants itself deploy": [Grant(USER, account(DEPLOY), PLAN, PLAN)],
    "plan grants itself a role": [Grant("roles/aiplatform.user", to=PLAN, by=PLAN)],
    "plan submits a job": [Use(SUBMIT, by=PLAN)],
    "plan writes state": [Use("storage.objects.create", thing(STATE, "x"), PLAN)],
    "plan writes data": [Use("storage.objects.create", thing(f"{PROJECT}-data-prod", "x"), PLAN)],
    "plan reads a bucket that it was not given": [
        Use("storage.objects.get", thing(f"{PROJECT}-control-prod", "x"), PLAN),
    ],
    "plan reads a secret": [Use("secretmanager.versions.access", secret("token-prod", "1"), PLAN)],
}

#: What a deployment, or a plan, does.
NEEDED: Final[dict[str, list[Step]]] = {
    "read and write state": [
        Use("storage.objects.get", thing(STATE, ".pulumi/x")),
        Use("storage.objects.create", thing(STATE, ".pulumi/x")),
        Use("cloudkms.cryptoKeyVersions.useToDecrypt", KEY),
    ],
    "make a bucket": [Use("storage.buckets.create", PROJECT_ITSELF)],
    "change and delete a bucket": [
        Use("storage.buckets.update", bucket(f"{PROJECT}-data-prod")),
        Use("storage.buckets.delete", bucket(f"{PROJECT}-data-prod")),
    ],
    "upload a package": [
        Use("storage.objects.create", thing(f"{PROJECT}-staging-prod", "a/b.tar"))
    ],
    "write a record of a submission": [
        Use("storage.objects.update", thing(f"{PROJECT}-control-prod", "records/x")),
    ],
    "let a training account write data": [Grant(WRITE, bucket(f"{PROJECT}-data-prod"), TRAINER)],
    "make, change and delete a secret": [
        Use("secretmanager.secrets.create", PROJECT_ITSELF),
        Use("secretmanager.secrets.update", secret("token-prod")),
        Use("secretmanager.secrets.delete", secret("token-prod")),
    ],
    "let a training account read a secret": [Grant(SECRET, secret("token-prod"), TRAINER)],
    "make and delete a training account": [
        Use("iam.serviceAccounts.create", PLAIN),
        Use("iam.serviceAccounts.delete", account(TRAINER)),
    ],
    "run a job as a training account": [
        Grant(USER, account(TRAINER)),
        Use(ACT, account(TRAINER)),
        Use(SUBMIT),
    ],
    "let a training account write logs": [Grant("roles/logging.logWriter", to=TRAINER)],
    "let the service agent use a network": [Grant("roles/compute.networkAdmin", to="agent@x")],
    "let the service agent use a key": [
        Grant("roles/cloudkms.cryptoKeyEncrypterDecrypter", OWN_KEY, "agent@x")
    ],
    "make a network": [Use("compute.networks.create")],
    "make a repository": [Use("artifactregistry.repositories.create")],
    "turn an API on": [Use("serviceusage.services.enable")],
    "cancel a job": [Use("aiplatform.customJobs.cancel")],
    "plan reads state and settings": [
        Use("storage.objects.get", thing(STATE, ".pulumi/x"), PLAN),
        Use("cloudkms.cryptoKeyVersions.useToDecrypt", KEY, PLAN),
        Use("storage.buckets.get", bucket(f"{PROJECT}-data-prod"), PLAN),
        Use("iam.serviceAccounts.getIamPolicy", account(TRAINER), PLAN),
    ],
    "plan reads packages": [
        Use("storage.objects.get", thing(f"{PROJECT}-staging-prod", "x"), PLAN)
    ],
}

#: What these policies do not prevent: `docs/bootstrap.md` says so.
POSSIBLE: Final[dict[str, list[Step]]] = {
    "act as an account of the project that is not protected": [
        Grant(USER, account(sa("somebody"))),
        Use(ACT, account(sa("somebody"))),
    ],
    "let anybody read the stack's data": [
        Grant(READ, bucket(f"{PROJECT}-data-prod"), "user:x@y.z")
    ],
    "let an outsider read the value of the stack's secret": [
        Grant(SECRET, secret("token-prod"), OUTSIDER),
        Use("secretmanager.versions.access", secret("token-prod", "1"), OUTSIDER),
    ],
    "read the value of the stack's secret as an account that it makes and acts as": [
        Use("iam.serviceAccounts.create", PLAIN),
        Grant(SECRET, secret("token-prod"), FRESH),
        Grant(USER, account(FRESH)),
        Use(ACT, account(FRESH)),
        Use(SUBMIT),
        Use("secretmanager.versions.access", secret("token-prod", "1"), FRESH),
    ],
    "read the value of the stack's secret in the code of a training job": [
        Grant(SECRET, secret("token-prod"), TRAINER),
        Grant(USER, account(TRAINER)),
        Use(ACT, account(TRAINER)),
        Use(SUBMIT),
        Use("secretmanager.versions.access", secret("token-prod", "1"), TRAINER),
    ],
    "give itself Vertex AI's user role": [Grant("roles/aiplatform.user")],
    "give an outsider Vertex AI's user role": [Grant("roles/aiplatform.user", to=OUTSIDER)],
    "give itself Cloud Build's editor role": [Grant("roles/cloudbuild.builds.editor")],
    "give an account that it makes Cloud Build's editor role": [
        Use("iam.serviceAccounts.create", PLAIN),
        Grant("roles/cloudbuild.builds.editor", to=FRESH),
    ],
    "submit a job without an account, which then runs as Google's agent": [Use(SUBMIT)],
    "change what is audited, which is no grant": [
        Use("resourcemanager.projects.setIamPolicy", PROJECT_ITSELF),
    ],
}


@pytest.fixture(scope="module")
def resources() -> dict[str, dict[str, Any]]:
    return registered("prod", protectedAccounts=[COMPUTE])


def reached(resources: dict[str, dict[str, Any]], steps: list[Step]) -> bool:
    cloud = Cloud(resources)
    return all([step.done(cloud) for step in steps])


@pytest.mark.parametrize("name", ESCALATIONS)
def test_it_is_refused(name: str, resources: dict[str, dict[str, Any]]) -> None:
    assert not reached(resources, ESCALATIONS[name])


@pytest.mark.parametrize("name", NEEDED)
def test_what_a_deployment_needs_is_allowed(
    name: str, resources: dict[str, dict[str, Any]]
) -> None:
    assert reached(resources, NEEDED[name])


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_the_pages_call_possible_is(name: str, resources: dict[str, dict[str, Any]]) -> None:
    assert reached(resources, POSSIBLE[name])


def test_there_are_as_many_as_promised() -> None:
    assert len(ESCALATIONS) >= 40
    assert len(NEEDED) >= 15


@pytest.mark.parametrize(
    "name",
    ["read the stack's own secret", "act as plan", "act as Compute Engine's default account"],
)
def test_without_the_deny_policy_these_succeed(name: str) -> None:
    """Otherwise they would be refused for another reason, and the denial would not be tested."""
    assert reached(registered("prod", denyPolicy=False), ESCALATIONS[name])


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ([Use("storage.objects.get", thing(f"{OTHER}-staging-dev", "x"), "preview")], True),
        ([Use(SUBMIT, by="preview")], True),
        ([Use(TOKEN, by="preview")], True),
        ([Use("secretmanager.versions.access", by="preview")], True),
        ([Use("storage.objects.create", thing(f"{OTHER}-pulumi-state", "x"), "preview")], True),
        ([Use("storage.objects.get", thing(f"{OTHER}-pulumi-state", "x"), "preview")], False),
    ],
)
def test_a_pull_request_reads_state_of_dev_and_no_other_object(
    steps: list[Use], refused: bool
) -> None:
    preview = sa("ci-preview-dev", OTHER)
    cloud = Cloud(registered("dev"))
    done = [Use(step.permission, step.target, preview).done(cloud) for step in steps]
    assert done == [not refused]


@pytest.mark.parametrize("stack", ["dev", "prod"])
def test_accounts_of_plans_and_pull_requests_read_images_of_their_stack_and_push_none(
    stack: str,
) -> None:
    given = fixture_project.config(stack)["vertex-training:registry"]["members"]
    assert list(given) == ["roles/artifactregistry.reader"]
    end = f"-{stack}@acme-ml-{stack}.iam.gserviceaccount.com"
    names = ("plan", "preview") if stack == "dev" else ("plan",)
    assert given["roles/artifactregistry.reader"] == [f"serviceAccount:ci-{n}{end}" for n in names]
