"""Constraints of organization policies, and what each would stop of a stack. Pure.

A constraint is a row of ``CONSTRAINTS``: which resources it judges, by the policy of which project.
What a constraint says is on https://docs.cloud.google.com/resource-manager/docs/organization-policy/org-policy-constraints
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.resource_types import (
    ACCOUNT,
    BUCKET,
    CONNECTION,
    ENDPOINT,
    IAM_TYPE,
    MODEL_VERSION,
    REPOSITORY,
    RESERVATION,
    SECRET,
    TENSORBOARD,
)
from vertex_training.naming import PUBLIC_MEMBERS
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.preflight.effective_policy import (
    Match,
    match_location,
    match_nothing,
    match_path,
    match_value,
)

SERVICE: Final = "gcp:projects/service:Service"
SERVICE_PROJECT: Final = "gcp:compute/sharedVPCServiceProject:SharedVPCServiceProject"
NAT: Final = "gcp:compute/routerNat:RouterNat"
INSTANCE: Final = "gcp:compute/instance:Instance"
_MEMBERS: Final = ("user", "group", "domain")
#: The organization of Google's projects for private services access, as public configurations name
#: it; Google's pages do not.
GOOGLE_PRODUCERS: Final = "organizations/433637338589"
#: What is encrypted by a key of one's own, and whose API a policy names for it.
_ENCRYPTED: Final = {
    BUCKET: "storage.googleapis.com",
    REPOSITORY: "artifactregistry.googleapis.com",
    SECRET: "secretmanager.googleapis.com",
    TENSORBOARD: "aiplatform.googleapis.com",
    ENDPOINT: "aiplatform.googleapis.com",
    MODEL_VERSION: "aiplatform.googleapis.com",
}
_KEY: Final = re.compile(r"(projects/[^/]+)/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_EMAIL: Final = re.compile(r"[^@]+@([^.]+)\.iam\.gserviceaccount\.com")


@dataclass(frozen=True, slots=True)
class Subject:
    """A resource that a constraint judges."""

    resource: str
    """As a message names it."""
    project: str
    """Id of the project whose policy judges it."""
    covers: Match = match_nothing
    """For a list: whether one of its values covers the resource."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint."""

    name: str
    stops: str
    """What is refused to a resource that it stops."""
    subjects: Callable[[DeclaredStack], Iterator[Subject]]
    mend: str
    """What to change in the stack instead of the policy; empty if that is nothing."""
    is_list: bool = True
    """Whether it lists values; else it is enforced or not."""


def _named(resource: DeclaredResource) -> str:
    known = resource_types.find(resource.type)
    word = known.word or resource.type.rpartition(":")[2]
    return f"{word} {resource.inputs.get(known.name) or resource.name}"


def _owner(declared: DeclaredStack, resource: DeclaredResource) -> str:
    return str(resource.inputs.get("project") or declared.stack.settings.project)


def _paths_of(declared: DeclaredStack, project: str) -> tuple[str, ...]:
    """A project by its id, and by its number where the stack file has it."""
    settings = declared.stack.settings
    numbers = {settings.project: settings.project_number}
    if host := settings.shared_vpc:
        numbers[host.host_project] = host.host_project_number
    return (f"projects/{project}", f"projects/{numbers.get(project, project)}")


def _of_type(declared: DeclaredStack, *types: str) -> Iterator[tuple[DeclaredResource, str]]:
    """Resources of these types, and their projects."""
    for each in declared.resources:
        if each.type in types:
            yield each, _owner(declared, each)


def _locations(declared: DeclaredStack) -> Iterator[Subject]:
    for each in declared.resources:
        if IAM_TYPE.search(each.type):
            continue  # where it is says its resource
        replicas = ((each.inputs.get("replication") or {}).get("userManaged") or {}).get("replicas")
        found = [each.inputs.get(key) for key in ("location", "region", "zone")]
        found += [replica.get("location") for replica in replicas or ()]
        for location in filter(None, found):
            what = f"{_named(each)} in {str(location).lower()}"
            yield Subject(what, _owner(declared, each), match_location(str(location)))
    settings = declared.stack.settings
    for key in declared.requests:
        where = match_location(settings.region)
        yield Subject(f"job {key} in {settings.region}", settings.project, where)


def _apis(declared: DeclaredStack) -> Iterator[Subject]:
    for each, project in _of_type(declared, SERVICE):
        name = str(each.inputs.get("service"))
        yield Subject(f"API {name}", project, match_value(name))


