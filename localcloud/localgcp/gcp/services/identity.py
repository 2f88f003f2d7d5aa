"""APIs and roles of a project, service accounts and agents, workload identity pools.

No token is exchanged here, and which permission a role holds is not asked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any, Final

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, Values, text
from localgcp.gcp.codec import has_unknown, plain
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory.projects import is_local
from localgcp.inventory.store import ACCOUNT, project_number

IDENTITY: Final = "gcp:projects/serviceIdentity:ServiceIdentity"
CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"
POOL: Final = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
# https://cloud.google.com/iam/docs/service-agents; otherwise gcp-sa-NAME of NAME.googleapis.com.
_AGENT_DOMAINS: Final = {
    "compute.googleapis.com": "compute-system",
    "container.googleapis.com": "container-engine-robot",
    "storage.googleapis.com": "gs-project-accounts",
}
_CUSTOM_CODE: Final = "@gcp-sa-aiplatform-cc."
# https://cloud.google.com/iam/docs/reference/rest/v1/projects.roles/create
_ROLE_ID: Final = re.compile(r"^[a-zA-Z0-9_.]{3,64}$")
_PERMISSION: Final = re.compile(r"^[a-z0-9-]+(\.[a-zA-Z0-9]+){2}$")


class ProjectService(ResourceType):
    """An enabled API (``gcp.projects.Service``); several resources may enable the same API.

    It stays on when the resource goes, as others may need it, unless ``disableOnDestroy`` is set.
    """

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return id_to_import if "/" in id_to_import else f"{cloud.settings.project}/{id_to_import}"

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        return not olds.get("disableOnDestroy")


class CustomRole(ResourceType):
    """A custom role of a project (``gcp.projects.IAMCustomRole``).

    This type follows the documentation; it was not held against the official plugin.
    """

    def verify(self, cloud: Cloud, project: str, inputs: Values, doing: str) -> None:
        role = text(inputs, "roleId")
        if not _ROLE_ID.fullmatch(role):
            raise CloudError(doing, 400, f"The role_id {role} has an invalid form.", "badRequest")
        for permission in inputs.get("permissions") or []:
            if not _PERMISSION.fullmatch(permission):
                reason = f"Permission {permission} is not valid."
                raise CloudError(doing, 400, reason, "badRequest")


class ServiceIdentity(ResourceType):
    """Creates a service agent (``gcp.projects.ServiceIdentity``); repeatable.

    The cloud keeps a service agent, and its grants, once it was made.
    """

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        service = text(inputs, "service")
        domain = _AGENT_DOMAINS.get(service, f"gcp-sa-{service.partition('.')[0]}")
        email = f"service-{project_number(project)}@{domain}.iam.gserviceaccount.com"
        return {"project": project, "email": email, "member": f"serviceAccount:{email}"}


class Account(ResourceType):
    """A service account (``gcp.serviceaccount.Account``)."""

    def known(self, cloud: Cloud, inputs: Mapping[str, Any]) -> Values:
        values = plain(dict(inputs))
        if has_unknown([values.get("project"), values.get("accountId")]):
            return {}
        project = self.project(cloud, values)
        if not project:
            return {}
        email = f"{values['accountId']}@{project}.iam.gserviceaccount.com"
        return {"email": email, "member": f"serviceAccount:{email}"}

    def changed(self, news: Values, olds: Values) -> list[Change]:
        if news.get("accountId") == olds.get("accountId"):
            return []
        return [Change("email", UPDATE), Change("member", UPDATE)]

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        email = self.known(cloud, inputs)["email"]
        return f"projects/{self.project(cloud, inputs)}/serviceAccounts/{email}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        if id_to_import.startswith("projects/"):
            return id_to_import
        return (
            f"projects/{cloud.settings.project}/serviceAccounts/{id_to_import.rpartition('/')[2]}"
        )

    def create(self, cloud: Cloud, inputs: Values) -> ExistingResource:
        try:
            return super().create(cloud, inputs)
        except CloudError as error:
            if error.code != 409 or not plain(inputs).get("createIgnoreAlreadyExists"):
                raise
            existing = self.read(cloud, self.id(cloud, plain(inputs)))
            if existing is None:
                raise
            return existing

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        unique = "1" + "".join(secrets.choice("0123456789") for _ in range(20))
        return {**super().make(cloud, project, id_, inputs), "uniqueId": unique}

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        """Delete the account's grants too: a new account of the same name starts without grants."""
        cloud.store.delete_policy(id_)
        cloud.store.delete_member(f"serviceAccount:{text(olds, 'email')}")


