"""Checks that the organization policies in effect allow the stack's resources.

``CONSTRAINTS`` lists constraints that new organizations enforce or that often prevent training. The
answer is "unknown" if the members of a policy's value, such as the projects of a folder, cannot be
read.

https://docs.cloud.google.com/resource-manager/docs/reference/orgpolicy/rest/v2/projects.policies/getEffectivePolicy
https://docs.cloud.google.com/resource-manager/docs/organization-policy/defining-locations
https://docs.cloud.google.com/resource-manager/docs/organization-policy/org-policy-constraints
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from vertex_training.catalog import machines, resource_types
from vertex_training.errors import counted
from vertex_training.naming import PUBLIC_MEMBERS
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredResource, DeclaredStack
from vertex_training_cli.preflight.context import Answer, PreflightContext, answered, question
from vertex_training_cli.preflight.rights import SERVICE

#: Maximum number of resources that an answer lists; further resources are counted.
SHOWN: Final = 12
_MEMBERS: Final = ("user", "group", "domain")
#: Organization of Google's projects for private services access. Source: public configurations,
#: because Google does not document the organization.
GOOGLE_PRODUCERS: Final = "organizations/433637338589"
#: Type with customer-managed encryption -> its API's name in policies.
_ENCRYPTED: Final = {
    resource_types.BUCKET: "storage.googleapis.com",
    resource_types.REPOSITORY: "artifactregistry.googleapis.com",
    resource_types.SECRET: "secretmanager.googleapis.com",
    resource_types.TENSORBOARD: "aiplatform.googleapis.com",
    resource_types.ENDPOINT: "aiplatform.googleapis.com",
    resource_types.MODEL_VERSION: "aiplatform.googleapis.com",
}
_KEY: Final = re.compile(r"(projects/[^/]+)/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+")
_EMAIL: Final = re.compile(r"[^@]+@([^.]+)\.iam\.gserviceaccount\.com")
#: Function that returns True if a value of a policy's list matches a resource, None if unknown.
Match = Callable[[str], bool | None]


@dataclass(frozen=True, slots=True)
class Subject:
    """A resource that a constraint applies to."""

    resource: str
    project: str
    """Id of the project whose policy applies."""
    covers: Match | None = None
    """Function that matches values of the policy; None for a constraint without values."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint of Google Cloud, and the resources that it applies to."""

    name: str
    stops: str
    subjects: Callable[[DeclaredStack], Iterator[Subject]]
    mend: str
    """Change of the stack file that satisfies the policy; empty if no change can."""


def check_policies(context: PreflightContext) -> Iterator[Answer]:
    """Yield an answer for each constraint and each project with resources under the constraint.

    Policies apply to the creation of resources, so existing resources are omitted. They also apply
    to each call of an API, so enabled APIs are included.
    """
    remaining = tuple(
        e for e in context.declared.resources if e.type == SERVICE or not context.is_made(e)
    )
    declared = dataclasses.replace(context.declared, resources=remaining)
    for constraint in CONSTRAINTS:
        subjects = sorted(constraint.subjects(declared), key=attrgetter("project"))
        for project, judged in groupby(subjects, key=attrgetter("project")):
            yield from _judge(context, constraint, project, list(judged))


@answered
def _judge(
    context: PreflightContext, constraint: Constraint, project: str, subjects: Sequence[Subject]
) -> Answer:
    asked = question(f"project {project}", f"policy {constraint.name}")
    read = rest.ORGANIZATION_POLICY
    document = context.client.get(read, asked, project, constraint.name)
    if document is None:
        return asked.unknown("the project or the constraint does not exist", read.permission)
    policy = EffectivePolicy.parse(document)
    allowed = [(policy.allows(subject), subject) for subject in subjects]
    stopped = [value for verdict, value in allowed if verdict is False]
    unclear = [value for verdict, value in allowed if verdict is None]
    mend = f"request an exception for projects/{project} from the organization's administrator"
    mend += f"; or {constraint.mend}" if constraint.mend else ""
    if stopped:
        return asked.refused(str(policy), f"{_shown(stopped)}: {constraint.stops}", mend)
    if unclear:
        return asked.unknown(f"{policy}: unknown for {_shown(unclear)}", mend=mend)
    return asked.ok(f"{policy}: allows {counted(len(subjects), 'resource')}")


