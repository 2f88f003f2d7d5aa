"""All grants that the stack may make, with reasons, and the grants of other teams.

A :class:`GrantRequest` must be in the table ``ALLOWED``, unless the stack file requests the role by
name. An external grant is on a resource in a project that the stack does not manage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vertex_training import catalog
from vertex_training.catalog import resource_types
from vertex_training.settings.model import Settings
from vertex_training.settings.network import SharedVpc

READ_OBJECTS: Final = "roles/storage.objectViewer"
WRITE_OBJECTS: Final = "roles/storage.objectUser"
ADD_OBJECTS: Final = "roles/storage.objectCreator"
READ_SECRET: Final = "roles/secretmanager.secretAccessor"
ACT_AS: Final = "roles/iam.serviceAccountUser"
CREATE_TOKENS: Final = "roles/iam.serviceAccountTokenCreator"
WRITE_LOGS: Final = "roles/logging.logWriter"
READ_LOGS: Final = "roles/logging.viewer"
EDIT_BUILDS: Final = "roles/cloudbuild.builds.editor"
PUSH_IMAGES: Final = "roles/artifactregistry.writer"
PULL_IMAGES: Final = "roles/artifactregistry.reader"
REPORT_STATES: Final = "roles/batch.agentReporter"
SUBMIT_TO_BATCH: Final = "roles/batch.jobsEditor"
CALL_VERTEX: Final = "roles/aiplatform.user"
NETWORK_USER: Final = "roles/compute.networkUser"
NETWORK_ADMIN: Final = "roles/compute.networkAdmin"
DNS_PEER: Final = "roles/dns.peer"
USE_KEY: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
SEE_RESERVATION: Final = "roles/compute.viewer"
READ_TABLES: Final = "roles/bigquery.readSessionUser"

#: Type of the component with grants that a stack file requests by name.
EXTRA_GRANTS: Final = "vertextraining:iam:ExtraGrants"


@dataclass(frozen=True, slots=True)
class AllowedGrant:
    """A grant that the stack may make. ``type`` is the type of its Pulumi resource."""

    type: str
    role: str
    why: str
    source: str
    narrowest: str = ""
    """Reason why a grant on less than the whole project is impossible."""


ALLOWED: Final = tuple(AllowedGrant(**row) for row in catalog.load("grants.yaml")["allowed"])
#: Grants on accounts of other projects. Only the owners of these projects can make the grants.
EXTERNAL: Final = tuple(AllowedGrant(**row) for row in catalog.load("grants.yaml")["external"])

_BY_KIND: Final = {(grant.type, grant.role): grant for grant in ALLOWED}


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a grant: a title and a CEL expression."""

    title: str
    expression: str


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """A grant that a stack needs. Raises ValueError if no table allows the grant."""

    key: str
    """Suffix of the resource name; unique in a component."""
    type: str
    """Type token of the grant's resource."""
    role: str
    member: str
    project: str
    resource: str = ""
    """Full name of the granted subnet, key, repository, bucket (``b/NAME``), secret, account or
    dataset; empty for a grant on the project."""
    ours: bool = True
    """True if the stack makes the grant; False if the owner of another project must."""
    asked_for: bool = False
    """True if the stack file requests the role by name."""
    condition: Condition | None = None

    def __post_init__(self) -> None:
        if not self.asked_for and not reason(self.type, self.role):
            raise ValueError(f"table ALLOWED has no row for {self.role} with {self.type}")

    @property
    def place(self) -> str:
        """Return the resource on which the role is granted."""
        return self.resource or f"projects/{self.project}"


def find(type_token: str, role: str) -> AllowedGrant | None:
    """Return the row for a role and a type of grant; None if the table has no row."""
    return _BY_KIND.get((type_token, role))


def reason(type_token: str, role: str) -> str:
    """Return the reason for granting ``role`` by this type of grant; empty if not allowed."""
    known = (*ALLOWED, *EXTERNAL)
    return next((row.why for row in known if (row.type, row.role) == (type_token, role)), "")


HEAD: Final = ("PROJECT", "ON", "ROLE", "TO")
#: Type of a grant -> gcloud command, for resources without a location.
BY_NAME: Final = {
    resource_types.ON_BUCKET: "storage buckets add-iam-policy-binding gs://{name} "
    "--project={project}",
    resource_types.ON_SECRET: "secrets add-iam-policy-binding {name} --project={project}",
    resource_types.ON_ACCOUNT: "iam service-accounts add-iam-policy-binding {name} "
    "--project={project}",
}
#: Organization policy that lists projects with shared reservations; empty by default.
SHARING_POLICY: Final = "compute.sharedReservationsOwnerProjects"


