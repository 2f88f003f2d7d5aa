"""Grants that follow from accounts, images, the key and ``members``, from jobs and models. Pure.

On what is in the stack's own project, the stack makes its grants itself, member by member: it never
writes a whole policy. The owners of other projects grant what is theirs. A dataset has a list of
entries and no policy: the plugin reads and writes the list whole, with views and routines in it
(GoogleCloudPlatform/magic-modules#14208), so two writers at one time could lose an entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from vertex_training.catalog.resource_types import (
    ON_ACCOUNT,
    ON_BUCKET,
    ON_DATASET,
    ON_KEY,
    ON_PROJECT,
    ON_REPOSITORY,
    ON_SECRET,
)
from vertex_training.customjob.rules.identity import KEY
from vertex_training.customjob.rules.images import GOOGLES
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, project_of_account
from vertex_training.plan import grants
from vertex_training.plan.grants import Condition, GrantRequest
from vertex_training.settings.model import Covered, Settings

#: Section -> type of the grants on its entries.
TYPES: Final = {
    "buckets": ON_BUCKET,
    "secrets": ON_SECRET,
    "serviceAccounts": ON_ACCOUNT,
    "registry": ON_REPOSITORY,
}
#: Path of an entry in the stack file: section and key, or ``("registry",)``.
Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyUser:
    """A service that encrypts with the stack's own key. Its agent is in ``domain``."""

    covered: Covered
    service: str
    domain: str


#: Which agents use a key for what: storage/docs/encryption/customer-managed-keys,
#: artifact-registry/docs/cmek, secret-manager/docs/cmek, all on docs.cloud.google.com.
KEY_USERS: Final = (
    KeyUser("buckets", "storage", "gs-project-accounts"),
    KeyUser("registry", "artifactregistry", "gcp-sa-artifactregistry"),
    KeyUser("secrets", "secretmanager", "gcp-sa-secretmanager"),
)


def owned_by_others(settings: Settings) -> dict[Place, str]:
    """Place of what another project owns -> that project."""
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
    """Full name of what is at a place in the stack file, as ``GrantRequest.resource`` has it."""
    names = settings.names
    if place == ("registry",):
        return names.repository_path()
    section, key = place
    if section == "buckets":
        return f"b/{names.bucket(key)}"
    return names.secret(key) if section == "secrets" else names.account(key)


class _Requests:
    """Makes requests for grants on what the stack file names."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._owners = settings, owned_by_others(settings)

    def on(self, place: Place, key: str, role: str, member: str, **more: Any) -> GrantRequest:
        """The grant on what is at this place; its owner makes it."""
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
        """The grant on the stack's own project."""
        return GrantRequest(key, ON_PROJECT, role, member, self._settings.project)


def account_grants(
    settings: Settings, key: str, *, fetches_packages: bool = False
) -> Iterator[GrantRequest]:
    """Return the grants of an account that jobs run as, and those to act as it.

    Each is on one bucket or one secret. Two cannot be made on anything narrower than the project.

    ``fetches_packages``: whether a job of the account fetches code from the staging bucket.
    """
    account, requests = settings.service_accounts[key], _Requests(settings)
    member = f"serviceAccount:{settings.names.account_email(key)}"
    staging = [STAGING] if fetches_packages else []
    for bucket in dict.fromkeys((*account.reads, *staging, *account.writes)):
        writes = bucket in account.writes  # which includes reading
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
        # One name for both lists: whoever moves from one to the other keeps the grant.
        yield requests.on(place, f"submitter-{member}", grants.ACT_AS, member)
    if place in owned_by_others(settings):
        # general/custom-service-account: "in a different project" the agent needs this role, and
        # that project lifts iam.disableCrossProjectServiceAccountUsage.
        agent = f"serviceAccount:{settings.names.vertex_agent()}"
        yield requests.on(place, "agent", grants.CREATE_TOKENS, agent)