def _shown(subjects: Sequence[Subject]) -> str:
    names = list(dict.fromkeys(subject.resource for subject in subjects))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    """The effective policy of a project."""

    enforced: bool
    deny_all: bool
    allowed: tuple[str, ...]
    denied: tuple[str, ...]

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> EffectivePolicy:
        """Return the policy in a response of ``getEffectivePolicy``."""
        rules = (document.get("spec") or {}).get("rules") or ()
        values = [rule.get("values") or {} for rule in rules]
        return cls(
            any(rule.get("enforce") for rule in rules),
            any(rule.get("denyAll") for rule in rules),
            tuple(text for value in values for text in value.get("allowedValues") or ()),
            tuple(text for value in values for text in value.get("deniedValues") or ()),
        )

    def allows(self, subject: Subject) -> bool | None:
        """Return True if the policy allows a resource; None if this is unknown."""
        if subject.covers is None:
            return not self.enforced
        denials = [subject.covers(value.removeprefix("is:")) for value in self.denied]
        allowances = [subject.covers(value.removeprefix("is:")) for value in self.allowed] or [True]
        if self.deny_all or True in denials:
            return False
        if True in allowances:
            return None if None in denials else True
        return None if None in allowances else False

    def __str__(self) -> str:
        """Return a summary of the policy."""
        if self.deny_all:
            return "all denied"
        parts = ["enforced"] if self.enforced else []
        for word, values in (("allowed", self.allowed), ("denied", self.denied)):
            parts += [f"{word}: {', '.join(values)}"] if values else []
        return "; ".join(parts) or "no restriction"


def _match_value(name: str) -> Match:
    return lambda value: value == name


def _match_path(*paths: str) -> Match:
    def covers(value: str) -> bool | None:
        above = value.removeprefix("under:")
        if any(path == above or path.startswith(f"{above}/") for path in paths):
            return True
        return None if above.startswith(("folders/", "organizations/")) else False

    return covers


def _match_location(location: str) -> Match:
    parts = location.lower().split("-")
    region = "-".join(parts[:2])
    elsewhere = {name for place in machines.regions() for name in (place, place.partition("-")[0])}

    def covers(value: str) -> bool | None:
        value = value.lower()
        if value.startswith("in:"):
            group = value.removeprefix("in:").removesuffix("-locations")
            return True if group in (parts[0], region) else False if group in elsewhere else None
        if len(parts) > 2 and value == region:
            return None  # Google does not document if a region includes its zones.
        return value == location.lower()

    return covers


def _match_member(member: str) -> Match:
    def covers(value: str) -> bool | None:
        is_member = value.partition(":")[0] in (*_MEMBERS, "serviceAccount")
        return value == member if member in PUBLIC_MEMBERS or is_member else None

    return covers


def _named(resource: DeclaredResource) -> str:
    known = resource_types.find(resource.type)
    word = known.word or resource.type.rpartition(":")[2]
    return f"{word} {resource.inputs.get(known.name) or resource.name}"


def _owner(declared: DeclaredStack, resource: DeclaredResource) -> str:
    return str(resource.inputs.get("project") or declared.stack.settings.project)


def _of_type(
    declared: DeclaredStack, types: Iterable[str]
) -> Iterator[tuple[DeclaredResource, str]]:
    for resource in declared.resources:
        if resource.type in types:
            yield resource, _owner(declared, resource)


def _locations(declared: DeclaredStack) -> Iterator[Subject]:
    for resource in declared.resources:
        if resource_types.IAM_TYPE.search(resource.type):
            continue  # The resource of the grant has the location.
        replicas = resource_types.value_at(resource.inputs, "replication.userManaged.replicas")
        locations = [resource.inputs.get(key) for key in ("location", "region", "zone")]
        locations += [replica.get("location") for replica in replicas or ()]
        for location in filter(None, locations):
            what = f"{_named(resource)} in {str(location).lower()}"
            yield Subject(what, _owner(declared, resource), _match_location(str(location)))
    settings = declared.stack.settings
    for key in declared.requests:
        where = _match_location(settings.region)
        yield Subject(f"job {key} in {settings.region}", settings.project, where)


def _apis(declared: DeclaredStack) -> Iterator[Subject]:
    for service, project in _of_type(declared, [SERVICE]):
        name = str(service.inputs.get("service"))
        yield Subject(f"API {name}", project, _match_value(name))