def report(settings: Settings, grants: Sequence[GrantRequest]) -> str:
    """Return external grants as a table with commands; empty if no other team must act."""
    external = [grant for grant in grants if not grant.ours]
    host = settings.shared_vpc
    steps = _steps(settings, host) if host and not host.manage_host else []
    sharing = _sharing(settings)
    if not external and not steps:
        return sharing
    hosts = [host.host_project] if host and not host.manage_host else []
    projects = ", ".join(dict.fromkeys([*(g.project for g in external), *hosts]))
    lines = [f"Before jobs of this stack can run, the owners of {projects} must grant:", ""]
    if external:
        why = {g.role: reason(g.type, g.role) or "requested by the stack file" for g in external}
        lines += [*_table(external), "", *(f"{role}: {text}" for role, text in why.items()), ""]
    lines += [*steps, *(command(grant) for grant in external)]
    return "\n".join([*lines, *(["", sharing] if sharing else [])])


def command(grant: GrantRequest) -> str:
    """Return the command that makes a grant."""
    member = grant.member.replace("'", "'\"'\"'")  # quote the member for the shell
    to = f"--member='{member}' --role={grant.role}"
    if grant.type == resource_types.ON_SUBNET:
        _, _, _, region, _, subnet = grant.resource.split("/")
        return (
            f"gcloud compute networks subnets add-iam-policy-binding {subnet} "
            f"--project={grant.project} --region={region} {to}"
        )
    if grant.type in BY_NAME:
        name = grant.resource.rpartition("/")[2]
        command = BY_NAME[grant.type].format(name=name, project=grant.project)
        return f"gcloud {command} {to}"
    if grant.type == resource_types.ON_DATASET:
        dataset = grant.resource.rpartition("/")[2]
        # https://docs.cloud.google.com/bigquery/docs/reference/standard-sql/data-control-language
        sql = f'GRANT `{grant.role}` ON SCHEMA `{grant.project}`.{dataset} TO "{grant.member}"'
        return f"bq query --project_id={grant.project} --use_legacy_sql=false '{sql}'"
    if grant.resource:
        _, project, _, location, *rest = grant.resource.split("/")
        place = f"--project={project} --location={location}"
        if grant.type == resource_types.ON_KEY:
            return (
                f"gcloud kms keys add-iam-policy-binding {rest[3]} --keyring={rest[1]} {place} {to}"
            )
        return f"gcloud artifacts repositories add-iam-policy-binding {rest[1]} {place} {to}"
    return f"gcloud projects add-iam-policy-binding {grant.project} {to} --condition=None"


def _sharing(settings: Settings) -> str:
    # The list of allowed projects is empty by default:
    # https://docs.cloud.google.com/compute/docs/instances/reservations-shared
    owners = {
        reservation.project or settings.project: None
        for reservation in settings.reservations.values()
        if reservation.share_with and not reservation.existing
    }
    if not owners:
        return ""
    allowed = ", ".join(f"projects/{owner}" for owner in owners)
    return (
        "Compute Engine refuses shareWith until an administrator of organization policies "
        f"(roles/orgpolicy.policyAdmin) allows {', '.join(owners)} to own shared reservations:\n\n"
        f"{SHARING_POLICY} must allow {allowed}\n"
        f"gcloud org-policies describe {SHARING_POLICY} --organization=ORGANIZATION_ID --effective"
    )


def _steps(settings: Settings, host: SharedVpc) -> list[str]:
    if settings.network.mode == "none":
        return []
    apis = "compute.googleapis.com"
    apis += " servicenetworking.googleapis.com" if settings.network.mode == "peering" else ""
    attach = f"gcloud compute shared-vpc associated-projects add {settings.project}"
    owner = host.host_project
    return [f"gcloud services enable {apis} --project={owner}", f"{attach} --host-project={owner}"]


def _table(grants: Sequence[GrantRequest]) -> list[str]:
    rows = [HEAD, *((r.project, _on(r), r.role, r.member) for r in grants)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _on(grant: GrantRequest) -> str:
    if not grant.resource:
        return "the project"
    kind = resource_types.find(grant.type).grants_on
    kind = "subnet" if grant.type == resource_types.ON_SUBNET else kind
    return f"{kind} {grant.resource.rsplit('/', 1)[1]}"