def build_grants(settings: Settings) -> Iterator[GrantRequest]:
    """Return the grants of the account that builds images, and of members that start builds."""
    names, requests = settings.names, _Requests(settings)
    account = f"serviceAccount:{names.account_email(IMAGE_BUILD)}"
    staging, registry = ("buckets", STAGING), ("registry",)
    yield requests.on_project("logs", grants.WRITE_LOGS, account)
    yield requests.on(staging, "reads-source", grants.READ_OBJECTS, account)
    yield requests.on(registry, "pushes", grants.PUSH_IMAGES, account)
    prefix = f"projects/_/buckets/{names.bucket(STAGING)}/objects/{SOURCES}"
    # It cannot overwrite: whoever may build cannot change the code packages of jobs.
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
    """All grants that follow from the accounts of a stack and from its images."""
    accounts = [
        grant for key in settings.service_accounts for grant in account_grants(settings, key)
    ]
    return [*accounts, *(build_grants(settings) if settings.builds_images else ())]


def members_by_place(settings: Settings) -> Iterator[tuple[Place, Mapping[str, list[str]]]]:
    """Path of each ``members`` in the stack file, with its members by role."""
    for key, bucket in settings.buckets.items():
        yield ("buckets", key), bucket.members
    for key, secret in settings.secrets.items():
        yield ("secrets", key), secret.members
    for key, account in settings.service_accounts.items():
        yield ("serviceAccounts", key), account.members
    yield ("registry",), settings.registry.members


def member_lists(settings: Settings) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Path of each list of IAM members in the stack file, with the list."""
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
    """Grants that the stack file asks for by name: ``members``, ``roles`` and ``datasets``."""
    requests = _Requests(settings)
    on_entries = [
        requests.on(place, "-".join((*place, role, member)), role, member, asked_for=True)
        for place, by_role in members_by_place(settings)
        for role, members in by_role.items()
        for member in dict.fromkeys(members)
    ]
    return [*on_entries, *_roles(settings)]


def _roles(settings: Settings) -> Iterator[GrantRequest]:
    """Roles of accounts in projects, and on datasets."""
    for key, account in settings.service_accounts.items():
        member = f"serviceAccount:{settings.names.account_email(key)}"
        for on, roles in (*account.roles.items(), *account.datasets.items()):
            project, is_dataset, name = on.partition(".")
            for role in dict.fromkeys(roles):
                yield GrantRequest(
                    f"serviceAccounts-{key}-{role}-{on}",
                    ON_DATASET if is_dataset else ON_PROJECT,
                    role,
                    member,
                    project,
                    f"projects/{project}/datasets/{name}" if is_dataset else "",
                    ours=project == settings.project,
                    asked_for=True,
                )


def key_users(settings: Settings) -> list[KeyUser]:
    """The services that encrypt something of this stack with its own key."""
    used: dict[str, bool] = {
        "buckets": True,
        "registry": not settings.registry.existing,
        "secrets": any(not secret.existing for secret in settings.secrets.values()),
    }
    return [user for user in KEY_USERS if used[user.covered] and settings.key_for(user.covered)]


def encryption_grants(settings: Settings) -> list[GrantRequest]:
    """Grants on the stack's own key, for the agents of the services that encrypt with it.

    The key's own project makes them if it is another one. A job names the key in its request, and
    ``job_grants`` has the grant.
    """
    if settings.encryption is None:
        return []
    key = settings.encryption.key
    project = key.split("/")[1]
    return [
        GrantRequest(
            user.covered,
            ON_KEY,
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
    """Return the grants of the service agents for these requests, each grant once.

    ``messages`` are CustomJobs in REST's form with their references resolved.
    """
    found: dict[str, GrantRequest] = {}
    for message in messages:
        derived = (_key_grants(settings, message), _tensorboard_grants(settings, message))
        for grant in (*chain(*derived), *image_grants(settings, images(message))):
            found.setdefault(grant.key, grant)
    return list(found.values())


def batch_grants(settings: Settings, messages: Iterable[Mapping[str, Any]]) -> list[GrantRequest]:
    """Return the grants of accounts and submitters of jobs on Batch, each grant once.

    https://docs.cloud.google.com/batch/docs/get-started#project-prerequisites; what an account
    writes to Cloud Logging, every account of the stack may.
    """
    names = settings.names
    keys = {names.account_email(key): key for key in settings.service_accounts}
    found: dict[str, GrantRequest] = {}

    def add(key: str, type_: str, role: str, member: str, *where: str, ours: bool = True) -> None:
        project, resource = where or (settings.project, "")
        grant = GrantRequest(key, type_, role, member, project, resource, ours=ours)
        found.setdefault(key, grant)

    for message in messages:
        account = str(message.get("jobSpec", {}).get("serviceAccount") or "")
        name, member = _name_in_keys(settings, account), f"serviceAccount:{account}"
        add(f"batch-reports-{name}", grants.ON_PROJECT, grants.REPORT_STATES, member)
        for submitter in settings.members_acting_as(keys[account]) if account in keys else ():
            key = f"batch-submits-{submitter}"
            add(key, grants.ON_PROJECT, grants.SUBMIT_TO_BATCH, submitter)
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
            add(key, grants.ON_REPOSITORY, role, member, project, path, ours=own)
    return list(found.values())


def image_grants(
    settings: Settings, names: Iterable[str], *, of_models: bool = False
) -> Iterator[GrantRequest]:
    """Grants to pull these images, where another project has them.

    An agent may read the repositories of its own project. "The default service account" pulls
    images, says general/custom-service-account, whatever account the job runs as; that is the
    custom code agent for the containers of training, and the service agent checks the image first.
    Images of models are pulled by the service agent (predictions/custom-container-requirements).
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
                grants.ON_REPOSITORY,
                grants.PULL_IMAGES,
                f"serviceAccount:{agent}",
                project,
                ours=False,
                resource=path,
            )


