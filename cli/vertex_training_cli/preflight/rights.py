"""Checks of the project and its APIs, and of the permissions of the deploying account.

https://docs.cloud.google.com/iam/docs/testing-permissions
https://docs.cloud.google.com/resource-manager/reference/rest/v3/projects/get
https://docs.cloud.google.com/billing/docs/reference/rest/v1/projects/getBillingInfo
https://docs.cloud.google.com/service-usage/docs/reference/rest/v1/services/list
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ACCOUNT, AGENT, BUCKET
from vertex_training.errors import counted
from vertex_training.foundation.conditions import LIMITED
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.engine import stacks
from vertex_training_cli.preflight.context import (
    Answer,
    PreflightContext,
    UnansweredError,
    answered,
    question,
)

SERVICE: Final = "gcp:projects/service:Service"
#: APIs that must be enabled before a stack can enable other APIs.
FIRST: Final = ("serviceusage.googleapis.com", "cloudresourcemanager.googleapis.com")
#: Service agent: the account of a Google service in a project, with the project's number:
#: https://docs.cloud.google.com/iam/docs/service-agents
_AGENT: Final = re.compile(
    r"service-(?P<number>\d+)@(?P<service>gcp-sa-[a-z0-9-]+|gs-project-accounts|compute-system)\."
)
_SERVICES: Final = {"gs-project-accounts": "storage", "compute-system": "compute"}


def check_project(context: PreflightContext) -> Iterator[Answer]:
    """Check the stack's project, and the APIs of all projects that the stack uses."""
    yield from _project(context)
    yield from _billing(context)
    needed = defaultdict[str, set[str]](set)
    for service in context.of_type(SERVICE):
        needed[str(service.inputs["project"])].add(str(service.inputs["service"]))
    for project, apis in needed.items():
        yield from _apis(context, project, apis)


@answered
def _project(context: PreflightContext) -> Iterator[Answer]:
    name = f"projects/{context.project}"
    of = question(name, "number and state")
    project = context.client.get(rest.PROJECT, of, context.project)
    if project is None:
        mend = f"gcloud projects create {context.project}, or set another gcp:project"
        yield of.refused("the project does not exist", "all API calls fail", mend)
        return
    of = question(name, "number")
    number = str(project.get("name", "")).rpartition("/")[2]
    if number == context.number:
        yield of.ok(number)
    else:
        yield of.refused(
            f"{number}; the stack file declares {context.number}",
            "grants go to service agents of another project, or IAM refuses them",
            f"set projectNumber in Pulumi.{context.ref.stack}.yaml to {number}",
        )
    of = question(name, "state")
    state = str(project.get("state", ""))
    if state == "ACTIVE":
        yield of.ok(state)
    elif state == "DELETE_REQUESTED":
        mend = f"gcloud projects undelete {context.project}"
        yield of.refused(state, "no resource can be created in a deleted project", mend)
    else:
        yield of.unknown(f"unknown state {state!r}")


@answered
def _billing(context: PreflightContext) -> Answer:
    of = question(f"projects/{context.project}", "billing")
    billing = context.client.get(rest.BILLING, of, context.project)
    if billing and billing.get("billingEnabled"):
        return of.ok(str(billing.get("billingAccountName", "on")))
    return of.refused(
        "off",
        "paid APIs cannot be enabled, and buckets, machines and jobs cannot be created",
        f"gcloud billing projects link {context.project} --billing-account=ACCOUNT_ID",
    )


@answered
def _apis(context: PreflightContext, project: str, needed: set[str]) -> Iterator[Answer]:
    of = question(f"projects/{project}", "enabled APIs")
    services = context.client.items(rest.SERVICES, of, project)
    enabled = {str((service.get("config") or {}).get("name")) for service in services}
    for api in sorted(needed):
        of = question(f"projects/{project}/services/{api}", "state of the API")
        if api in enabled:
            yield of.ok("on")
        elif api in FIRST:
            mend = f"gcloud services enable {api} --project={project}"
            yield of.refused("off", "the stack cannot enable other APIs", mend)
        else:
            yield of.ok("off: the stack enables this API")
    if project == context.project:
        yield from _agents(context, enabled)


def _agents(context: PreflightContext, enabled: set[str]) -> Iterator[Answer]:
    created = {str(agent.inputs["service"]) for agent in context.of_type(AGENT)}
    members = {str(resource.inputs.get("member")) for resource in context.declared.resources}
    for member in sorted(members):
        match = _AGENT.search(member)
        if match is None or match["number"] != context.number:
            continue
        service = match["service"].removeprefix("gcp-sa-")
        service = _SERVICES.get(service, service).removesuffix("-cc") + ".googleapis.com"
        of = question(member.removeprefix("serviceAccount:"), "existence of the service agent")
        if service in created:
            yield of.ok("the stack creates it")
        elif service in enabled:
            yield of.ok(f"{service} is on")
        else:
            yield of.refused(
                f"no: {service} is off, and the stack does not create the service agent",
                "IAM refuses grants to the service agent",
                f"gcloud beta services identity create --service={service} "
                f"--project={context.project}",
            )