def missing_account(cloud: Cloud, member: str) -> str | None:
    """Return the address of a missing local service account that ``member`` refers to, or None."""
    kind, _, email = member.partition(":")
    if kind != "serviceAccount" or not email.endswith(".iam.gserviceaccount.com"):
        return None
    local, _, domain = email.partition("@")
    project = domain.removesuffix(".iam.gserviceaccount.com")
    if is_local(project):
        return None if cloud.store.account(email) else email
    if local.startswith("service-") and local.removeprefix("service-") in _local_numbers(cloud):
        # Vertex makes the custom code agent together with its service agent's identity here.
        agent = email.replace(_CUSTOM_CODE, "@gcp-sa-aiplatform.")
        identities = cloud.store.list(IDENTITY)
        return None if any(i.outputs.get("email") == agent for i in identities) else email
    return None


def _local_numbers(cloud: Cloud) -> set[str]:
    projects = {r.project for r in cloud.store.list()} | {cloud.settings.project}
    return {project_number(p) for p in projects if is_local(p)}


class Pool(ResourceType):
    """A workload identity pool (``gcp.iam.WorkloadIdentityPool``)."""

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        name = id_.replace(f"projects/{project}/", f"projects/{project_number(project)}/", 1)
        return {"project": project, "name": name, "state": "ACTIVE"}


class Provider(Pool):
    """A provider of a pool (``gcp.iam.WorkloadIdentityPoolProvider``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values, doing: str) -> None:
        name = text(inputs, "workloadIdentityPoolId")
        pool = f"projects/{project}/locations/global/workloadIdentityPools/{name}"
        if cloud.store.get(POOL, pool) is None:
            raise CloudError(doing, 404, f"Requested entity was not found: {pool}", "notFound")
        # https://cloud.google.com/iam/docs/workload-identity-federation#mapping
        if inputs.get("oidc") and "google.subject" not in (inputs.get("attributeMapping") or {}):
            reason = "The attribute mapping must contain a mapping for google.subject."
            raise CloudError(doing, 400, reason, "badRequest")


_IAM: Final = "iam.googleapis.com"
_TAKEN: Final = "Requested entity already exists"
TYPES: Final[dict[str, ResourceType]] = {
    "gcp:projects/service:Service": ProjectService(
        "Project Service",
        form="{{project}}/{{service}}",
        overwrites=True,
        rules={"service": rules.api_name},
    ),
    CUSTOM_ROLE: CustomRole(
        "Custom Project Role",
        _IAM,
        exists="A role named {name} in {project} exists",
        verifies_updates=True,
    ),
    IDENTITY: ServiceIdentity(
        "Service Identity",
        form="projects/{{project}}/services/{{service}}",
        overwrites=True,
        outlives=True,
    ),
    ACCOUNT: Account(
        "service account",
        _IAM,
        exists="Service account {name} already exists within project {project}.",
        longest_name=30,
        rules={"accountId": rules.account_id},
    ),
    POOL: Pool(
        "WorkloadIdentityPool",
        _IAM,
        exists=_TAKEN,
        rules={"workloadIdentityPoolId": rules.pool_id},
    ),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": Provider(
        "WorkloadIdentityPoolProvider", _IAM, exists=_TAKEN
    ),
}