def images(message: Mapping[str, Any]) -> Iterator[str]:
    """Names of the images that a job runs."""
    for pool in message.get("jobSpec", {}).get("workerPoolSpecs") or []:
        for task, field in (
            ("containerSpec", "imageUri"),
            ("pythonPackageSpec", "executorImageUri"),
        ):
            if name := (pool.get(task) or {}).get(field):
                yield name


def _tensorboard_grants(settings: Settings, message: Mapping[str, Any]) -> Iterator[GrantRequest]:
    """The grant to write to a TensorBoard, as the account of the job, unless it may anyway.

    experiments/tensorboard-setup asks for roles/aiplatform.user; for logs, the right to write to
    the job's output folder does.
    """
    spec, names = message.get("jobSpec", {}), settings.names
    account = str(spec.get("serviceAccount") or "")
    accounts = settings.service_accounts.items()
    may = {names.account_email(key) for key, given in accounts if given.calls_vertex}
    if spec.get("tensorboard") and account and account not in may:
        yield GrantRequest(
            f"tensorboard-{_name_in_keys(settings, account)}",
            grants.ON_PROJECT,
            grants.CALL_VERTEX,
            f"serviceAccount:{account}",
            settings.project,
        )


def _name_in_keys(settings: Settings, account: str) -> str:
    """An account in keys of grants: by its id, or its address, since ids are a project's own."""
    name, _, _ = account.partition("@")
    return name if project_of_account(account) == settings.project else account


def _key_grants(settings: Settings, message: Mapping[str, Any]) -> Iterator[GrantRequest]:
    """The grant on a job's key. Its region is judged by the rule ``encryption-region``."""
    name = (message.get("encryptionSpec") or {}).get("kmsKeyName", "")
    if not KEY.match(name):
        return
    _, project, _, location, _, ring, _, key = name.split("/")
    own = project in (settings.project, settings.project_number)
    yield GrantRequest(
        f"encrypts-{project}-{location}-{ring}-{key}",
        grants.ON_KEY,
        grants.USE_KEY,
        f"serviceAccount:{settings.names.vertex_agent()}",
        settings.project if own else project,
        ours=own,
        resource=name,
    )
