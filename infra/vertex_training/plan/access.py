"""Access of members to data, from IAM bindings and access lists; open firewall rules.

A member that may act as an account has the account's access, and so on for other accounts. A role
on a project applies to all its resources. A member that may submit jobs has the access of Google's
agent, which runs jobs without ``serviceAccount``. Policy packs import this module, so it needs no
package that reads stack files.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from vertex_training.catalog.resource_types import DATASET, words_of_data
from vertex_training.naming import BASIC_ROLES, PUBLIC_MEMBERS

#: Roles on an account or project that let a member act as the account.
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
#: Account of jobs without ``serviceAccount``.
AGENT: Final = "Custom Code Service Agent"
#: Roles on a project that let a member submit jobs.
SUBMITS: Final = ("roles/aiplatform.user", "roles/aiplatform.admin")
#: Role on a project -> account that a member with the role can use without a right on the account,
#: and roles of this account on the project. Basic roles include all data. Batch and Dataflow have
#: no entry: they require a right to act as the account of the job (``ACTS_AS``).
#: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/general/access-control
#: https://docs.cloud.google.com/build/docs/cloud-build-service-account
#: https://docs.cloud.google.com/deployment-manager/docs/access-control
_AGENTS: Final = {
    **dict.fromkeys(SUBMITS, (AGENT, ("roles/storage.objectUser", "roles/bigquery.dataEditor"))),
    "roles/cloudbuild.builds.editor": (
        "Cloud Build's legacy account",
        ("roles/storage.objectUser", "roles/artifactregistry.writer"),
    ),
    "roles/deploymentmanager.editor": ("Google APIs Service Agent", ("roles/editor",)),
}
#: Prefix of a role on a project -> data that the role gives access to.
IN_PROJECT: Final = {
    "roles/storage.": "all buckets",
    "roles/secretmanager.": "all secrets",
    "roles/artifactregistry.": "all repositories",
    "roles/bigquery.data": "all datasets",
    "roles/bigquery.admin": "all datasets",
    **dict.fromkeys(BASIC_ROLES, "everything"),
}
#: Role -> verb for reports. Other roles are shown by name.
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
    """A member's role on a resource. ``kind`` is bucket, secret, account, project, …"""

    member: str
    role: str
    kind: str
    target: str


@dataclass(frozen=True, slots=True, order=True)
class Access:
    """A member's access to a resource, and the chain of accounts that the member impersonates."""

    member: str
    verb: str
    kind: str
    target: str
    through: tuple[str, ...] = ()
    """Addresses of accounts, or names from ``_AGENTS``; empty for a direct grant."""


def reachable(bindings: Iterable[Binding]) -> set[Access]:
    """Return the access to data that bindings grant, with the shortest chain of accounts."""
    held: defaultdict[str, list[Binding]] = defaultdict(list)
    for binding in bindings:
        held[binding.member].append(binding)
    accounts = {member.removeprefix("serviceAccount:") for member in held}
    accounts |= {
        b.target.rpartition("/")[2]
        for granted in held.values()
        for b in granted
        if b.kind == "account"
    }
    accesses: dict[tuple[str, str, str, str], Access] = {}
    kinds = words_of_data() | {"object"}
    for member in sorted(held):
        for through, binding in _walk(member, held, accounts):
            kind = binding.kind if binding.kind in kinds else _in_project(binding)
            if kind:
                verb = VERBS.get(binding.role, binding.role)
                key = (member, verb, kind, binding.target)
                accesses.setdefault(key, Access(*key, through))
    return set(accesses.values())


def _in_project(binding: Binding) -> str:
    """Return the data that a role on a project gives access to; empty for other roles."""
    roles = IN_PROJECT.items() if binding.kind == "project" else ()
    data = next((data for start, data in roles if binding.role.startswith(start)), "")
    return data and f"{data} of project"


def _walk(
    member: str, held: defaultdict[str, list[Binding]], accounts: set[str]
) -> Iterator[tuple[tuple[str, ...], Binding]]:
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
            if binding.kind == "project" and binding.role in _AGENTS:
                agent, roles = _AGENTS[binding.role]
                yield from (((*through, agent), replace(binding, role=role)) for role in roles)


def _impersonated(binding: Binding, accounts: set[str]) -> list[str]:
    """Return the addresses of the accounts that a binding lets its member impersonate."""
    if binding.role not in ACTS_AS:
        return []
    if binding.kind == "account":
        return [binding.target.rpartition("/")[2]]
    if binding.kind != "project":
        return []
    domain = f"@{binding.target.rpartition('/')[2]}.iam.gserviceaccount.com"
    return sorted(address for address in accounts if address.endswith(domain))


