"""Service accounts, and the service agents Google makes for its own services."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from localgcp.errors import CloudError
from localgcp.gcp import rules
from localgcp.gcp.cloud import Cloud, text
from localgcp.gcp.codec import has_unknown, plain
from localgcp.gcp.diff import UPDATE, Change
from localgcp.gcp.services.base import ExistingResource, ResourceType
from localgcp.inventory.projects import is_local
from localgcp.inventory.store import project_number

IDENTITY: Final = "gcp:projects/serviceIdentity:ServiceIdentity"
# https://cloud.google.com/iam/docs/service-agents; otherwise gcp-sa-NAME of NAME.googleapis.com.
_AGENT_DOMAINS: Final = {
    "compute.googleapis.com": "compute-system",
    "container.googleapis.com": "container-engine-robot",
    "storage.googleapis.com": "gs-project-accounts",
}
_CUSTOM_CODE: Final = "@gcp-sa-aiplatform-cc."


@dataclass(frozen=True)
class ServiceIdentity(ResourceType):
    """Makes a service agent exist (``gcp.projects.ServiceIdentity``); repeatable."""

    title: str = "Service Identity"
    overwrites: bool = True

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        service = text(dict(inputs), "service")
        return f"projects/{self.project(cloud, inputs)}/services/{service}"

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        service = text(inputs, "service")
        domain = _AGENT_DOMAINS.get(service, f"gcp-sa-{service.partition('.')[0]}")
        email = f"service-{project_number(project)}@{domain}.iam.gserviceaccount.com"
        return {"project": project, "email": email, "member": f"serviceAccount:{email}"}

    def outlives_deletion(self, olds: Mapping[str, Any]) -> bool:
        """The cloud keeps a service agent, and its grants, once it was made."""
        return True


@dataclass(frozen=True)
class Account(ResourceType):
    """A service account (``gcp.serviceaccount.Account``)."""

    longest_name: ClassVar = 30
    rules: ClassVar = {"accountId": rules.account_id}

    title: str = "service account"
    api: str | None = "iam.googleapis.com"

    def known(self, cloud: Cloud, inputs: Mapping[str, Any]) -> dict[str, Any]:
        values = plain(dict(inputs))
        if has_unknown([values.get("project"), values.get("accountId")]):
            return {}
        project = self.project(cloud, values)
        if not project:
            return {}
        email = f"{values['accountId']}@{project}.iam.gserviceaccount.com"
        return {"email": email, "member": f"serviceAccount:{email}"}

    def changed(self, news: dict[str, Any], olds: dict[str, Any]) -> list[Change]:
        if news.get("accountId") == olds.get("accountId"):
            return []
        return [Change("email", UPDATE), Change("member", UPDATE)]

    def id(self, cloud: Cloud, inputs: Mapping[str, Any]) -> str:
        email = self.known(cloud, inputs)["email"]
        return f"projects/{self.project(cloud, inputs)}/serviceAccounts/{email}"

    def import_id(self, cloud: Cloud, given: str) -> str:
        return (
            given
            if given.startswith("projects/")
            else (f"projects/{cloud.settings.project}/serviceAccounts/{given.rpartition('/')[2]}")
        )

    def create(self, cloud: Cloud, inputs: dict[str, Any]) -> ExistingResource:
        try:
            return super().create(cloud, inputs)
        except CloudError as error:
            if error.code != 409 or not plain(inputs).get("createIgnoreAlreadyExists"):
                raise
            found = self.read(cloud, self.id(cloud, plain(inputs)))
            if found is None:
                raise
            return found

    def exists(self, id_: str) -> str:
        name = id_.rpartition("/")[2].partition("@")[0]
        return (
            f"Service account {name} already exists within project {'/'.join(id_.split('/')[:2])}."
        )

    def make(self, cloud: Cloud, project: str, id_: str, inputs: dict[str, Any]) -> dict[str, Any]:
        unique = "1" + "".join(secrets.choice("0123456789") for _ in range(20))
        return {**self.known(cloud, inputs), "name": id_, "uniqueId": unique, "project": project}

    def unmake(self, cloud: Cloud, id_: str, olds: dict[str, Any]) -> None:
        """The account's grants go with it: an account made anew under its name has none."""
        cloud.store.delete_policy(id_)
        cloud.store.delete_member(f"serviceAccount:{text(olds, 'email')}")


def missing_account(cloud: Cloud, member: str) -> str | None:
    """The address of a local service account that ``member`` names and that does not exist."""
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
