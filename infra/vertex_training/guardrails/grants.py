"""Policies on IAM grants of a member, a binding or a whole policy; on keys and firewall rules."""

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
from vertex_training.plan.access import OWN_TEAM, listed_grants
from vertex_training.plan.firewalls import open_ranges

#: Types of resources whose grants hold on a project, a folder or an organization.
PROJECT_OR_ABOVE: Final = ("gcp:projects/", "gcp:folder/", "gcp:organizations/")
OVERVIEW: Final = "https://docs.cloud.google.com/iam/docs/roles-overview"

#: Beginning of a role -> where it can be granted more narrowly than on a project.
NARROWER_SCOPES: Final = {
    "roles/storage.": "on the bucket",
    "roles/secretmanager.": "on the secret",
    "roles/artifactregistry.": "on the repository",
    "roles/cloudkms.": "on the key",
    "roles/bigquery.data": "on the dataset",
    "roles/iam.serviceAccount": "on the one account",
    "roles/iam.workloadIdentityUser": "on the one account",
}

#: Documented needs that no narrower grant meets: role -> pattern of its members on a project.
#: The agent reads and updates the project's network attachments (general/vpc-psc-i-setup).
NETWORK_AGENT: Final = {
    "roles/compute.networkAdmin": (
        "serviceAccount:service-*@gcp-sa-aiplatform.iam.gserviceaccount.com"
    )
}


def grants(resource: Resource) -> Iterator[tuple[str, str | Unknown]]:
    """(role, member) of every grant of a resource; a member may be unknown."""
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
    why="A basic role reaches every service of a project, those to come included.",
    url=OVERVIEW,
    standards=("CIS GCP 1.5", "CKV_GCP_117", "CKV_GCP_115", "CKV_GCP_116"),
)
def no_basic_roles(resource: Resource, _settings: Settings) -> Found:
    """Nobody is given a basic role: Admin, Writer, Reader; Owner, Editor, Viewer."""
    for role, member in grants(resource):
        if role in BASIC_ROLES:
            yield f"{member} gets {role}. Hint: give a role of the one service it needs"


@policy(
    "no-broad-project-roles",
    "high",
    why="A role on a project holds for everything in it, also for what others put there.",
    url="https://docs.cloud.google.com/iam/docs/using-iam-securely",
    standards=("CIS GCP 1.5", "CIS GCP 1.6", "CKV_GCP_41", "CKV_GCP_42", "CKV_GCP_49"),
    allowed=NETWORK_AGENT,
)
def no_broad_project_roles(resource: Resource, settings: Settings) -> Found:
    """No administrator's role, and none that fits something narrower, on a whole project."""
    if not resource.type.startswith(PROJECT_OR_ABOVE):
        return
    for role, member in grants(resource):
        allowed = settings["allowed"].get(role)
        if allowed and (isinstance(member, Unknown) or fnmatch.fnmatchcase(member, allowed)):
            continue
        scopes = (scope for start, scope in NARROWER_SCOPES.items() if role.startswith(start))
        scope = next(scopes, None)
        if scope:
            yield f"{member} gets {role} on everything. Hint: give it {scope}"
        elif "admin" in role.lower():
            yield f"{member} gets {role} on everything. Hint: give a role that only does the work"


@policy(
    "no-public-members",
    "critical",
    why="Data, images or keys are then anybody's who knows their name.",
    url="https://docs.cloud.google.com/storage/docs/public-access-prevention",
    standards=("CIS GCP 5.1", "CKV_GCP_28", "CKV_GCP_101"),
)
def no_public_members(resource: Resource, _settings: Settings) -> Found:
    """Nothing is granted to allUsers or allAuthenticatedUsers, by IAM, ACL or access list."""
    hint = "Hint: name the group or account that needs it"
    for role, member in grants(resource):
        if member in PUBLIC_MEMBERS:
            yield f"{member} gets {role}. {hint}"


@policy(
    "members-of-own-domains",
    "high",
    why="Who is of no domain of the company leaves no trace there, and stays when contracts end.",
    url="https://docs.cloud.google.com/resource-manager/docs/organization-policy/restricting-domains",
    domains=[],  # none: any; `vt` gives those of limits.memberDomains and the stack's project
)
def members_of_own_domains(resource: Resource, settings: Settings) -> Found:
    """Members are of the given domains, if some are given."""
    domains = settings["domains"]
    for role, member in grants(resource):
        if not domains or isinstance(member, Unknown) or member in PUBLIC_MEMBERS:
            continue
        if not is_of_domains(str(member), domains):
            domain = domain_of_member(str(member))
            hint = f"add {domain} to the domains" if domain else "write it as IAM's page has it"
            yield f"{member} gets {role}. Hint: {hint}"


@policy(
    "no-service-account-keys",
    "high",
    why="A key works for whoever has it, for years; it ends up in code, logs and laptops.",
    url="https://docs.cloud.google.com/iam/docs/best-practices-for-managing-service-account-keys",
    standards=("CIS GCP 1.4",),
)
def no_service_account_keys(resource: Resource, _settings: Settings) -> Found:
    """No key of a service account is made, nor an API key that is bound to one."""
    if kind := account_key(resource.type, resource.props):
        yield (
            f"{kind} of a service account is made. Hint: jobs run as their account and need none; "
            "for CI use workload identity federation"
        )


@policy(
    "no-ingress-from-anywhere",
    "critical",
    of=FIREWALL,
    why="Workers talk to each other only; whatever listens would be reached from the internet.",
    url="https://docs.cloud.google.com/firewall/docs/firewalls",
    standards=("CIS GCP 3.6", "CIS GCP 3.7", "CKV_GCP_2", "CKV_GCP_3"),
)
def no_ingress_from_anywhere(resource: Resource, _settings: Settings) -> Found:
    """No firewall rule lets the whole internet in."""
    if ranges := open_ranges(resource.props, "INGRESS"):
        allowed = [str(item.get("protocol")) for item in items(resource.props, "allows")]
        protocols = ", ".join(allowed) or "protocols known later"
        hint = "name the ranges that need it"
        yield f"{', '.join(ranges)} may reach it ({protocols}). Hint: {hint}"