Inputs = Mapping[str, Any]
#: Suffix of members that are a team (such as owners) of the dataset's project.
OWN_TEAM: Final = ":of the dataset's project"
#: Kind of an access list -> role of an entry -> equivalent IAM role.
#: https://docs.cloud.google.com/bigquery/docs/reference/rest/v2/datasets and
#: https://docs.cloud.google.com/storage/docs/access-control/iam#acls
ROLES: Final = {
    "dataset": {
        "READER": "roles/bigquery.dataViewer",
        "WRITER": "roles/bigquery.dataEditor",
        "OWNER": "roles/bigquery.dataOwner",
    },
    "bucket": {
        "READER": "roles/storage.legacyBucketReader",
        "WRITER": "roles/storage.legacyBucketWriter",
        "OWNER": "roles/storage.legacyBucketOwner",
    },
    "object": {
        "READER": "roles/storage.legacyObjectReader",
        "OWNER": "roles/storage.legacyObjectOwner",
    },
}
#: Predefined ACL -> entries in addition to those of the project's teams:
#: https://docs.cloud.google.com/storage/docs/access-control/lists#predefined-acl
PREDEFINED: Final = {
    "publicRead": ("READER:allUsers",),
    "publicReadWrite": ("WRITER:allUsers",),
    "authenticatedRead": ("READER:allAuthenticatedUsers",),
}
#: Special group of a dataset, or team of a project in an ACL -> kind of IAM member.
_TEAMS: Final = {"Owners": "projectOwner", "Writers": "projectEditor", "Editors": "projectEditor",
                 "Readers": "projectViewer", "Viewers": "projectViewer"}  # fmt: skip
_NAME: Final = re.compile(r"[\w.+%'&=~*@-]+")
_PARTS: Final = ("projectId", "datasetId", "tableId", "routineId")
#: Placeholder for the role of entries without a role, such as authorized views.
_NO_ROLE: Final = "access"


@dataclass(frozen=True, slots=True)
class ListedGrant:
    """An entry of an access list. ``role`` and ``member`` may be markers of unknown values."""

    role: Any
    member: Any
    kind: str
    """Kind of resource: dataset, bucket or object."""
    target: str
    """Name of the resource; ``bucket/name`` for an object."""
    condition: str = ""


def listed_grants(token: str, inputs: Inputs) -> Iterator[ListedGrant]:
    """Yield the entries of a resource's access list, if its type has an access list."""
    if token in _LISTS:
        yield from _LISTS[token](inputs)


def is_list(token: str) -> bool:
    """Return True if resources of a type are or have an access list."""
    return token in _LISTS


def grants_alone(token: str) -> bool:
    """Return True if resources of a type consist of an access list only."""
    return token in _LISTS and token != DATASET


def _of_dataset(inputs: Inputs) -> Iterator[ListedGrant]:
    entries = inputs.get("accesses")
    if entries is None:
        return
    target = str(inputs.get("datasetId", ""))
    if not isinstance(entries, list):
        yield ListedGrant(_NO_ROLE, entries, "dataset", target)
        return
    for entry in entries:
        yield from _dataset_entry(entry if isinstance(entry, Mapping) else {}, target)


def _dataset_entry(entry: Inputs, target: str) -> Iterator[ListedGrant]:
    role = _role("dataset", entry.get("role") or _NO_ROLE)
    condition = entry.get("condition")
    when = str(condition.get("expression", "")) if isinstance(condition, Mapping) else ""
    members = [
        _member(kind, entry[key])
        for key, kind in (
            ("userByEmail", "user"), ("groupByEmail", "group"), ("domain", "domain"),
            ("specialGroup", ""), ("iamMember", ""),
        )
        if entry.get(key)
    ]  # fmt: skip
    # https://docs.cloud.google.com/bigquery/docs/authorized-views: users read through them.
    for key in ("view", "routine", "dataset", "authorizedDataset"):
        if isinstance(resource := entry.get(key), Mapping):
            inner = resource.get("dataset")
            parts = inner if isinstance(inner, Mapping) else resource
            names = [str(parts[part]) for part in _PARTS if part in parts]
            members.append(f"{key.removeprefix('authorized').lower()}:{'.'.join(names)}")
    yield from (ListedGrant(role, member, "dataset", target, when) for member in members)


def _of_entity(kind: str, inputs: Inputs) -> Iterator[ListedGrant]:
    entity = inputs.get("entity")
    if entity is not None:
        role = _role(kind, inputs.get("role") or _NO_ROLE)
        yield ListedGrant(role, _of_acl(entity), kind, _target(kind, inputs))


def _of_acl_list(kind: str, inputs: Inputs) -> Iterator[ListedGrant]:
    target, listed = _target(kind, inputs), inputs.get("roleEntities")
    entries = list(listed) if isinstance(listed, list) else [] if listed is None else [listed]
    entries += PREDEFINED.get(str(inputs.get("predefinedAcl")), ())
    yield from _entries(kind, entries, target)
    yield from _entries("object", PREDEFINED.get(str(inputs.get("defaultAcl")), ()), f"{target}/*")