ACT_AS: Final = "iam.serviceAccounts.actAs"
#: Pulumi's actions on objects of the state's bucket, and on the key that encrypts secrets.
STATE: Final = ("create", "delete", "get", "list")
KEY: Final = ("cloudkms.cryptoKeyVersions.useToDecrypt", "cloudkms.cryptoKeyVersions.useToEncrypt")
#: Permissions that CI's role may have under a condition on the name of a resource. IAM's test of
#: permissions on a project does not report these permissions.
_CONDITIONAL: Final = re.compile(
    r"storage\.(objects\.\w+|buckets\.(update|delete|setIamPolicy))"
    r"|secretmanager\.secrets\.(update|delete|setIamPolicy)"
    r"|bigquery\.datasets\.(update|setIamPolicy)"
)


#: Permission that a deployment needs on a project or resource -> names of the declared resources
#: that need the permission.
Needs = Mapping[str, list[str]]


def check_permissions(context: PreflightContext) -> Iterator[Answer]:
    """Check the permissions of the deploying account on projects, resources, accounts and state."""
    if context.checked_as:
        of = question(f"projects/{context.project}", "permissions of the deploying account")
        mend = f"run vt preflight --stack {context.ref.stack} with the deploying account"
        yield of.unknown(f"checked as {context.checked_as}, but another account deploys", mend=mend)
        return
    needed, elsewhere = _needed(context)
    for target, needs in needed.items():
        for service, permissions in groupby(sorted(needs), key=_service):
            yield from _held(context, target, service, set(permissions), needs)
    for resource in elsewhere:
        row = resource_types.find(resource.type)
        yield question(resource.name, "permissions on the organization or folder").unknown(
            "not checked: the stack file does not name the organization",
            ", ".join(sorted(row.permissions("read", "write"))),
            "grant the deploying account roles/compute.xpnAdmin on the organization",
        )
    yield from _accounts(context)
    yield from _state(context)


def _service(permission: str) -> str:
    return permission.partition(".")[0]


def _needed(context: PreflightContext) -> tuple[Mapping[str, Needs], list[DeclaredResource]]:
    """Return the permissions by target, and resources in organizations and folders."""
    needs, elsewhere = defaultdict[str, dict[str, list[str]]](dict), list[DeclaredResource]()
    declared = context.declared.resources
    rows = ((resource_types.find(resource.type), resource.inputs) for resource in declared)
    declared_names = {row.policy_name(inputs) for row, inputs in rows if not row.grants_on}
    for item in declared:
        row = resource_types.find(item.type)
        row = row if row.plugin else resource_types.granting(item.type)
        if row.where == "organization":
            elsewhere.append(item)
        if row.where not in ("project", "host"):
            continue
        target = f"projects/{item.inputs.get('project') or context.project}"
        on = row.policy_name(item.inputs) if row.grants_on else ""
        if rest.policy_url(on, "testIamPermissions") and on not in declared_names:
            target = on
        for permission in row.needed_permissions(item.inputs):
            needs[target].setdefault(permission, []).append(item.name)
    return needs, elsewhere


@answered
def _held(
    context: PreflightContext, target: str, service: str, permissions: set[str], needs: Needs
) -> Answer:
    of = question(target, f"{service} permissions")
    held = context.client.held(target, permissions, of)
    if held is None:
        mend = f"create {target} first"
        return of.refused(f"{target} does not exist", _effect(permissions, needs), mend)
    missing = permissions - held
    is_project = target.count("/") == 1 and not target.startswith("b/")
    conditional = {
        permission for permission in missing if is_project and _CONDITIONAL.fullmatch(permission)
    }
    if conditional:
        try:
            missing -= _held_on_resources(context, conditional, of)
        except UnansweredError:
            if missing == conditional:
                raise
    if not missing:
        return of.ok(f"all {len(permissions)} permissions")
    listed, meets = ", ".join(sorted(missing)), _effect(missing, needs)
    # IAM's test ignores the condition ``conditions.only_these_roles`` of CI's role.
    is_granting = service in LIMITED and all(
        permission.endswith(".setIamPolicy") for permission in missing
    )
    if context.as_ci and is_project and is_granting:
        return of.warning(
            f"not granted without a condition: {listed}",
            f"{meets}, unless a conditional role of bootstrap/ allows the step",
            "run `pulumi up` in bootstrap/, if the stack declares newer resources",
        )
    return of.refused(f"missing: {listed}", meets, _grant(target, missing))