def _accounts_elsewhere(declared: DeclaredStack) -> Iterator[Subject]:
    """Jobs that run as an account of another project, by the policy of the account's project."""
    for key, request in declared.requests.items():
        found = _EMAIL.fullmatch(request.account)
        if found and found[1] != declared.stack.settings.project:
            yield Subject(f"job {key} as {request.account}", found[1])


def _accounts(declared: DeclaredStack) -> Iterator[Subject]:
    for each, project in _of_type(declared, ACCOUNT):
        yield Subject(f"account {each.inputs.get('accountId')}", project)


def _connections(declared: DeclaredStack) -> Iterator[Subject]:
    def covers(value: str) -> bool | None:
        return True if value.removeprefix("under:") == GOOGLE_PRODUCERS else None

    network = declared.stack.network
    for _, _ in _of_type(declared, CONNECTION):
        owner = network.project if network else declared.stack.settings.project
        yield Subject("peering with servicenetworking.googleapis.com", owner, covers)


def _fine_grained_buckets(declared: DeclaredStack) -> Iterator[Subject]:
    for each, project in _of_type(declared, BUCKET):
        if each.inputs.get("uniformBucketLevelAccess") is not True:
            yield Subject(_named(each), project)


def _public_buckets(declared: DeclaredStack) -> Iterator[Subject]:
    for each in declared.resources:
        if resource_types.granting(each.type).grants_on == "bucket":
            for member in _members(each.inputs):
                if member in PUBLIC_MEMBERS:
                    what = f"{member} of bucket {each.inputs.get('bucket')}"
                    yield Subject(what, _owner(declared, each))


def _soft_deletion(declared: DeclaredStack) -> Iterator[Subject]:
    for each, project in _of_type(declared, BUCKET):
        policy = each.inputs.get("softDeletePolicy") or {}
        seconds = str(int(policy.get("retentionDurationSeconds", 604800)))  # Google's default
        yield Subject(f"{_named(each)} ({seconds} s)", project, match_value(seconds))


def _instances(declared: DeclaredStack) -> Iterator[Subject]:
    """Machines with a boot image. Those of jobs are Google's."""
    for each, project in _of_type(declared, INSTANCE):
        disk = each.inputs.get("bootDisk") or {}
        image = str((disk.get("initializeParams") or {}).get("image") or "")
        owner = image.partition("projects/")[2] or image
        if "/" in owner:
            covers = match_path(f"projects/{owner.partition('/')[0]}")
            yield Subject(f"{_named(each)} of {image}", project, covers)


def _members(inputs: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, filter(None, [inputs.get("member"), *(inputs.get("members") or ())]))


def _foreign_members(declared: DeclaredStack) -> Iterator[Subject]:
    """People, groups and everybody: accounts of the organization's projects belong to it."""
    seen = set[tuple[str, str]]()
    for each in declared.resources:
        for member in _members(each.inputs):
            project = _owner(declared, each)
            if member.partition(":")[0] in (*_MEMBERS, *PUBLIC_MEMBERS):
                if (member, project) not in seen:
                    yield Subject(f"member {member}", project, _match_member(member))
                seen.add((member, project))


def _match_member(member: str) -> Match:
    """A member is named itself; whether it is of a customer or of a set cannot be asked."""

    def covers(value: str) -> bool | None:
        is_member = value.partition(":")[0] in (*_MEMBERS, "serviceAccount")
        return value == member if member in PUBLIC_MEMBERS or is_member else None

    return covers


def _shared_reservations(declared: DeclaredStack) -> Iterator[Subject]:
    for each, project in _of_type(declared, RESERVATION):
        if (each.inputs.get("shareSettings") or {}).get("shareType", "LOCAL") != "LOCAL":
            yield Subject(_named(each), project, match_path(*_paths_of(declared, project)))


def _without_key(declared: DeclaredStack) -> Iterator[Subject]:
    for each, project in _of_type(declared, *_ENCRYPTED):
        if not _key_of(each.inputs):
            yield Subject(_named(each), project, match_value(_ENCRYPTED[each.type]))
    for key, request in declared.requests.items():
        if not _key_of(request.message):
            covers = match_value("aiplatform.googleapis.com")
            yield Subject(f"job {key}", declared.stack.settings.project, covers)


