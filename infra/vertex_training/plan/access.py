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
from functools import partial
from typing import Any, Final, Literal

from vertex_training import catalog
from vertex_training.catalog.resource_types import DATASET, words_of_data
from vertex_training.naming import BASIC_ROLES, PUBLIC_MEMBERS

_FACTS: Final = catalog.load("access.yaml")
#: Roles on an account or project that let a member act as the account.
ACTS_AS: Final = (
    *_FACTS["acts_as"]["roles"],
    *(role for role, verb in BASIC_ROLES.items() if verb == "writes"),
)
#: Account of jobs without ``serviceAccount``.
AGENT: Final = "Custom Code Service Agent"
#: Role on a project -> row of an account that a member with the role can use.
_AGENTS: Final = {role: row for row in _FACTS["agents"] for role in row["by"]}
#: Roles on a project that let a member submit jobs.
SUBMITS: Final = tuple(role for role, row in _AGENTS.items() if row["account"] == AGENT)
#: Prefix of a role on a project -> data that the role gives access to.
IN_PROJECT: Final = _FACTS["in_project"] | dict.fromkeys(BASIC_ROLES, "everything")
#: Role -> verb for reports. Other roles are shown by name.
VERBS: Final[Mapping[str, str]] = _FACTS["verbs"] | BASIC_ROLES


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
    """Addresses of accounts, or names from ``access.yaml``; empty for a direct grant."""


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
                row = _AGENTS[binding.role]
                chain = (*through, row["account"])
                yield from ((chain, replace(binding, role=role)) for role in row["roles"])


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
    entries += _FACTS["predefined"].get(str(inputs.get("predefinedAcl")), ())
    yield from _entries(kind, entries, target)
    yield from _entries(
        "object", _FACTS["predefined"].get(str(inputs.get("defaultAcl")), ()), f"{target}/*"
    )


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
    return _FACTS["lists"][kind].get(role, role) if isinstance(role, str) else role


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
    "gcp:storage/bucketAccessControl:BucketAccessControl": partial(_of_entity, "bucket"),
    "gcp:storage/objectAccessControl:ObjectAccessControl": partial(_of_entity, "object"),
    "gcp:storage/defaultObjectAccessControl:DefaultObjectAccessControl": partial(
        _of_entity, "object"
    ),
    "gcp:storage/bucketACL:BucketACL": partial(_of_acl_list, "bucket"),
    "gcp:storage/objectACL:ObjectACL": partial(_of_acl_list, "object"),
    "gcp:storage/defaultObjectACL:DefaultObjectACL": partial(_of_acl_list, "object"),
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
