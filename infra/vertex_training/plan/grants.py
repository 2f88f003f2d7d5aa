"""All grants that the stack may make, with reasons, and the grants of other teams.

A :class:`GrantRequest` must be in the table ``ALLOWED``, unless the stack file requests the role by
name. An external grant is on a resource in a project that the stack does not manage.

The stack makes each grant in its own project as a single member, and never writes a whole policy.
The plugin reads and writes the access list of a dataset as a whole, so that two concurrent writers
could lose an entry (GoogleCloudPlatform/magic-modules#14208).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from vertex_training import catalog
from vertex_training.catalog import resource_types
from vertex_training.customjob.rules.identity import KEY
from vertex_training.customjob.rules.images import GOOGLES
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, project_of_account
from vertex_training.settings.model import Covered, Settings
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


#: Section -> type of the grants on its entries.
TYPES: Final = {
    "buckets": resource_types.ON_BUCKET,
    "secrets": resource_types.ON_SECRET,
    "serviceAccounts": resource_types.ON_ACCOUNT,
    "registry": resource_types.ON_REPOSITORY,
}
#: Path of an entry in the stack file: section and key, or ``("registry",)``.
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyUser:
    """A service that encrypts with the stack's key; ``domain`` is part of its agent's address."""

    covered: Covered
    service: str
    domain: str


#: Services whose agents use a key: storage/docs/encryption/customer-managed-keys,
#: artifact-registry/docs/cmek, secret-manager/docs/cmek, all on docs.cloud.google.com.
KEY_USERS: Final = (
    KeyUser("buckets", "storage", "gs-project-accounts"),
    KeyUser("registry", "artifactregistry", "gcp-sa-artifactregistry"),
    KeyUser("secrets", "secretmanager", "gcp-sa-secretmanager"),
)


def owned_by_others(settings: Settings) -> dict[Place, str]:
    """Return the owners of resources in other projects, by their place in the stack file."""
    owners: dict[Place, str] = {}
    for key, bucket in settings.buckets.items():
        if bucket.existing and bucket.project:
            owners["buckets", key] = bucket.project
    for key, account in settings.service_accounts.items():
        if account.existing:
            owners["serviceAccounts", key] = project_of_account(account.existing)
    if settings.registry.existing:
        owners["registry",] = settings.registry.existing.split("/")[1]
    for key, secret in settings.secrets.items():
        if secret.existing:
            owners["secrets", key] = secret.existing.split("/")[1]
    return {place: project for place, project in owners.items() if project != settings.project}


def resource_at(settings: Settings, place: Place) -> str:
    """Return the full name of the resource at a place in the stack file."""
    names = settings.names
    if place == ("registry",):
        return names.repository_path()
    section, key = place
    if section == "buckets":
        return f"b/{names.bucket(key)}"
    return names.secret(key) if section == "secrets" else names.account(key)


class _Requests:
    """Builder of grants on resources in the stack file."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._owners = settings, owned_by_others(settings)

    def on(self, place: Place, key: str, role: str, member: str, **more: Any) -> GrantRequest:
        """Build a grant on the resource at a place. The resource's owner must make the grant."""
        owner = self._owners.get(place)
        return GrantRequest(
            key,
            TYPES[place[0]],
            role,
            member,
            owner or self._settings.project,
            resource_at(self._settings, place),
            ours=owner is None,
            **more,
        )

    def on_project(self, key: str, role: str, member: str) -> GrantRequest:
        """Build a grant on the stack's own project."""
        return GrantRequest(key, resource_types.ON_PROJECT, role, member, self._settings.project)