def _accounts_elsewhere(declared: DeclaredStack) -> Iterator[Subject]:
    for key, request in declared.requests.items():
        address = _EMAIL.fullmatch(request.account)
        if address and address[1] != declared.stack.settings.project:
            yield Subject(f"job {key} as {request.account}", address[1])


def _accounts(declared: DeclaredStack) -> Iterator[Subject]:
    for account, project in _of_type(declared, [resource_types.ACCOUNT]):
        yield Subject(f"account {account.inputs.get('accountId')}", project)


def _connections(declared: DeclaredStack) -> Iterator[Subject]:
    def covers(value: str) -> bool | None:
        return True if value.removeprefix("under:") == GOOGLE_PRODUCERS else None

    network = declared.stack.network
    for _ in _of_type(declared, [resource_types.CONNECTION]):
        owner = network.project if network else declared.stack.settings.project
        yield Subject("peering with servicenetworking.googleapis.com", owner, covers)


def _foreign_members(declared: DeclaredStack) -> Iterator[Subject]:
    seen = set[tuple[str, str]]()
    for resource in declared.resources:
        members = [resource.inputs.get("member"), *(resource.inputs.get("members") or ())]
        for member in map(str, filter(None, members)):
            project = _owner(declared, resource)
            if member.partition(":")[0] in (*_MEMBERS, *PUBLIC_MEMBERS):
                if (member, project) not in seen:
                    yield Subject(f"member {member}", project, _match_member(member))
                seen.add((member, project))


def _shared_reservations(declared: DeclaredStack) -> Iterator[Subject]:
    settings = declared.stack.settings
    numbers = {settings.project: settings.project_number}
    if host := settings.shared_vpc:
        numbers[host.host_project] = host.host_project_number
    for reservation, project in _of_type(declared, [resource_types.RESERVATION]):
        if (reservation.inputs.get("shareSettings") or {}).get("shareType", "LOCAL") != "LOCAL":
            paths = (f"projects/{project}", f"projects/{numbers.get(project, project)}")
            yield Subject(_named(reservation), project, _match_path(*paths))


def _without_key(declared: DeclaredStack) -> Iterator[Subject]:
    for resource, project in _of_type(declared, _ENCRYPTED):
        if not _has_key(resource.inputs):
            yield Subject(_named(resource), project, _match_value(_ENCRYPTED[resource.type]))
    for key, request in declared.requests.items():
        if not _has_key(request.message):
            covers = _match_value("aiplatform.googleapis.com")
            yield Subject(f"job {key}", declared.stack.settings.project, covers)


def _has_key(values: Any) -> bool:
    if isinstance(values, Mapping):
        values = list(values.values())
    if isinstance(values, list):
        return any(map(_has_key, values))
    return isinstance(values, str) and bool(_KEY.fullmatch(values))


CONSTRAINTS: Final = (
    Constraint(
        "iam.disableCrossProjectServiceAccountUsage",
        "the job is refused: its account cannot be used in another project",
        _accounts_elsewhere,
        "use an account of the stack's project under serviceAccounts",
    ),
    Constraint(
        "iam.disableServiceAccountCreation",
        "the creation is refused",
        _accounts,
        "use an existing account: serviceAccounts.KEY.existing",
    ),
    Constraint(
        "gcp.resourceLocations", "the creation is refused", _locations, "use another region"
    ),
    Constraint("gcp.restrictServiceUsage", "calls of the API are refused", _apis, ""),
    Constraint(
        "compute.restrictVpcPeering",
        "the connection is refused",
        _connections,
        f"allow under:{GOOGLE_PRODUCERS}, or set network.mode to psc",
    ),
    Constraint(
        "iam.allowedPolicyMemberDomains",
        "the grant is refused unless the policy allows its domain",
        _foreign_members,
        "use members of the organization",
    ),
    Constraint(
        "compute.sharedReservationsOwnerProjects",
        "the reservation is refused: its project cannot own shared reservations",
        _shared_reservations,
        "remove shareWith from the reservation in the stack file",
    ),
    Constraint(
        "gcp.restrictNonCmekServices",
        "the creation without an encryption key is refused",
        _without_key,
        "set encryption.key to projects/P/locations/L/keyRings/R/cryptoKeys/K",
    ),
)
