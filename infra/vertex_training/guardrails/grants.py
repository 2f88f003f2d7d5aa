"""Policies for IAM grants, keys of service accounts, and firewall rules."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.catalog.resource_types import FIREWALL, account_key, iam_kind
from vertex_training.guardrails.policy import (
    Found,
    Resource,
    Settings,
    Unknown,
    items,
    policy,
    text,
)
from vertex_training.naming import BASIC_ROLES, PUBLIC_MEMBERS, domain_of_member, is_of_domains
from vertex_training.plan.access import OWN_TEAM, listed_grants, open_ranges

#: Prefixes of the types of grants on a project, a folder or an organization.
PROJECT_OR_ABOVE: Final = ("gcp:projects/", "gcp:folder/", "gcp:organizations/")
OVERVIEW: Final = "https://docs.cloud.google.com/iam/docs/roles-overview"

#: Prefixes of roles, and for each the resource on which a narrower grant is possible.
NARROWER_SCOPES: Final = {
    "roles/storage.": "on the bucket",
    "roles/secretmanager.": "on the secret",
    "roles/artifactregistry.": "on the repository",
    "roles/cloudkms.": "on the key",
    "roles/bigquery.data": "on the dataset",
    "roles/iam.serviceAccount": "on the service account",
    "roles/iam.workloadIdentityUser": "on the service account",
}

#: Allowed grants on a project: role -> pattern of members. Google documents that the service agent
#: needs this role to read and update the project's network attachments (general/vpc-psc-i-setup).
NETWORK_AGENT: Final = {
    "roles/compute.networkAdmin": (
        "serviceAccount:service-*@gcp-sa-aiplatform.iam.gserviceaccount.com"
    )
}


def grants(resource: Resource) -> Iterator[tuple[str, str | Unknown]]:
    """Yield the role and the member of each grant of a resource. A member may be unknown."""
    for grant in listed_grants(resource.type, resource.props):
        if not str(grant.member).endswith(OWN_TEAM):
            yield str(grant.role), grant.member
    kind = iam_kind(resource.type)
    if not kind:
        return
    props = resource.props
    if kind == "Policy":
        data = text(props, "policyData")
        bindings: list[Any] = items(json.loads(data), "bindings") if data else []
    elif kind == "Binding":
        bindings = [{"role": text(props, "role"), "members": items(props, "members")}]
    else:
        bindings = [{"role": text(props, "role"), "members": [props.get("member")]}]
    for binding in bindings:
        for member in items(binding, "members"):
            yield text(binding, "role"), member


@policy(
    "no-basic-roles",
    "critical",
    why="A basic role gives access to every service of a project, including future ones.",
    url=OVERVIEW,
    standards=("CIS GCP 1.5", "CKV_GCP_117", "CKV_GCP_115", "CKV_GCP_116"),
)
def no_basic_roles(resource: Resource, _settings: Settings) -> Found:
    """No member may get a basic role: Admin, Writer, Reader, Owner, Editor or Viewer."""
    for role, member in grants(resource):
        if role in BASIC_ROLES:
            yield f"{member} gets {role}. Hint: grant a role of the needed service"


@policy(
    "no-broad-project-roles",
    "high",
    why="A role on a project applies to all its resources, including those of other teams.",
    url="https://docs.cloud.google.com/iam/docs/using-iam-securely",
    standards=("CIS GCP 1.5", "CIS GCP 1.6", "CKV_GCP_41", "CKV_GCP_42", "CKV_GCP_49"),
    allowed=NETWORK_AGENT,
)
def no_broad_project_roles(resource: Resource, settings: Settings) -> Found:
    """Roles on a whole project must not be administrator roles, or roles to grant more narrowly."""
    if not resource.type.startswith(PROJECT_OR_ABOVE):
        return
    for role, member in grants(resource):
        allowed = settings["allowed"].get(role)
        if allowed and (isinstance(member, Unknown) or fnmatch.fnmatchcase(member, allowed)):
            continue
        scopes = (scope for start, scope in NARROWER_SCOPES.items() if role.startswith(start))
        scope = next(scopes, None)
        if scope:
            yield f"{member} gets {role} on the whole project. Hint: grant the role {scope}"
        elif "admin" in role.lower():
            hint = "Hint: grant a role without administrator permissions"
            yield f"{member} gets {role} on the whole project. {hint}"


@policy(
    "no-public-members",
    "critical",
    why="Anyone who knows the name of public data, images or keys can use them.",
    url="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    standards=("CIS GCP 5.1", "CKV_GCP_28", "CKV_GCP_101"),
)
def no_public_members(resource: Resource, _settings: Settings) -> Found:
    """No IAM policy, ACL or access list may name allUsers or allAuthenticatedUsers."""
    hint = "Hint: grant the role to the group or account that needs it"
    for role, member in grants(resource):
        if member in PUBLIC_MEMBERS:
            yield f"{member} gets {role}. {hint}"


@policy(
    "members-of-own-domains",
    "high",
    why="Members outside of the company's domains keep access when contracts end.",
    url="https://docs.cloud.google.com/resource-manager/docs/organization-policy/restricting-domains",
    domains=[],  # empty: any domain; `vt` sets limits.memberDomains and the stack's project
)
def members_of_own_domains(resource: Resource, settings: Settings) -> Found:
    """Members must belong to the configured domains, if any are configured."""
    domains = settings["domains"]
    for role, member in grants(resource):
        if not domains or isinstance(member, Unknown) or member in PUBLIC_MEMBERS:
            continue
        if not is_of_domains(str(member), domains):
            domain = domain_of_member(str(member))
            hint = f"add {domain} to the domains" if domain else "write the member as TYPE:ADDRESS"
            yield f"{member} gets {role}. Hint: {hint}"


@policy(
    "no-service-account-keys",
    "high",
    why="A key gives access for years to anyone who finds the key in code, logs or on laptops.",
    url="https://docs.cloud.google.com/iam/docs/best-practices-for-managing-service-account-keys",
    standards=("CIS GCP 1.4",),
)
def no_service_account_keys(resource: Resource, _settings: Settings) -> Found:
    """The stack must not create keys of service accounts, or API keys bound to an account."""
    if kind := account_key(resource.type, resource.props):
        yield (
            f"the resource creates {kind} of a service account. Hint: remove the key; jobs run as "
            "their account without a key, and CI uses workload identity federation"
        )


@policy(
    "no-ingress-from-anywhere",
    "critical",
    of=FIREWALL,
    why="An open rule exposes ports to the internet that only the other workers need.",
    url="https://docs.cloud.google.com/firewall/docs/firewalls",
    standards=("CIS GCP 3.6", "CIS GCP 3.7", "CKV_GCP_2", "CKV_GCP_3"),
)
def no_ingress_from_anywhere(resource: Resource, _settings: Settings) -> Found:
    """No firewall rule may allow ingress from the whole internet."""
    if ranges := open_ranges(resource.props, "INGRESS"):
        allowed = [str(item.get("protocol")) for item in items(resource.props, "allows")]
        protocols = ", ".join(allowed) or "unknown protocols"
        hint = "list only the ranges that need access"
        yield f"the rule allows ingress from {', '.join(ranges)} ({protocols}). Hint: {hint}"