def account_grants(
    settings: Settings, key: str, *, fetches_packages: bool = False
) -> Iterator[GrantRequest]:
    """Yield the grants of a job's account, and the grants to act as this account."""
    account, requests = settings.service_accounts[key], _Requests(settings)
    member = f"serviceAccount:{settings.names.account_email(key)}"
    staging = [STAGING] if fetches_packages else []
    for bucket in dict.fromkeys((*account.reads, *staging, *account.writes)):
        writes = bucket in account.writes  # write access includes read access
        role = WRITE_OBJECTS if writes else READ_OBJECTS
        verb = "writes" if writes else "reads"
        yield requests.on(("buckets", bucket), f"{verb}-{bucket}", role, member)
    for secret in dict.fromkeys(account.secrets):
        place = "secrets", secret
        yield requests.on(place, f"reads-secret-{secret}", READ_SECRET, member)
    yield requests.on_project("logs", WRITE_LOGS, member)
    if account.calls_vertex:
        yield requests.on_project("vertex", CALL_VERTEX, member)
    if account.datasets and READ_TABLES not in account.roles.get(settings.project, ()):
        yield requests.on_project("tables", READ_TABLES, member)
    place = "serviceAccounts", key
    for member in settings.members_acting_as(key):
        # Submitters and deployers share names, so that a move between the lists keeps the grant.
        yield requests.on(place, f"submitter-{member}", ACT_AS, member)
    if place in owned_by_others(settings):
        # general/custom-service-account: "in a different project" the agent needs this role, and
        # that project lifts iam.disableCrossProjectServiceAccountUsage.
        agent = f"serviceAccount:{settings.names.vertex_agent()}"
        yield requests.on(place, "agent", CREATE_TOKENS, agent)


def build_grants(settings: Settings) -> Iterator[GrantRequest]:
    """Yield the grants of the account that builds images, and of members that start builds."""
    names, requests = settings.names, _Requests(settings)
    account = f"serviceAccount:{names.account_email(IMAGE_BUILD)}"
    staging, registry = ("buckets", STAGING), ("registry",)
    yield requests.on_project("logs", WRITE_LOGS, account)
    yield requests.on(staging, "reads-source", READ_OBJECTS, account)
    yield requests.on(registry, "pushes", PUSH_IMAGES, account)
    prefix = f"projects/_/buckets/{names.bucket(STAGING)}/objects/{SOURCES}"
    # Builders cannot overwrite objects, and so cannot change packages of jobs.
    sources = Condition("sources of images", f"resource.name.startsWith('{prefix}')")
    acting = "serviceAccounts", IMAGE_BUILD
    for member in dict.fromkeys(settings.builders):
        yield requests.on_project(f"builder-{member}", EDIT_BUILDS, member)
        yield requests.on_project(f"builder-logs-{member}", READ_LOGS, member)
        yield requests.on(staging, f"builder-reads-{member}", READ_OBJECTS, member)
        adds = f"builder-adds-{member}"
        yield requests.on(staging, adds, ADD_OBJECTS, member, condition=sources)
        yield requests.on(registry, f"builder-pulls-{member}", PULL_IMAGES, member)
        yield requests.on(acting, f"builder-acts-{member}", ACT_AS, member)


def derived_grants(settings: Settings) -> list[GrantRequest]:
    """Return all grants for the accounts of a stack and for image builds."""
    accounts = (account_grants(settings, key) for key in settings.service_accounts)
    return [*chain(*accounts), *(build_grants(settings) if settings.builds_images else ())]


def members_by_place(settings: Settings) -> Iterator[tuple[Place, Mapping[str, list[str]]]]:
    """Yield each place in the stack file that has ``members``, with the members by role."""
    for key, bucket in settings.buckets.items():
        yield ("buckets", key), bucket.members
    for key, secret in settings.secrets.items():
        yield ("secrets", key), secret.members
    for key, account in settings.service_accounts.items():
        yield ("serviceAccounts", key), account.members
    yield ("registry",), settings.registry.members


