"""Grants that a stack makes: on accounts, images, the key, jobs, models and by ``members``.

The stack makes each grant in its own project as a single member, and never writes a whole policy.
The plugin reads and writes the access list of a dataset as a whole, so that two concurrent writers
could lose an entry (GoogleCloudPlatform/magic-modules#14208).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.customjob.rules.identity import KEY
from vertex_training.customjob.rules.images import GOOGLES
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, project_of_account
from vertex_training.plan import grants
from vertex_training.plan.grants import Condition, GrantRequest
from vertex_training.settings.model import Covered, Settings

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
        role = grants.WRITE_OBJECTS if writes else grants.READ_OBJECTS
        verb = "writes" if writes else "reads"
        yield requests.on(("buckets", bucket), f"{verb}-{bucket}", role, member)
    for secret in dict.fromkeys(account.secrets):
        place = "secrets", secret
        yield requests.on(place, f"reads-secret-{secret}", grants.READ_SECRET, member)
    yield requests.on_project("logs", grants.WRITE_LOGS, member)
    if account.calls_vertex:
        yield requests.on_project("vertex", grants.CALL_VERTEX, member)
    if account.datasets and grants.READ_TABLES not in account.roles.get(settings.project, ()):
        yield requests.on_project("tables", grants.READ_TABLES, member)
    place = "serviceAccounts", key
    for member in settings.members_acting_as(key):
        # Submitters and deployers share names, so that a move between the lists keeps the grant.
        yield requests.on(place, f"submitter-{member}", grants.ACT_AS, member)
    if place in owned_by_others(settings):
        # general/custom-service-account: "in a different project" the agent needs this role, and
        # that project lifts iam.disableCrossProjectServiceAccountUsage.
        agent = f"serviceAccount:{settings.names.vertex_agent()}"
        yield requests.on(place, "agent", grants.CREATE_TOKENS, agent)


def build_grants(settings: Settings) -> Iterator[GrantRequest]:
    """Yield the grants of the account that builds images, and of members that start builds."""
    names, requests = settings.names, _Requests(settings)
    account = f"serviceAccount:{names.account_email(IMAGE_BUILD)}"
    staging, registry = ("buckets", STAGING), ("registry",)
    yield requests.on_project("logs", grants.WRITE_LOGS, account)
    yield requests.on(staging, "reads-source", grants.READ_OBJECTS, account)
    yield requests.on(registry, "pushes", grants.PUSH_IMAGES, account)
    prefix = f"projects/_/buckets/{names.bucket(STAGING)}/objects/{SOURCES}"
    # Builders cannot overwrite objects, and so cannot change packages of jobs.
    sources = Condition("sources of images", f"resource.name.startsWith('{prefix}')")
    acting = "serviceAccounts", IMAGE_BUILD
    for member in dict.fromkeys(settings.builders):
        yield requests.on_project(f"builder-{member}", grants.EDIT_BUILDS, member)
        yield requests.on_project(f"builder-logs-{member}", grants.READ_LOGS, member)
        yield requests.on(staging, f"builder-reads-{member}", grants.READ_OBJECTS, member)
        adds = f"builder-adds-{member}"
        yield requests.on(staging, adds, grants.ADD_OBJECTS, member, condition=sources)
        yield requests.on(registry, f"builder-pulls-{member}", grants.PULL_IMAGES, member)
        yield requests.on(acting, f"builder-acts-{member}", grants.ACT_AS, member)


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
            grants.USE_KEY,
            f"serviceAccount:{settings.names.service_agent(user.domain)}",
            project,
            key,
            ours=project == settings.project,
        )
        for user in key_users(settings)
    ]


#: An image in Artifact Registry: location, project, repository.
IMAGE: Final = re.compile(r"([a-z0-9-]+)-docker\.pkg\.dev/([^/]+)/([^/:@]+)/.")


def job_grants(settings: Settings, messages: Iterable[Mapping[str, Any]]) -> list[GrantRequest]:
    """Return the distinct grants that service agents need for CustomJobs of the REST API."""
    by_key: dict[str, GrantRequest] = {}
    for message in messages:
        derived = (_key_grants(settings, message), _tensorboard_grants(settings, message))
        for grant in (*chain(*derived), *image_grants(settings, images(message))):
            by_key.setdefault(grant.key, grant)
    return list(by_key.values())


def batch_grants(settings: Settings, messages: Iterable[Mapping[str, Any]]) -> list[GrantRequest]:
    """Return the distinct grants that accounts and submitters need for jobs on Batch."""
    # https://docs.cloud.google.com/batch/docs/get-started#project-prerequisites
    names = settings.names
    keys = {names.account_email(key): key for key in settings.service_accounts}
    by_key: dict[str, GrantRequest] = {}

    def add(key: str, type_: str, role: str, member: str, *where: str, ours: bool = True) -> None:
        project, resource = where or (settings.project, "")
        grant = GrantRequest(key, type_, role, member, project, resource, ours=ours)
        by_key.setdefault(key, grant)

    for message in messages:
        account = str(message.get("jobSpec", {}).get("serviceAccount") or "")
        name, member = _name_in_keys(settings, account), f"serviceAccount:{account}"
        add(f"batch-reports-{name}", resource_types.ON_PROJECT, grants.REPORT_STATES, member)
        for submitter in settings.members_acting_as(keys[account]) if account in keys else ():
            key = f"batch-submits-{submitter}"
            add(key, resource_types.ON_PROJECT, grants.SUBMIT_TO_BATCH, submitter)
        for image in images(message):
            match = IMAGE.match(image)
            if not match or GOOGLES.match(image):
                continue
            location, project, repository = match.groups()
            own = project in (settings.project, settings.project_number)
            project = settings.project if own else project
            path = f"projects/{project}/locations/{location}/repositories/{repository}"
            key = f"batch-pulls-{project}-{location}-{repository}-{name}"
            role = grants.PULL_IMAGES
            add(key, resource_types.ON_REPOSITORY, role, member, project, path, ours=own)
    return list(by_key.values())


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
    own = (settings.project, settings.project_number)
    for name in names:
        image = IMAGE.match(name)
        if not image or image[2] in own or GOOGLES.match(name):
            continue
        location, project, repository = image.groups()
        path = f"projects/{project}/locations/{location}/repositories/{repository}"
        for agent in agents:
            kind = agent.partition("@")[2].partition(".")[0]
            yield GrantRequest(
                f"pulls-{project}-{location}-{repository}-{kind}",
                resource_types.ON_REPOSITORY,
                grants.PULL_IMAGES,
                f"serviceAccount:{agent}",
                project,
                ours=False,
                resource=path,
            )


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
        yield GrantRequest(
            f"tensorboard-{_name_in_keys(settings, account)}",
            resource_types.ON_PROJECT,
            grants.CALL_VERTEX,
            f"serviceAccount:{account}",
            settings.project,
        )


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
        grants.USE_KEY,
        f"serviceAccount:{settings.names.vertex_agent()}",
        settings.project if own else project,
        ours=own,
        resource=name,
    )
