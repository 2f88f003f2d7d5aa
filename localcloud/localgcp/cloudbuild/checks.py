"""What Cloud Build refuses at once, and the rights of the account that builds.

Texts follow the service's as far as public threads show them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import grpc
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.cloud.devtools import cloudbuild_v1

from localgcp.apis.refusals import invalid_argument, permission_denied
from localgcp.errors import ApiError
from localgcp.inventory import resource_paths
from localgcp.inventory.store import Store, project_number
from localgcp.projects import LOCAL_PREFIX, is_local
from localgcp.runner.gcsfuse import storage_client

API: Final = "cloudbuild.googleapis.com"
READERS: Final = frozenset(
    {
        "roles/storage.objectViewer",
        "roles/storage.objectUser",
        "roles/storage.objectAdmin",
        "roles/storage.admin",
    }
)
PUSHERS: Final = frozenset(
    {
        "roles/artifactregistry.writer",
        "roles/artifactregistry.repoAdmin",
        "roles/artifactregistry.admin",
    }
)
LOG_WRITERS: Final = frozenset({"roles/logging.logWriter", "roles/logging.admin"})
_PARENT: Final = re.compile(r"projects/(?P<project>[^/]+)(?:/locations/(?P<region>[^/]+))?\Z")
_ACCOUNT: Final = re.compile(r"projects/[^/]+/serviceAccounts/(?P<email>[^/]+@[^/]+)\Z")
_TAG: Final = re.compile(r"\w[\w.-]{0,127}\Z")
_SUBSTITUTION: Final = re.compile(r"_[A-Z0-9_]+\Z")
_IMAGE: Final = re.compile(
    r"(?P<region>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/[^:@]+(?::[\w.-]+)?\Z"
)


@dataclass(frozen=True)
class BuildAccess:
    """What the account of one build may do."""

    store: Store
    project: str
    email: str

    def reads(self, bucket: str) -> bool:
        """May it read objects of the bucket?"""
        found = self.store.bucket(bucket) or {}
        return self._holds(READERS, found.get("project"), f"b/{bucket}")

    def writes_logs(self) -> bool:
        """May it write log entries?"""
        return self._holds(LOG_WRITERS)

    def pushes(self, image: str) -> bool:
        """May it push this image?"""
        match = _IMAGE.match(image)
        if match is None:
            return False
        place = f"projects/{match['project']}/locations/{match['region']}"
        repository = f"{place}/repositories/{match['repository']}"
        return self._holds(PUSHERS, match["project"], repository)

    def _holds(self, roles: frozenset[str], project: str | None = None, place: str = "") -> bool:
        """On ``place`` or its project; without them, on the project of the build."""
        member = f"serviceAccount:{self.email}"
        held = self.store.roles(f"projects/{project or self.project}", member)
        if place:
            held |= self.store.roles(place, member)
        return not roles.isdisjoint(held)


def resolve_parent(store: Store, parent: str) -> tuple[str, str]:
    """(project id, region). Raises ApiError: bad form, no such project, or the API is off."""
    match = _PARENT.match(parent)
    if match is None:
        raise invalid_argument(f"invalid parent {parent!r}: projects/P/locations/L is expected")
    project = resource_paths.project_id(store, match["project"])
    if project is None or not is_local(project):
        raise permission_denied(
            f"The caller does not have permission. (The local cloud has only projects whose id "
            f"begins with '{LOCAL_PREFIX}'.)"
        )
    if not store.service_enabled(project, API):
        raise permission_denied(
            f"Cloud Build API has not been used in project {project_number(project)} before or it "
            f"is disabled. Enable it ({API}) then retry."
        )
    return project, match["region"] or "global"


def check_build(store: Store, project: str, build: cloudbuild_v1.Build) -> BuildAccess:
    """Raise ApiError if the service would refuse this build; else what its account may do."""
    if not build.steps:
        raise invalid_argument("invalid build: no build steps defined")
    for tag in build.tags:
        if not _TAG.match(tag):
            raise invalid_argument(f"invalid build tag {tag!r}")
    for key in build.substitutions:
        if not _SUBSTITUTION.match(key):
            raise invalid_argument(
                f"invalid value for 'build.substitutions': key {key!r} must begin with _ and have "
                "capital letters, digits and _ alone"
            )
    for image in build.images:
        if not _IMAGE.match(image):
            raise invalid_argument(f"invalid image name {image!r}")
    return _check_account(store, project, build)


def _check_account(store: Store, project: str, build: cloudbuild_v1.Build) -> BuildAccess:
    match = _ACCOUNT.match(build.service_account)
    if match is None:
        # The local cloud has no default account of Google's that could do everything.
        raise invalid_argument("invalid value for 'build.service_account': name an account")
    modes = cloudbuild_v1.BuildOptions.LoggingMode
    if (
        build.options.logging not in (modes.CLOUD_LOGGING_ONLY, modes.NONE)
        and not build.logs_bucket
    ):
        raise invalid_argument(
            "if 'build.service_account' is specified, the build must either (a) specify "
            "'build.logs_bucket', (b) use the REGIONAL_USER_OWNED_BUCKET "
            "build.options.default_logs_bucket_behavior option, or (c) use either "
            "CLOUD_LOGGING_ONLY / NONE logging options"
        )
    if store.account(match["email"]) is None:
        raise permission_denied(
            f"caller does not have permission to act as service account {build.service_account} "
            "(or it may not exist)"
        )
    return BuildAccess(store, project, match["email"])


def resolve_source(access: BuildAccess, build: cloudbuild_v1.Build, storage_url: str) -> int:
    """The generation of the source's object. Raises ApiError if the account cannot read it."""
    source = build.source.storage_source
    where = f"{source.bucket}/{source.object_}"
    if not source.bucket or not source.object_:
        raise invalid_argument("invalid build: the local cloud takes storage_source alone")
    if access.store.bucket(source.bucket) is None:
        raise _unresolved(404, f"The specified bucket does not exist: {source.bucket}, notFound")
    if not access.reads(source.bucket):
        raise _unresolved(
            403,
            f"{access.email} does not have storage.objects.get access to the Google Cloud Storage "
            f"object. Permission 'storage.objects.get' denied on resource {where}, forbidden",
        )
    blob = storage_client(storage_url).bucket(source.bucket).blob(source.object_)
    try:
        blob.reload(timeout=20)
    except NotFound:
        raise _unresolved(404, f"No such object: {where}, notFound") from None
    except GoogleAPICallError as error:
        raise ApiError(grpc.StatusCode.UNAVAILABLE, f"Cloud Storage: {error.message}") from None
    if source.generation and int(source.generation) != int(blob.generation or 0):
        raise _unresolved(404, f"No such object: {where}#{source.generation}, notFound")
    return int(blob.generation or 0)


def _unresolved(status: int, text: str) -> ApiError:
    return invalid_argument(f"could not resolve source: googleapi: Error {status}: {text}")