def member_lists(settings: Settings) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yield path and content of each list of IAM members in the stack file."""
    yield ("submitters",), settings.submitters
    yield ("deployers",), settings.deployers
    yield ("builders",), settings.builders
    for key, team in settings.teams.items():
        yield ("teams", key, "submitters"), team.submitters
    for key, account in settings.service_accounts.items():
        yield ("serviceAccounts", key, "submitters"), account.submitters or []
    for place, by_role in members_by_place(settings):
        for role, members in by_role.items():
            yield (*place, "members", role), members


def extra_grants(settings: Settings) -> list[GrantRequest]:
    """Return grants that the stack file requests by name: ``members``, ``roles``, ``datasets``."""
    requests = _Requests(settings)
    on_entries = [
        requests.on(place, "-".join((*place, role, member)), role, member, asked_for=True)
        for place, by_role in members_by_place(settings)
        for role, members in by_role.items()
        for member in dict.fromkeys(members)
    ]
    return [*on_entries, *_roles(settings)]


def _roles(settings: Settings) -> Iterator[GrantRequest]:
    for key, account in settings.service_accounts.items():
        member = f"serviceAccount:{settings.names.account_email(key)}"
        for on, roles in (*account.roles.items(), *account.datasets.items()):
            project, is_dataset, name = on.partition(".")
            for role in dict.fromkeys(roles):
                yield GrantRequest(
                    f"serviceAccounts-{key}-{role}-{on}",
                    resource_types.ON_DATASET if is_dataset else resource_types.ON_PROJECT,
                    role,
                    member,
                    project,
                    f"projects/{project}/datasets/{name}" if is_dataset else "",
                    ours=project == settings.project,
                    asked_for=True,
                )


def key_users(settings: Settings) -> list[KeyUser]:
    """Return the services that encrypt resources of this stack with its key."""
    used: dict[str, bool] = {
        "buckets": True,
        "registry": not settings.registry.existing,
        "secrets": any(not secret.existing for secret in settings.secrets.values()),
    }
    return [user for user in KEY_USERS if used[user.covered] and settings.key_for(user.covered)]


def encryption_grants(settings: Settings) -> list[GrantRequest]:
    """Return grants on the stack's key for the service agents that encrypt with it."""
    if settings.encryption is None:
        return []
    key = settings.encryption.key
    project = key.split("/")[1]
    return [
        GrantRequest(
            user.covered,
            resource_types.ON_KEY,
            USE_KEY,
            f"serviceAccount:{settings.names.service_agent(user.domain)}",
            project,
            key,
            ours=project == settings.project,
        )
        for user in key_users(settings)
    ]


#: An image in Artifact Registry: location, project, repository.
IMAGE: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/:@]+)/.")


def job_grants(settings: Settings, messages: Iterable[Mapping[str, Any]]) -> Iterator[GrantRequest]:
    """Yield the grants that service agents need for CustomJobs of the REST API."""
    for message in messages:
        yield from _key_grants(settings, message)
        yield from _tensorboard_grants(settings, message)
        yield from image_grants(settings, images(message))


def batch_grants(
    settings: Settings, messages: Iterable[Mapping[str, Any]]
) -> Iterator[GrantRequest]:
    """Yield the grants that accounts and submitters need for jobs on Batch."""
    # https://docs.cloud.google.com/batch/docs/get-started#project-prerequisites
    requests, names = _Requests(settings), settings.names
    keys = {names.account_email(key): key for key in settings.service_accounts}
    for message in messages:
        account = str(message.get("jobSpec", {}).get("serviceAccount") or "")
        name, member = _name_in_keys(settings, account), f"serviceAccount:{account}"
        yield requests.on_project(f"batch-reports-{name}", REPORT_STATES, member)
        for submitter in settings.members_acting_as(keys[account]) if account in keys else ():
            yield requests.on_project(f"batch-submits-{submitter}", SUBMIT_TO_BATCH, submitter)
        for image in images(message):
            yield from _pull_grants(settings, image, member, "batch-pulls", name)


def image_grants(
    settings: Settings, names: Iterable[str], *, of_models: bool = False
) -> Iterator[GrantRequest]:
    """Yield the grants to pull these images from other projects.

    General/custom-service-account: the custom code agent pulls images of training, and the service
    agent checks them first. The service agent pulls images of models
    (predictions/custom-container-requirements).
    """
    agents = [settings.names.vertex_agent()]
    agents += [] if of_models else [settings.names.custom_code_agent()]
    for name in names:
        for agent in agents:
            kind = agent.partition("@")[2].partition(".")[0]
            grants = _pull_grants(settings, name, f"serviceAccount:{agent}", "pulls", kind)
            yield from (grant for grant in grants if not grant.ours)


def _pull_grants(
    settings: Settings, image: str, member: str, verb: str, name: str
) -> Iterator[GrantRequest]:
    """Yield the grant to pull an image, unless it is an image of Google."""
    match = IMAGE.match(image)
    if match and not GOOGLES.match(image):
        location, project, repository = match.groups()
        own = project in (settings.project, settings.project_number)
        project = settings.project if own else project
        path = f"projects/{project}/locations/{location}/repositories/{repository}"
        key = f"{verb}-{project}-{location}-{repository}-{name}"
        type_, role = resource_types.ON_REPOSITORY, PULL_IMAGES
        yield GrantRequest(key, type_, role, member, project, path, ours=own)


