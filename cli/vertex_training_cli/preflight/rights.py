"""Permissions of who deploys: every one that the plan needs, asked where it is needed.

``resource_types.yaml`` has the permissions of each type. They are asked of the project that a
resource is made in, a service at a time: a service that refuses one permission as not valid for a
project does so for all that are asked with it. What is granted on something that the stack does not
make is asked of that.

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
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.engine import stacks
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import UnansweredError, answered
from vertex_training_cli.preflight.context import PreflightContext

ACT_AS: Final = "iam.serviceAccounts.actAs"
#: What Pulumi does to its state in a bucket, and to the key of the secrets in it.
STATE: Final = ("create", "delete", "get", "list")
KEY: Final = ("cloudkms.cryptoKeyVersions.useToDecrypt", "cloudkms.cryptoKeyVersions.useToEncrypt")
_STORAGE: Final = "https://storage.googleapis.com/storage/v1/"
_IAM: Final = "https://iam.googleapis.com/v1/"
#: Permissions on what has a name, which a role of CI may hold under a condition on that name
#: (``vertex_training.foundation.conditions``): asked of a project, they are not held.
_CONDITIONAL: Final = re.compile(
    r"storage\.(objects\.\w+|buckets\.(update|delete|setIamPolicy))"
    r"|secretmanager\.secrets\.(update|delete|setIamPolicy)"
    r"|bigquery\.datasets\.(update|setIamPolicy)"
)


@dataclass(slots=True)
class Needs:
    """Permissions that are needed on one resource."""

    by_permission: dict[str, list[str]] = field(default_factory=dict)
    """Permission -> names of the declared resources that need it."""

    def add(self, row: ResourceType, resource: DeclaredResource) -> None:
        """Add permissions to create, update, refresh and delete the resource."""
        for permission in row.needed_permissions(resource.inputs):
            self.by_permission.setdefault(permission, []).append(resource.name)

    def services(self) -> dict[str, set[str]]:
        """Return the permissions by their service."""
        by_service: dict[str, set[str]] = {}
        for permission in self.by_permission:
            by_service.setdefault(permission.partition(".")[0], set()).add(permission)
        return by_service

    def reason(self, missing: set[str]) -> str:
        """Return the steps that fail without these."""
        names = dict.fromkeys(
            name for permission in sorted(missing) for name in self.by_permission[permission]
        )
        first, *others = names
        return f"403 at {first}" + (f" and {len(others)} more" if others else "")


def ask(context: PreflightContext) -> Iterator[Answer]:
    """Check rights on projects, resources of others, accounts, and the state."""
    if context.asked_as:
        of = question(f"projects/{context.project}", "permissions of who deploys")
        mend = f"vt preflight --stack {context.ref.stack} as the account that deploys"
        yield of.unknown(f"asked as {context.asked_as}, and another account deploys", mend=mend)
        return
    needed, elsewhere = _needed(context)
    for target, needs in needed.items():
        for service, permissions in sorted(needs.services().items()):
            yield from _held(context, target, service, permissions, needs)
    yield from (_of_organization(resource) for resource in elsewhere)
    yield from _accounts(context)
    yield from _state(context)


def _needed(context: PreflightContext) -> tuple[dict[str, Needs], list[DeclaredResource]]:
    """Return needs by target (a project, or a resource of others), and resources that need rights
    on the organization, which are asked nowhere else."""
    needs, elsewhere = dict[str, Needs](), list[DeclaredResource]()
    declared = context.declared.resources
    rows = ((resource_types.find(resource.type), resource.inputs) for resource in declared)
    made = {row.policy_name(inputs) for row, inputs in rows if not row.grants_on}
    for item in declared:
        row = resource_types.find(item.type)
        row = row if row.plugin else resource_types.granting(item.type)
        if row.where == "organization":
            elsewhere.append(item)
        if row.where not in ("project", "host"):
            continue
        target = f"projects/{item.inputs.get('project') or context.project}"
        on = row.policy_name(item.inputs) if row.grants_on else ""
        if _address(on) and on not in made:
            target = on
        needs.setdefault(target, Needs()).add(row, item)
    return needs, elsewhere


def _address(target: str) -> str:
    """Return the address that tests permissions on a target; empty if there is none."""
    if target.startswith("b/"):
        return f"{_STORAGE}{target}/iam/testPermissions"
    for form, base in resource_types.policy_addresses():
        if form.fullmatch(target):
            slash = "/" if "/subnetworks/" in target else ":"
            return f"{base}{target}{slash}testIamPermissions"
    return ""


@answered
def _held(
    context: PreflightContext, target: str, service: str, permissions: set[str], needs: Needs
) -> Iterator[Answer]:
    of = question(target, f"{service} permissions")
    held = context.client.held(_address(target), permissions, of)
    if held is None:
        yield of.refused("it is not there", needs.reason(permissions), f"make {target} first")
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
        yield of.ok(f"all {len(permissions)} held")
        return
    # A test sets no policy: whether the roles that it would grant are those of the condition of
    # CI's role (``conditions.only_these_roles``) is decided at the grant.
    is_granting = service in LIMITED and all(
        permission.endswith(".setIamPolicy") for permission in missing
    )
    if context.as_ci and is_project and is_granting:
        yield of.warning(
            f"{', '.join(sorted(missing))}: not held without a condition",
            f"{needs.reason(missing)}, unless a role of bootstrap/ grants it under a condition",
            "`pulumi up` in bootstrap/, if that is older than what the stack declares",
        )
        return
    yield of.refused(
        f"lacks {', '.join(sorted(missing))}", needs.reason(missing), _grant(target, missing)
    )


def _held_on_resources(context: PreflightContext, permissions: set[str], of: Answer) -> set[str]:
    """Return the permissions held on every existing bucket, or secret, of the stack.

    Raises:
        UnansweredError: it has made none, or nobody answers.
    """
    if any(permission.startswith("bigquery.") for permission in permissions):
        unknown = of.unknown(
            f"{', '.join(sorted(permissions))}: datasets cannot be asked, and not all are held",
            mend="`datasets` in bootstrap/ lists those on which CI may grant",
        )
        raise UnansweredError(unknown)
    is_bucket = any(permission.startswith("storage.") for permission in permissions)
    kind = BUCKET if is_bucket else resource_types.SECRET
    made = [resource for resource in context.of_type(kind) if context.is_made(resource)]
    if not made:
        names, word = ", ".join(sorted(permissions)), resource_types.find(kind).word
        reason = f"{names}: not held on all, and the stack has made no {word} to ask of"
        raise UnansweredError(of.unknown(reason))
    left = set(permissions)
    for existing in made:
        target = resource_types.find(kind).policy_name(existing.inputs)
        left &= context.client.held(_address(target), permissions, of) or set()
    return left


def _grant(target: str, missing: set[str]) -> str:
    """The command that gives permissions on a target; those of CI are given by ``bootstrap``."""
    listed = ",".join(sorted(missing))
    if target.count("/") == 1 and target.startswith("projects/"):
        project = target.partition("/")[2]
        return (
            f"gcloud iam roles create deployTraining --project={project} --permissions={listed} && "
            f"gcloud projects add-iam-policy-binding {project} --member=MEMBER "
            f"--role=projects/{project}/roles/deployTraining (accounts of CI: `pulumi up` in "
            "bootstrap/)"
        )
    return f"its owner grants a role with {listed} on {target} to who deploys"


def _of_organization(resource: DeclaredResource) -> Answer:
    row = resource_types.find(resource.type)
    permissions = ", ".join(sorted(row.permissions("read", "write")))
    of = question(resource.name, "rights on the organization or folder")
    return of.unknown(
        "they are tested on the organization alone, which the stack does not name",
        permissions,
        "roles/compute.xpnAdmin for who deploys, given by the organization",
    )


def _accounts(context: PreflightContext) -> Iterator[Answer]:
    """Check whether the deployer may act as the account of each job and each endpoint."""
    declared = {
        resource_types.find(ACCOUNT).policy_name(account.inputs): account
        for account in context.of_type(ACCOUNT)
    }
    bodies = [json.loads(request.body) for request in context.declared.requests.values()]
    used = {
        email: "403 where the job is submitted, after a running one was cancelled for it"
        for body in bodies
        for email in _emails(body)
    }
    for key, endpoint in context.declared.stack.endpoints.items():
        if endpoint.account:
            meets = f"403 where a version is deployed to endpoint {key}"
            used.setdefault(endpoint.account, meets)
    for email, meets in sorted(used.items()):
        yield from _account(context, email, meets, declared)


@answered
def _account(
    context: PreflightContext, email: str, meets: str, declared: Mapping[str, DeclaredResource]
) -> Iterator[Answer]:
    project = email.partition("@")[2].partition(".")[0]
    name = f"projects/{project}/serviceAccounts/{email}"
    of = question(email, f"whether who deploys may act as it ({ACT_AS})")
    address = f"{_IAM}projects/-/serviceAccounts/{email}:testIamPermissions"
    if context.client.held(address, {ACT_AS}, of):
        yield of.ok("yes")
    elif name in declared and not context.is_made(declared[name]):
        yield of.ok("the stack makes the account, and its grants")
    else:
        yield of.refused(
            "no, or it does not exist",
            meets,
            f"gcloud iam service-accounts add-iam-policy-binding {email} --member=MEMBER "
            "--role=roles/iam.serviceAccountUser",
        )


def _emails(body: Any) -> Iterator[str]:
    """Yield accounts that a request names, of a job or of trials."""
    for spec in (body.get("jobSpec"), body.get("trialJobSpec")):
        if isinstance(spec, dict) and spec.get("serviceAccount"):
            yield str(spec["serviceAccount"])


def _state(context: PreflightContext) -> Iterator[Answer]:
    """Check the bucket of the state, and the key of the secrets in it."""
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
        yield of.ok(f"all {len(permissions)} held")
        return
    yield of.refused(
        "it is not there" if held is None else f"lacks {', '.join(sorted(missing))}",
        "the engine can neither read nor lock the state",
        f"`pulumi up` in bootstrap/ grants {role} on it to the accounts of CI",
    )