def _effect(missing: set[str], needs: Needs) -> str:
    """Return the effect of missing permissions: the resources that cannot be deployed."""
    first, *others = dict.fromkeys(name for item in sorted(missing) for name in needs[item])
    more = f" and {counted(len(others), 'other resource')}" if others else ""
    return f"deploying {first}{more} fails with 403"


def _held_on_resources(context: PreflightContext, permissions: set[str], of: Answer) -> set[str]:
    """Return the permissions on all existing buckets or secrets. Raises ``UnansweredError``."""
    if any(permission.startswith("bigquery.") for permission in permissions):
        unknown = of.unknown(
            f"permissions on datasets were not checked: {', '.join(sorted(permissions))}",
            mend="list the datasets for grants by CI in `datasets` of bootstrap/",
        )
        raise UnansweredError(unknown)
    is_bucket = any(permission.startswith("storage.") for permission in permissions)
    kind = BUCKET if is_bucket else resource_types.SECRET
    created = [resource for resource in context.of_type(kind) if context.is_made(resource)]
    if not created:
        names, word = ", ".join(sorted(permissions)), resource_types.find(kind).word
        reason = f"permissions {names} were not checked: the stack has not created a {word} yet"
        raise UnansweredError(of.unknown(reason))
    common = set(permissions)
    for existing in created:
        target = resource_types.find(kind).policy_name(existing.inputs)
        common &= context.client.held(target, permissions, of) or set()
    return common


def _grant(target: str, missing: set[str]) -> str:
    listed = ",".join(sorted(missing))
    if target.count("/") == 1 and target.startswith("projects/"):
        project = target.partition("/")[2]
        return (
            f"gcloud iam roles create deployTraining --project={project} --permissions={listed} && "
            f"gcloud projects add-iam-policy-binding {project} --member=MEMBER "
            f"--role=projects/{project}/roles/deployTraining (accounts of CI: run `pulumi up` in "
            "bootstrap/)"
        )
    return f"the owner of {target} must grant the deploying account a role with {listed}"


def _accounts(context: PreflightContext) -> Iterator[Answer]:
    declared = {
        resource_types.find(ACCOUNT).policy_name(account.inputs): account
        for account in context.of_type(ACCOUNT)
    }
    bodies = [json.loads(request.body) for request in context.declared.requests.values()]
    specs = [body.get(key) for body in bodies for key in ("jobSpec", "trialJobSpec")]
    used = {
        str(spec["serviceAccount"]): "submitting the job fails with 403 after the replaced job "
        "was cancelled"
        for spec in specs
        if isinstance(spec, dict) and spec.get("serviceAccount")
    }
    for key, endpoint in context.declared.stack.endpoints.items():
        if endpoint.account:
            meets = f"deploying a version to endpoint {key} fails with 403"
            used.setdefault(endpoint.account, meets)
    for email, meets in sorted(used.items()):
        yield from _account(context, email, meets, declared)


@answered
def _account(
    context: PreflightContext, email: str, meets: str, declared: Mapping[str, DeclaredResource]
) -> Answer:
    project = email.partition("@")[2].partition(".")[0]
    name = f"projects/{project}/serviceAccounts/{email}"
    of = question(email, f"{ACT_AS} of the deploying account")
    if context.client.held(f"projects/-/serviceAccounts/{email}", {ACT_AS}, of):
        return of.ok("yes")
    if name in declared and not context.is_made(declared[name]):
        return of.ok("the stack creates the account and its grants")
    return of.refused(
        "not granted, or the account does not exist",
        meets,
        f"gcloud iam service-accounts add-iam-policy-binding {email} --member=MEMBER "
        "--role=roles/iam.serviceAccountUser",
    )


def _state(context: PreflightContext) -> Iterator[Answer]:
    if bucket := re.match(r"gs://([^/?]+)", context.backend):
        permissions = {f"storage.objects.{verb}" for verb in STATE}
        yield from _on_state(context, f"b/{bucket[1]}", permissions, "roles/storage.objectUser")
    file = stacks.read_stack_file(context.ref.root, context.ref.stack)
    if key := re.match(r"gcpkms://(projects/[^?]+)", str(file.get("secretsprovider"))):
        role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
        yield from _on_state(context, key[1], set(KEY), role)


@answered
def _on_state(context: PreflightContext, target: str, permissions: set[str], role: str) -> Answer:
    of = question(target, "permissions on the state")
    held = context.client.held(target, permissions, of)
    missing = permissions - (held or set())
    if not missing:
        return of.ok(f"all {len(permissions)} permissions")
    return of.refused(
        f"{target} does not exist" if held is None else f"missing: {', '.join(sorted(missing))}",
        "the engine cannot read or lock the state",
        f"run `pulumi up` in bootstrap/, which grants the accounts of CI {role}",
    )