def images(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of all images in a job."""
    for pool in message.get("jobSpec", {}).get("workerPoolSpecs") or []:
        fields = {"containerSpec": "imageUri", "pythonPackageSpec": "executorImageUri"}
        for task, field in fields.items():
            if name := (pool.get(task) or {}).get(field):
                yield name


def _tensorboard_grants(settings: Settings, message: Mapping[str, Any]) -> Iterator[GrantRequest]:
    """Yield the grant to write to TensorBoard, unless the account already has it."""
    # experiments/tensorboard-setup requires roles/aiplatform.user. Logs need only the right to
    # write to the job's output folder.
    spec, names = message.get("jobSpec", {}), settings.names
    account = str(spec.get("serviceAccount") or "")
    accounts = settings.service_accounts.items()
    may = {names.account_email(key) for key, options in accounts if options.calls_vertex}
    if spec.get("tensorboard") and account and account not in may:
        key = f"tensorboard-{_name_in_keys(settings, account)}"
        yield _Requests(settings).on_project(key, CALL_VERTEX, f"serviceAccount:{account}")


def _name_in_keys(settings: Settings, account: str) -> str:
    """Return the name of an account in keys of grants: its id, or its address if it is foreign."""
    name, _, _ = account.partition("@")
    return name if project_of_account(account) == settings.project else account


def _key_grants(settings: Settings, message: Mapping[str, Any]) -> Iterator[GrantRequest]:
    """Yield the grant on a job's own key."""
    name = (message.get("encryptionSpec") or {}).get("kmsKeyName", "")
    if not KEY.match(name):
        return
    _, project, _, location, _, ring, _, key = name.split("/")
    own = project in (settings.project, settings.project_number)
    yield GrantRequest(
        f"encrypts-{project}-{location}-{ring}-{key}",
        resource_types.ON_KEY,
        USE_KEY,
        f"serviceAccount:{settings.names.vertex_agent()}",
        settings.project if own else project,
        ours=own,
        resource=name,
    )


HEAD: Final = ("PROJECT", "ON", "ROLE", "TO")
#: Type of a grant -> command that makes the grant.
#: https://docs.cloud.google.com/bigquery/docs/reference/standard-sql/data-control-language
COMMANDS: Final = {
    resource_types.ON_BUCKET: "gcloud storage buckets add-iam-policy-binding gs://{name} "
    "--project={project} {to}",
    resource_types.ON_SECRET: "gcloud secrets add-iam-policy-binding {name} "
    "--project={project} {to}",
    resource_types.ON_ACCOUNT: "gcloud iam service-accounts add-iam-policy-binding {name} "
    "--project={project} {to}",
    resource_types.ON_SUBNET: "gcloud compute networks subnets add-iam-policy-binding {name} "
    "--project={project} --region={location} {to}",
    resource_types.ON_KEY: "gcloud kms keys add-iam-policy-binding {name} --keyring={ring} "
    "--project={owner} --location={location} {to}",
    resource_types.ON_REPOSITORY: "gcloud artifacts repositories add-iam-policy-binding {name} "
    "--project={owner} --location={location} {to}",
    resource_types.ON_DATASET: "bq query --project_id={project} --use_legacy_sql=false "
    "'GRANT `{role}` ON SCHEMA `{project}`.{name} TO \"{member}\"'",
    resource_types.ON_PROJECT: "gcloud projects add-iam-policy-binding {project} {to} "
    "--condition=None",
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
    # Full names begin with projects/OWNER/locations/LOCATION/keyRings/RING, or a part of this.
    _, owner, _, location, _, ring, *_ = [*grant.resource.split("/"), *[""] * 6]
    return COMMANDS[grant.type].format(
        to=f"--member='{member}' --role={grant.role}",
        name=grant.resource.rpartition("/")[2],
        project=grant.project,
        owner=owner,
        location=location,
        ring=ring,
        role=grant.role,
        member=member,
    )


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
