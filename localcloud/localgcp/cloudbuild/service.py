"""Cloud Build v1: create, get, list and cancel builds; permissions of the build's account."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import grpc
from google.api_core.exceptions import GoogleAPICallError, NotFound
from google.cloud.devtools import cloudbuild_v1
from google.longrunning import operations_pb2

from localgcp.apis.client import Api
from localgcp.apis.server import failed_precondition, invalid_argument, permission_denied
from localgcp.cloudbuild.records import LIVE, RESOURCE, Build, BuildTable, Status
from localgcp.cloudbuild.runner import IMAGE, BuildAccess, BuildRunner
from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory.machines import is_region
from localgcp.inventory.store import Store, project_number
from localgcp.runner.gcsfuse import storage_client
from localgcp.vertex.checks import usable_project
from localgcp.vertex.log_entries import Lines
from localgcp.vertex.operations import packed

API: Final = "cloudbuild.googleapis.com"


class CloudBuild:
    """Serves ``google.devtools.cloudbuild.v1.CloudBuild``. Methods raise ApiError."""

    api: ClassVar = Api("google.cloud.devtools.cloudbuild_v1", "cloud_build")

    def __init__(
        self,
        home: Home,
        store: Store,
        storage_url: str,
        environment: Callable[[], Mapping[str, str]],
        program: tuple[str, ...] = (),
    ) -> None:
        self.store, self.builds = store, BuildTable(home.builds)
        self.runner = BuildRunner(self.builds, home.children, storage_url, environment, program)
        self.runner.recover()

    def entries(self) -> dict[str, Lines]:
        """Return the readers of build logs for Cloud Logging, by resource type."""
        return {RESOURCE: self.builds.lines}

    def stop(self) -> None:
        """End all builds."""
        self.runner.stop()

    def create_build(self, request: cloudbuild_v1.CreateBuildRequest) -> operations_pb2.Operation:
        """Accept and start a build."""
        parent = request.parent or f"projects/{request.project_id}"
        project, region = resolve_parent(self.store, parent)
        build = Build(request.build)  # copies the build
        access = check_build(self.store, project, build)
        generation = resolve_source(access, build, self.runner.storage_url)
        build.id = str(uuid.uuid4())
        build.project_id = project
        build.name = f"projects/{project_number(project)}/locations/{region}/builds/{build.id}"
        build.status = Status.QUEUED
        build.create_time = datetime.datetime.now(tz=datetime.UTC)  # pyright: ignore[reportAttributeAccessIssue]
        build.timeout = build.timeout or datetime.timedelta(hours=1)  # pyright: ignore[reportAttributeAccessIssue]
        if build.timeout > datetime.timedelta(days=1):  # pyright: ignore[reportOperatorIssue]
            raise invalid_argument("invalid build: timeout exceeds 24h")
        resolved = build.source.storage_source
        build.source_provenance.resolved_storage_source = cloudbuild_v1.StorageSource(
            bucket=resolved.bucket, object_=resolved.object_, generation=generation
        )
        build.log_url = (
            f"https://console.cloud.google.com/cloud-build/builds;region={region}/{build.id}"
            f"?project={project_number(project)}"
        )
        self.builds.add(build)
        self.runner.start(build.id, access)
        metadata = cloudbuild_v1.BuildOperationMetadata(build=build)
        name = f"operations/build/{build.project_id}/{uuid.UUID(build.id).hex}"
        return operations_pb2.Operation(name=name, metadata=packed(metadata))

    def get_build(self, request: cloudbuild_v1.GetBuildRequest) -> Build:
        """Return the build."""
        return self._existing(request.name or f"builds/{request.id}", request.project_id)

    def list_builds(
        self, request: cloudbuild_v1.ListBuildsRequest
    ) -> cloudbuild_v1.ListBuildsResponse:
        """Return the builds of a project's region, newest first."""
        parent = request.parent or f"projects/{request.project_id}/locations/global"
        project, region = resolve_parent(self.store, parent)
        tagged = re.fullmatch(r'tags\s*=\s*"(?P<tag>[^"]*)"', request.filter.strip())
        if request.page_token or (request.filter and tagged is None):
            text = f"filter {request.filter!r}, page_token {request.page_token[:80]!r}"
            rule = "the local cloud lists builds only by one tag, on one page"
            raise invalid_argument(f"{rule}: {text}")
        place = f"projects/{project_number(project)}/locations/{region}/"
        builds = [build for build in self.builds.all() if build.name.startswith(place)]
        if tagged:
            builds = [build for build in builds if tagged["tag"] in build.tags]
        return cloudbuild_v1.ListBuildsResponse(builds=builds)

    def cancel_build(self, request: cloudbuild_v1.CancelBuildRequest) -> Build:
        """Cancel a build and return the build."""
        build = self._existing(request.name or f"builds/{request.id}", request.project_id)
        if build.status not in LIVE:
            raise failed_precondition("cannot cancel a build that has completed")
        self.runner.cancel(build.id)
        return self.builds.get(build.id) or build

    def _existing(self, name: str, project_id: str) -> Build:
        match = re.fullmatch(r"(?P<parent>projects/[^/]+/locations/[^/]+)/builds/[^/]+", name)
        parent = match["parent"] if match else f"projects/{project_id}"
        project, _ = resolve_parent(self.store, parent)
        build = self.builds.get(name.rpartition("/")[2])
        if build is None or build.project_id != project:
            raise ApiError(grpc.StatusCode.NOT_FOUND, "Requested entity was not found.")
        return build


def resolve_parent(store: Store, parent: str) -> tuple[str, str]:
    """Return project id and region of a parent. Raises ApiError."""
    form = r"projects/(?P<project>[^/]+)(?:/locations/(?P<region>[^/]+))?"
    match = re.fullmatch(form, parent)
    if match is None:
        raise invalid_argument(f"invalid parent {parent!r}: expected projects/P/locations/L")
    region = match["region"] or "global"
    if region != "global" and not is_region(region):
        text = f"location {region[:80]!r} does not exist"
        raise invalid_argument(f"invalid parent {parent!r}: {text}")
    return usable_project(store, match["project"], (API, "Cloud Build API")), region


def check_build(store: Store, project: str, build: cloudbuild_v1.Build) -> BuildAccess:
    """Check a build, and return the access of the build's account. Raises ApiError."""
    if not build.steps:
        raise invalid_argument("invalid build: no build steps defined")
    for image in build.images:
        if not IMAGE.match(image):
            raise invalid_argument(f"invalid image name {image!r}")
    form = r"projects/[^/]+/serviceAccounts/(?P<email>[^/]+@[^/]+)"
    match = re.fullmatch(form, build.service_account)
    if match is None:  # the local cloud has no default account
        text = "expected the name of an account"
        raise invalid_argument(f"invalid value for 'build.service_account': {text}")
    if store.account(match["email"]) is None:
        raise permission_denied(
            f"caller does not have permission to act as service account {build.service_account} "
            "(or it may not exist)"
        )
    return BuildAccess(store, project, match["email"])


def resolve_source(access: BuildAccess, build: cloudbuild_v1.Build, storage_url: str) -> int:
    """Return the generation of the source's object. Raises ApiError."""
    source = build.source.storage_source
    where = f"{source.bucket}/{source.object_}"
    if not source.bucket or not source.object_:
        raise invalid_argument("invalid build: the local cloud supports only storage_source")
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
