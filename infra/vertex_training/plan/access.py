"""Who reaches what, and through which accounts: computed from IAM bindings. Pure.

A member that may act as an account reaches whatever the account reaches, and so on: an account may
be a submitter too. What a member is granted on a project holds for everything in it. Who may submit
jobs there reaches what a job does that names no account: it runs as Google's agent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from vertex_training.catalog.resource_types import words_of_data
from vertex_training.naming import BASIC_ROLES

#: Roles on an account (or a project) by which a member acts as it.
#: https://docs.cloud.google.com/iam/docs/service-account-permissions
ACTS_AS: Final = (
    "roles/iam.serviceAccountUser",
    "roles/iam.serviceAccountTokenCreator",
    "roles/iam.serviceAccountOpenIdTokenCreator",
    "roles/iam.serviceAccountKeyAdmin",
    "roles/iam.serviceAccountAdmin",
    "roles/iam.workloadIdentityUser",
    *(role for role, verb in BASIC_ROLES.items() if verb == "writes"),
)
#: As which the code of a job runs that names no account. To submit one asks for no right on it.
AGENT: Final = "Custom Code Service Agent"
#: Roles on a project by which a member submits jobs. Basic ones reach everything by themselves.
SUBMITS: Final = ("roles/aiplatform.user", "roles/aiplatform.admin")
#: What the agent reads and writes of the project that the job is in, in roles of no more than that:
#: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/access-control
_OF_AGENT: Final = ("roles/storage.objectUser", "roles/bigquery.dataEditor")
#: Beginning of a role on a project -> the data of that which it is about.
IN_PROJECT: Final = {
    "roles/storage.": "all buckets",
    "roles/secretmanager.": "all secrets",
    "roles/artifactregistry.": "all repositories",
    "roles/bigquery.data": "all datasets",
    "roles/bigquery.admin": "all datasets",
    **dict.fromkeys(BASIC_ROLES, "everything"),
}
#: Role -> what it allows with data. Of other roles the name itself says it.
VERBS: Final = {
    "roles/storage.objectViewer": "reads",
    "roles/storage.legacyObjectReader": "reads",
    "roles/storage.legacyObjectOwner": "writes",
    "roles/storage.objectUser": "writes",
    "roles/storage.objectAdmin": "writes",
    "roles/storage.admin": "writes",
    "roles/secretmanager.secretAccessor": "reads",
    "roles/bigquery.dataViewer": "reads",
    "roles/bigquery.dataEditor": "writes",
    "roles/bigquery.dataOwner": "writes",
    "roles/artifactregistry.reader": "reads",
    "roles/artifactregistry.writer": "writes",
    **BASIC_ROLES,
}


@dataclass(frozen=True, slots=True)
class Binding:
    """A role of a member on a resource. ``kind`` is bucket, secret, account, project, …"""

    member: str
    role: str
    kind: str
    target: str


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """What a member may do with a resource, and as which accounts, in the order of acting."""

    member: str
    verb: str
    kind: str
    target: str
    through: tuple[str, ...] = ()
    """Addresses of accounts, or ``AGENT``; empty if the member itself was granted it."""


def reachable(bindings: Iterable[Binding]) -> set[Access]:
    """All access to data that the bindings give, by the shortest way each."""
    held: defaultdict[str, list[Binding]] = defaultdict(list)
    for binding in bindings:
        held[binding.member].append(binding)
    accounts = {member.removeprefix("serviceAccount:") for member in held}
    accounts |= {
        _address(b.target) for given in held.values() for b in given if b.kind == "account"
    }
    found: dict[tuple[str, str, str, str], Access] = {}
    kinds = words_of_data() | {"object"}
    for member in sorted(held):
        for through, binding in _walk(member, held, accounts):
            kind = binding.kind if binding.kind in kinds else _in_project(binding)
            if kind:
                verb = VERBS.get(binding.role, binding.role)
                key = (member, verb, kind, binding.target)
                found.setdefault(key, Access(*key, through))
    return set(found.values())


def _in_project(binding: Binding) -> str:
    """What data of a project a role on it is about; empty if none."""
    roles = IN_PROJECT.items() if binding.kind == "project" else ()
    data = next((data for start, data in roles if binding.role.startswith(start)), "")
    return data and f"{data} of project"


def _walk(
    member: str, held: defaultdict[str, list[Binding]], accounts: set[str]
) -> Iterator[tuple[tuple[str, ...], Binding]]:
    """Bindings of ``member`` and of all it may act as, nearest first; a circle ends."""
    seen = set[str]()
    queue: list[tuple[str, tuple[str, ...]]] = [(member, ())]
    while queue:
        acting, through = queue.pop(0)
        for binding in held.get(acting, ()):
            yield through, binding
            for address in _impersonated(binding, accounts):
                if address not in seen:
                    seen.add(address)
                    queue.append((f"serviceAccount:{address}", (*through, address)))
        for binding in held.get(acting, ()):
            if binding.kind == "project" and binding.role in SUBMITS:
                yield from (((*through, AGENT), replace(binding, role=r)) for r in _OF_AGENT)


def _impersonated(binding: Binding, accounts: set[str]) -> list[str]:
    """Addresses of the accounts that a binding lets its member act as."""
    if binding.role not in ACTS_AS:
        return []
    if binding.kind == "account":
        return [_address(binding.target)]
    if binding.kind != "project":
        return []
    domain = f"@{binding.target.rpartition('/')[2]}.iam.gserviceaccount.com"
    return sorted(address for address in accounts if address.endswith(domain))


def _address(target: str) -> str:
    return target.rpartition("/")[2]