def _entries(kind: str, entries: Any, target: str) -> Iterator[ListedGrant]:
    for entry in entries:
        role, colon, entity = str(entry).partition(":")
        if isinstance(entry, str) and colon:
            yield ListedGrant(_role(kind, role), _of_acl(entity), kind, target)
        else:
            yield ListedGrant(_NO_ROLE, entry, kind, target)


def _target(kind: str, inputs: Inputs) -> str:
    bucket = str(inputs.get("bucket", ""))
    return f"{bucket}/{inputs.get('object') or '*'}" if kind == "object" else bucket


def _role(kind: str, role: Any) -> Any:
    return ROLES[kind].get(role, role) if isinstance(role, str) else role


def _of_acl(entity: Any) -> Any:
    """Convert an ACL's entity, like ``user-kim@example.com``, to an IAM member."""
    if not isinstance(entity, str) or entity in PUBLIC_MEMBERS:
        return entity
    kind, dash, name = entity.partition("-")
    if kind == "project":
        team, _, number = name.partition("-")
        return f"{_TEAMS.get(team.capitalize(), kind)}:{number}"
    return _member(kind, name) if dash else entity


def _member(kind: str, name: Any) -> Any:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return name  # `name` is an IAM member, or a marker of an unknown value
    if kind == "user" and name.endswith(".gserviceaccount.com"):
        kind = "serviceAccount"
    if not kind and (team := _TEAMS.get(name.removeprefix("project"))):
        return f"{team}{OWN_TEAM}"
    return f"{kind}:{name}" if kind else name


_LISTS: Final[dict[str, Callable[[Inputs], Iterator[ListedGrant]]]] = {
    DATASET: _of_dataset,
    "gcp:bigquery/datasetAccess:DatasetAccess": lambda i: _of_dataset(
        {"datasetId": i.get("datasetId", ""), "accesses": [i]}
    ),
    "gcp:storage/bucketAccessControl:BucketAccessControl": lambda i: _of_entity("bucket", i),
    "gcp:storage/bucketACL:BucketACL": lambda i: _of_acl_list("bucket", i),
    **{
        f"gcp:storage/{name[0].lower()}{name[1:]}:{name}": lambda i: _of_entity("object", i)
        for name in ("ObjectAccessControl", "DefaultObjectAccessControl")
    },
    **{
        f"gcp:storage/{name[0].lower()}{name[1:]}:{name}": lambda i: _of_acl_list("object", i)
        for name in ("ObjectACL", "DefaultObjectACL")
    },
}


Block = ipaddress.IPv4Network | ipaddress.IPv6Network
Direction = Literal["INGRESS", "EGRESS"]
#: Ranges with every address: default of a rule without ranges.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")
#: Half of the addresses of the internet; all of IPv6 are in ``2000::/3``:
#: https://www.iana.org/assignments/ipv6-address-space
_HALF: Final = {4: 2**31, 6: 2**124}


def open_ranges(inputs: Mapping[str, Any] | None, direction: Direction) -> tuple[str, ...]:
    """Return ranges with which an enabled rule of this direction allows any address."""
    if not inputs or not inputs.get("allows") or inputs.get("disabled") is True:
        return ()
    is_egress = inputs.get("direction") == "EGRESS"
    if is_egress != (direction == "EGRESS"):
        return ()
    # A rule without sources or destinations applies to all of them:
    # https://docs.cloud.google.com/firewall/docs/firewalls
    if is_egress:
        return covering(inputs.get("destinationRanges") or ANYWHERE)
    named = any(map(inputs.get, ("sourceTags", "sourceServiceAccounts")))
    return covering(inputs.get("sourceRanges") or (() if named else ANYWHERE))


def reaches_anywhere(inputs: Mapping[str, Any] | None) -> bool:
    """Return True if a rule allows egress to any address, or ingress to all machines."""
    if not inputs or not inputs.get("allows") or inputs.get("disabled") is True:
        return False
    return bool(covering(inputs.get("destinationRanges")) or open_ranges(inputs, "EGRESS"))


def covering(ranges: Any) -> tuple[str, ...]:
    """Return the ranges that cover at least half of the internet's addresses.

    Returns single ranges that are large enough, or else ranges that are large enough together.
    """

    def is_half(blocks: Sequence[Any]) -> bool:
        addresses = sum(block.num_addresses for block in ipaddress.collapse_addresses(blocks))
        return addresses >= _HALF[blocks[0].version]

    listed = ranges if isinstance(ranges, list | tuple) else ()
    blocks = [(str(text), parsed) for text in listed if (parsed := _block(text))]
    if alone := tuple(text for text, block in blocks if is_half([block])):
        return alone
    versions = [[item for item in blocks if item[1].version == version] for version in (4, 6)]
    together = (same for same in versions if same and is_half([block for _, block in same]))
    return tuple(text for same in together for text, _ in same)


def _block(text: Any) -> Block | None:
    try:
        return ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return None  # the value is unknown in a preview