def _with_key(declared: DeclaredStack) -> Iterator[Subject]:
    found = [(_named(each), owner, each.inputs) for each, owner in _of_type(declared, *_ENCRYPTED)]
    project = declared.stack.settings.project
    found += [(f"job {key}", project, job.message) for key, job in declared.requests.items()]
    for name, owner, values in found:
        if key := _key_of(values):
            yield Subject(f"{name} with {key}", owner, match_path(*_key_paths(declared, key)))


def _key_paths(declared: DeclaredStack, key: str) -> list[str]:
    _, project, rest = key.split("/", 2)
    return [f"{path}/{rest}" for path in _paths_of(declared, project)]


def _key_of(values: Any) -> str:
    """The key that a document names, however deep."""
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list):
        return next(filter(None, map(_key_of, values)), "")
    return values if isinstance(values, str) and _KEY.fullmatch(values) else ""


def _hosts(declared: DeclaredStack) -> Iterator[Subject]:
    for each, _ in _of_type(declared, SERVICE_PROJECT):
        host, project = str(each.inputs["hostProject"]), str(each.inputs["serviceProject"])
        yield Subject(f"host project {host}", project, match_path(*_paths_of(declared, host)))


def _shared_subnets(declared: DeclaredStack) -> Iterator[Subject]:
    network = declared.stack.network
    if network and network.host and network.subnet:
        project = declared.stack.settings.project
        yield Subject(f"subnet {network.subnet}", project, match_path(network.subnet))


def _nats(declared: DeclaredStack) -> Iterator[Subject]:
    network = declared.stack.network
    for each, project in _of_type(declared, NAT):
        path = network.subnet if network and network.subnet else f"projects/{project}"
        yield Subject(_named(each), project, match_path(path))


CONSTRAINTS: Final = (
    Constraint(
        "iam.disableCrossProjectServiceAccountUsage",
        "the job is refused: its account may not be used in another project",
        _accounts_elsewhere,
        "take an account of the stack's project under serviceAccounts",
        is_list=False,
    ),
    Constraint(
        "iam.disableServiceAccountCreation",
        "the creation is refused",
        _accounts,
        "name one that exists: serviceAccounts.KEY.existing",
        is_list=False,
    ),
    Constraint("gcp.resourceLocations", "the creation is refused", _locations, "another region"),
    Constraint("gcp.restrictServiceUsage", "its calls are refused", _apis, ""),
    Constraint(
        "compute.restrictVpcPeering",
        "the connection is refused",
        _connections,
        f"allow under:{GOOGLE_PRODUCERS}, or network: {{mode: psc}}",
    ),
    Constraint(
        "storage.uniformBucketLevelAccess",
        "the creation is refused: access is not uniform",
        _fine_grained_buckets,
        "uniformBucketLevelAccess: true",
        is_list=False,
    ),
    Constraint(
        "storage.publicAccessPrevention",
        "the grant is refused: it makes the bucket public",
        _public_buckets,
        "grant to a group instead",
        is_list=False,
    ),
    Constraint(
        "storage.softDeletePolicySeconds",
        "the creation is refused: deleted objects are kept for another time",
        _soft_deletion,
        "softDeleteDays of the buckets",
    ),
    Constraint("compute.trustedImageProjects", "the machine is refused", _instances, ""),
    Constraint(
        "iam.allowedPolicyMemberDomains",
        "the grant is refused unless its domain is one of those",
        _foreign_members,
        "members of the organization",
    ),
    Constraint(
        "iam.managed.allowedPolicyMembers",
        "the grant is refused unless the member belongs to one of those",
        _foreign_members,
        "members of the organization",
    ),
    Constraint(
        "compute.sharedReservationsOwnerProjects",
        "the reservation is refused: its project may not own shared ones",
        _shared_reservations,
        "leave shareWith out",
    ),
    Constraint(
        "gcp.restrictNonCmekServices",
        "the creation is refused without a key",
        _without_key,
        "encryption: {key: projects/P/locations/L/keyRings/R/cryptoKeys/K}",
    ),
    Constraint(
        "gcp.restrictCmekCryptoKeyProjects",
        "the creation is refused: its key is of another project",
        _with_key,
        "a key of one of those projects",
    ),
    Constraint(
        "compute.restrictSharedVpcHostProjects", "the attachment to the host is refused", _hosts, ""
    ),
    Constraint(
        "compute.restrictSharedVpcSubnetworks", "its use by jobs is refused", _shared_subnets, ""
    ),
    Constraint("compute.restrictCloudNATUsage", "the gateway is refused", _nats, "nat: false"),
)
