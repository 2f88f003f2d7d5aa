"""Checks that the deploying account has the permissions for all steps of the plan.

``resource_types.yaml`` lists the permissions of each type. They are tested on the project of a
resource, one service a request, because one invalid permission makes the request fail. Permissions
for grants on resources outside the stack are tested on those resources.

https://docs.cloud.google.com/iam/docs/testing-permissions
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import ACCOUNT, BUCKET, ResourceType
from vertex_training.foundation.conditions import LIMITED
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.engine import stacks
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import UnansweredError, answered
from vertex_training_cli.preflight.context import PreflightContext

ACT_AS: Final = "iam.serviceAccounts.actAs"
#: Actions of Pulumi on the state's objects in a bucket, and permissions on the key of secrets.
STATE: Final = ("create", "delete", "get", "list")
KEY: Final = ("cloudkms.cryptoKeyVersions.useToDecrypt", "cloudkms.cryptoKeyVersions.useToEncrypt")
_STORAGE: Final = "https://storage.googleapis.com/storage/v1/"
_IAM: Final = "https://iam.googleapis.com/v1/"
#: Permissions that CI's role may have with a condition on the resource's name
#: (``vertex_training.foundation.conditions``). A test of permissions on the project does not report
#: these.
_CONDITIONAL: Final = re.compile(
    r"storage\.(objects\.\w+|buckets\.(update|delete|setIamPolicy))"
    r"|secretmanager\.secrets\.(update|delete|setIamPolicy)"
    r"|bigquery\.datasets\.(update|setIamPolicy)"
)


@dataclass(slots=True)
class Needs:
    """Required permissions on one resource."""

    by_permission: dict[str, list[str]] = field(default_factory=dict)
    """Permission -> names of the declared resources that need it."""

    def add(self, row: ResourceType, resource: DeclaredResource) -> None:
        """Add permissions to create, update, refresh and delete the resource."""
        for permission in row.needed_permissions(resource.inputs):
            self.by_permission.setdefault(permission, []).append(resource.name)

    def services(self) -> dict[str, set[str]]:
        """Return the permissions by service."""
        by_service: dict[str, set[str]] = {}
        for permission in self.by_permission:
            by_service.setdefault(permission.partition(".")[0], set()).add(permission)
        return by_service

    def reason(self, missing: set[str]) -> str:
        """Return a text with the first resource that fails without these permissions."""
        names = dict.fromkeys(
            name for permission in sorted(missing) for name in self.by_permission[permission]
        )
        first, *others = names
        return f"403 at {first}" + (f" and {len(others)} more" if others else "")


def ask(context: PreflightContext) -> Iterator[Answer]:
    """Check permissions on projects, on resources outside the stack, on accounts and the state."""
    if context.asked_as:
        of = question(f"projects/{context.project}", "permissions of the deploying account")
        mend = f"vt preflight --stack {context.ref.stack} as the account that deploys"
        yield of.unknown(f"checked as {context.asked_as}, but another account deploys", mend=mend)
        return
    needed, elsewhere = _needed(context)
    for target, needs in needed.items():
        for service, permissions in sorted(needs.services().items()):
            yield from _held(context, target, service, permissions, needs)
    yield from (_of_organization(resource) for resource in elsewhere)
    yield from _accounts(context)
    yield from _state(context)


def _needed(context: PreflightContext) -> tuple[dict[str, Needs], list[DeclaredResource]]:
    """Return needs by target (a project or an outside resource), and resources with needs on the
    organization, which are not tested."""
    needs, elsewhere = dict[str, Needs](), list[DeclaredResource]()
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
        if _address(on) and on not in declared_names:
            target = on
        needs.setdefault(target, Needs()).add(row, item)
    return needs, elsewhere


def _address(target: str) -> str:
    """Return the URL that tests permissions on a target; empty if the target has none."""
    if target.startswith("b/"):
        return f"{_STORAGE}{target}/iam/testPermissions"
    base, slash = rest.policy_service(target), "/" if "/subnetworks/" in target else ":"
    return f"{base}{target}{slash}testIamPermissions" if base else ""


@answered
def _held(
    context: PreflightContext, target: str, service: str, permissions: set[str], needs: Needs
) -> Iterator[Answer]:
    of = question(target, f"{service} permissions")
    held = context.client.held(_address(target), permissions, of)
    if held is None:
        yield of.refused(
            f"{target} does not exist", needs.reason(permissions), f"create {target} first"
        )
        return
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
        yield of.ok(f"all {len(permissions)} permissions")
        return
    # A test cannot show a condition of CI's role on the granted roles
    # (``conditions.only_these_roles``): IAM checks it at the grant.
    is_granting = service in LIMITED and all(
        permission.endswith(".setIamPolicy") for permission in missing
    )
    if context.as_ci and is_project and is_granting:
        yield of.warning(
            f"no unconditional {', '.join(sorted(missing))}",
            f"{needs.reason(missing)}, unless a conditional role of bootstrap/ allows the step",
            "run `pulumi up` in bootstrap/, if the stack declares newer resources",
        )
        return
    yield of.refused(
        f"lacks {', '.join(sorted(missing))}", needs.reason(missing), _grant(target, missing)
    )


def _held_on_resources(context: PreflightContext, permissions: set[str], of: Answer) -> set[str]:
    """Return the permissions on all existing buckets or secrets of the stack.

    Raises:
        UnansweredError: the stack has none yet, or the service does not answer.
    """
    if any(permission.startswith("bigquery.") for permission in permissions):
        unknown = of.unknown(
            f"permissions not checked on datasets: {', '.join(sorted(permissions))}",
            mend="list the datasets for grants by CI in `datasets` of bootstrap/",
        )
        raise UnansweredError(unknown)
    is_bucket = any(permission.startswith("storage.") for permission in permissions)
    kind = BUCKET if is_bucket else resource_types.SECRET
    created = [resource for resource in context.of_type(kind) if context.is_made(resource)]
    if not created:
        names, word = ", ".join(sorted(permissions)), resource_types.find(kind).word
        reason = f"permissions {names} not checked: the stack has no {word} yet"
        raise UnansweredError(of.unknown(reason))
    common = set(permissions)
    for existing in created:
        target = resource_types.find(kind).policy_name(existing.inputs)
        common &= context.client.held(_address(target), permissions, of) or set()
    return common


def _grant(target: str, missing: set[str]) -> str:
    """Return a text on how to grant permissions on a target."""
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


def _of_organization(resource: DeclaredResource) -> Answer:
    row = resource_types.find(resource.type)
    permissions = ", ".join(sorted(row.permissions("read", "write")))
    of = question(resource.name, "permissions on the organization or folder")
    return of.unknown(
        "not checked: the stack does not name its organization",
        permissions,
        "grant the deploying account roles/compute.xpnAdmin on the organization",
    )


def _accounts(context: PreflightContext) -> Iterator[Answer]:
    """Check that the deploying account may act as the accounts of jobs and endpoints."""
    declared = {
        resource_types.find(ACCOUNT).policy_name(account.inputs): account
        for account in context.of_type(ACCOUNT)
    }
    bodies = [json.loads(request.body) for request in context.declared.requests.values()]
    used = {
        email: "submitting the job fails with 403 after the replaced job was cancelled"
        for body in bodies
        for email in _emails(body)
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
) -> Iterator[Answer]:
    project = email.partition("@")[2].partition(".")[0]
    name = f"projects/{project}/serviceAccounts/{email}"
    of = question(email, f"{ACT_AS} of the deploying account")
    address = f"{_IAM}projects/-/serviceAccounts/{email}:testIamPermissions"
    if context.client.held(address, {ACT_AS}, of):
        yield of.ok("yes")
    elif name in declared and not context.is_made(declared[name]):
        yield of.ok("the stack creates the account and its grants")
    else:
        yield of.refused(
            "no, or the account does not exist",
            meets,
            f"gcloud iam service-accounts add-iam-policy-binding {email} --member=MEMBER "
            "--role=roles/iam.serviceAccountUser",
        )


def _emails(body: Any) -> Iterator[str]:
    """Yield the accounts in a request of a job or of trials."""
    for spec in (body.get("jobSpec"), body.get("trialJobSpec")):
        if isinstance(spec, dict) and spec.get("serviceAccount"):
            yield str(spec["serviceAccount"])


def _state(context: PreflightContext) -> Iterator[Answer]:
    """Check permissions on the bucket of the state, and on the key of its secrets."""
    if bucket := re.match(r"gs://([^/?]+)", context.backend):
        permissions = {f"storage.objects.{verb}" for verb in STATE}
        yield from _on_state(context, f"b/{bucket[1]}", permissions, "roles/storage.objectUser")
    file = stacks.read_stack_file(context.ref.root, context.ref.stack)
    if key := re.match(r"gcpkms://(projects/[^?]+)", str(file.get("secretsprovider"))):
        role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
        yield from _on_state(context, key[1], set(KEY), role)


@answered
def _on_state(
    context: PreflightContext, target: str, permissions: set[str], role: str
) -> Iterator[Answer]:
    of = question(target, "permissions on the state")
    held = context.client.held(_address(target), permissions, of)
    missing = permissions - (held or set())
    if not missing:
        yield of.ok(f"all {len(permissions)} permissions")
        return
    yield of.refused(
        f"{target} does not exist" if held is None else f"lacks {', '.join(sorted(missing))}",
        "the engine cannot read or lock the state",
        f"run `pulumi up` in bootstrap/, which grants the accounts of CI {role}",
    )
