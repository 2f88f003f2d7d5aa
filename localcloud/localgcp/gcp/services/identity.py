"""APIs, roles, service accounts, workload identity pools, tags and deny policies.

The local cloud stores deny policies and tags but does not enforce them. It does not check the
permissions of roles, and it exchanges no tokens of workload identity pools. Custom roles, deny
policies and tags behave as Google documents them: the official plugin was not measured with them.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from localgcp.errors import CloudError
from localgcp.gcp import check
from localgcp.gcp.cloud import Cloud, Values, new_number, text
from localgcp.gcp.codec import has_unknown, plain
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory.resource_paths import is_local
from localgcp.inventory.store import ACCOUNT, project_number

IDENTITY: Final = "gcp:projects/serviceIdentity:ServiceIdentity"
CUSTOM_ROLE: Final = "gcp:projects/iAMCustomRole:IAMCustomRole"
POOL: Final = "gcp:iam/workloadIdentityPool:WorkloadIdentityPool"
DENY_POLICY: Final = "gcp:iam/denyPolicy:DenyPolicy"
TAG_KEY: Final = "gcp:tags/tagKey:TagKey"
TAG_VALUE: Final = "gcp:tags/tagValue:TagValue"
TAG_BINDING: Final = "gcp:tags/tagBinding:TagBinding"
# https://cloud.google.com/iam/docs/service-agents; otherwise gcp-sa-NAME of NAME.googleapis.com.
_AGENT_DOMAINS: Final = {
    "compute.googleapis.com": "compute-system",
    "container.googleapis.com": "container-engine-robot",
    "storage.googleapis.com": "gs-project-accounts",
}
_ATTACHMENT: Final = re.compile(r"cloudresourcemanager\.googleapis\.com%2Fprojects%2F([^%/]+)\Z")
# https://docs.cloud.google.com/iam/docs/deny-permissions-support; "*" stands for every verb.
_PERMISSION: Final = re.compile(r"[a-z0-9.-]+\.googleapis\.com/[A-Za-z]+\.([A-Za-z]+|\*)\Z")
_PRINCIPAL: Final = re.compile(r"principal(Set)?://\S+\Z")
_FORMS: Final = {
    "deniedPermissions": _PERMISSION,
    "exceptionPermissions": _PERMISSION,
    "deniedPrincipals": _PRINCIPAL,
    "exceptionPrincipals": _PRINCIPAL,
}
# The condition of a deny policy may only test tags (https://docs.cloud.google.com/iam/docs/deny-overview).
_CONDITION: Final = re.compile(
    r"(!|\(|\)|\s|&&|\|\||resource\.(matchTag|matchTagId|hasTagKey|hasTagKeyId)"
    r"\('[^']+'(,\s*'[^']+')?\))+\Z"
)


class ProjectService(ResourceType):
    """An enabled API (``gcp.projects.Service``). Only ``disableOnDestroy`` disables the API."""

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return id_to_import if "/" in id_to_import else f"{cloud.settings.project}/{id_to_import}"

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        return not olds.get("disableOnDestroy")


class CustomRole(ResourceType):
    """A custom role of a project (``gcp.projects.IAMCustomRole``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        role = text(inputs, "roleId")
        # https://cloud.google.com/iam/docs/reference/rest/v1/projects.roles/create
        if not re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", role):
            raise CloudError(400, f"The role_id {role} has an invalid form.")
        for permission in inputs.get("permissions") or []:
            if not re.fullmatch(r"[a-z0-9-]+(\.[a-zA-Z0-9]+){2}", permission):
                raise CloudError(400, f"Permission {permission} is not valid.")


class ServiceIdentity(ResourceType):
    """A service agent (``gcp.projects.ServiceIdentity``), which the cloud never deletes."""

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        service = text(inputs, "service")
        domain = _AGENT_DOMAINS.get(service, f"gcp-sa-{service.partition('.')[0]}")
        email = f"service-{project_number(project)}@{domain}.iam.gserviceaccount.com"
        return {"email": email, "member": f"serviceAccount:{email}"}


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
        return {"uniqueId": unique}

    def unmake(self, cloud: Cloud, id_: str, olds: Values) -> None:
        """Delete the account's policy and its grants on other resources."""
        cloud.store.delete_policy(id_)
        cloud.store.delete_member(f"serviceAccount:{text(olds, 'email')}")


def missing_account(cloud: Cloud, member: str) -> str | None:
    """Return the address of the member's local service account if the account is missing."""
    kind, _, email = member.partition(":")
    if kind != "serviceAccount" or not email.endswith(".iam.gserviceaccount.com"):
        return None
    local, _, domain = email.partition("@")
    project = domain.removesuffix(".iam.gserviceaccount.com")
    if is_local(project):
        return None if cloud.store.account(email) else email
    projects = {resource.project for resource in cloud.store.list()} | {cloud.settings.project}
    numbers = {project_number(project) for project in projects if is_local(project)}
    if local.startswith("service-") and local.removeprefix("service-") in numbers:
        # Vertex AI creates the custom code agent together with its service agent.
        agent = email.replace("@gcp-sa-aiplatform-cc.", "@gcp-sa-aiplatform.")
        identities = cloud.store.list(IDENTITY)
        return None if any(i.outputs.get("email") == agent for i in identities) else email
    return None


class Pool(ResourceType):
    """A workload identity pool (``gcp.iam.WorkloadIdentityPool``)."""

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        name = id_.replace(f"projects/{project}/", f"projects/{project_number(project)}/", 1)
        return {"name": name, "state": "ACTIVE"}


class Provider(Pool):
    """A provider of a pool (``gcp.iam.WorkloadIdentityPoolProvider``)."""

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        name = text(inputs, "workloadIdentityPoolId")
        pool = f"projects/{project}/locations/global/workloadIdentityPools/{name}"
        if cloud.store.get(POOL, pool) is None:
            raise CloudError(404, f"Requested entity was not found: {pool}", "notFound")
        # https://cloud.google.com/iam/docs/workload-identity-federation#mapping
        if inputs.get("oidc") and "google.subject" not in (inputs.get("attributeMapping") or {}):
            reason = "The attribute mapping must contain a mapping for google.subject."
            raise CloudError(400, reason)


class DenyPolicy(ResourceType):
    """A deny policy of a project (``gcp.iam.DenyPolicy``)."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        match = _ATTACHMENT.match(text(values, "parent"))
        return match[1] if match else cloud.settings.project

    def owner(self, cloud: Cloud, id_: str) -> str:
        return self.project(cloud, {"parent": id_.rpartition("/")[0]})

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        if not _ATTACHMENT.match(text(inputs, "parent")):
            raise CloudError(400, f"Attachment point {text(inputs, 'parent')} is invalid.")
        if not re.fullmatch(r"[a-z][a-z0-9.-]{2,62}", text(inputs, "name")):
            raise CloudError(400, f"Policy ID {text(inputs, 'name')} is invalid.")
        for rule in inputs.get("rules") or []:
            denied = rule.get("denyRule") or {}
            for kind, form in _FORMS.items():
                for value in denied.get(kind) or []:
                    if not form.match(value):
                        raise CloudError(400, f"{value} is not supported in {kind}.")
            condition = text(denied.get("denialCondition") or {}, "expression")
            if condition and not _CONDITION.match(condition):
                raise CloudError(400, f"Condition {condition} may only use resource tags.")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"etag": new_number()}

    def remake(self, cloud: Cloud, id_: str, inputs: Values, olds: Values) -> Values:
        return {"etag": new_number()}


@dataclass(frozen=True)
class Tag(ResourceType):
    """A tag key or value (``gcp.tags.TagKey``, ``TagValue``)."""

    parent: str | None = None
    """Type token of the parent; None if the parent is a project."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        parent = text(values, "parent")
        if self.parent is None:
            return parent.partition("projects/")[2] or cloud.settings.project
        resource = cloud.store.get(self.parent, parent)
        return resource.project if resource else cloud.settings.project

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        return f"{self.collection}/{new_number()}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return id_to_import if "/" in id_to_import else f"{self.collection}/{id_to_import}"

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        parent = text(inputs, "parent")
        if self.parent is not None and cloud.store.get(self.parent, parent) is None:
            raise CloudError(404, f"{parent} was not found.", "notFound")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        above = project
        if self.parent is not None:
            key = cloud.store.get(self.parent, text(inputs, "parent"))
            above = text(key.outputs, "namespacedName") if key else project
        name = f"{above}/{text(inputs, 'shortName')}"
        return {"namespacedName": name, "name": id_.rpartition("/")[2]}


class TagBinding(ResourceType):
    """A tag on a resource (``gcp.tags.TagBinding``)."""

    def project(self, cloud: Cloud, values: Mapping[str, Any]) -> str:
        parent = text(values, "parent")
        match = re.search(r"/projects/([^/]+)", parent)
        return match[1] if match else cloud.settings.project

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        parent = quote(text(inputs, "parent"), safe="")
        return f"tagBindings/{parent}/{text(inputs, 'tagValue')}"

    def import_id(self, cloud: Cloud, id_to_import: str) -> str:
        return f"tagBindings/{id_to_import.removeprefix('tagBindings/')}"

    def verify(self, cloud: Cloud, project: str, inputs: Values) -> None:
        value = text(inputs, "tagValue")
        if cloud.store.get(TAG_VALUE, value) is None:
            raise CloudError(404, f"{value} was not found.", "notFound")
        _, separator, account = text(inputs, "parent").partition("/serviceAccounts/")
        if separator and not any(
            account in (text(row.outputs, "uniqueId"), text(row.outputs, "email"))
            for row in cloud.store.list(ACCOUNT, project)
        ):
            raise CloudError(404, f"Service account {account} was not found.", "notFound")

    def make(self, cloud: Cloud, project: str, id_: str, inputs: Values) -> Values:
        return {"name": id_.removeprefix("tagBindings/")}


_TAGS: Final = "cloudresourcemanager.googleapis.com"
_IAM: Final = "iam.googleapis.com"
_TAKEN: Final = "Requested entity already exists"
TYPES: Final[dict[str, ResourceType]] = {
    "gcp:projects/service:Service": ProjectService(
        "Project Service",
        form="{{project}}/{{service}}",
        overwrites=True,
        rules={"service": check.api_name},
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
        rules={"accountId": check.account_id},
    ),
    POOL: Pool(
        "WorkloadIdentityPool",
        _IAM,
        exists=_TAKEN,
        rules={"workloadIdentityPoolId": check.pool_id},
    ),
    "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider": Provider(
        "WorkloadIdentityPoolProvider", _IAM, exists=_TAKEN
    ),
    DENY_POLICY: DenyPolicy("DenyPolicy", _IAM, verifies_updates=True),
    TAG_KEY: Tag("TagKey", _TAGS, collection="tagKeys"),
    TAG_VALUE: Tag("TagValue", _TAGS, collection="tagValues", parent=TAG_KEY),
    TAG_BINDING: TagBinding("TagBinding", _TAGS, exists="A binding already exists: {id}"),
}
