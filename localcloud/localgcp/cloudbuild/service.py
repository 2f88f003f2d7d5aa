"""Cloud Build v1: create, get, list and cancel, as far as building images needs them."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

import grpc
from google.cloud.devtools import cloudbuild_v1
from google.cloud.logging_v2 import types
from google.longrunning import operations_pb2
from google.protobuf import any_pb2

from localgcp.apis.client import Api
from localgcp.apis.refusals import failed_precondition, invalid_argument
from localgcp.cloudbuild import checks
from localgcp.cloudbuild.records import LIVE, RESOURCE, Build, BuildTable, Status, entries_of
from localgcp.cloudbuild.runner import SLOTS, BuildRunner
from localgcp.errors import ApiError
from localgcp.home import Home
from localgcp.inventory.store import Store, project_number

_DAY: Final = datetime.timedelta(days=1)
_NAME: Final = re.compile(r"(?P<parent>projects/[^/]+/locations/[^/]+)/builds/(?P<id>[^/]+)\Z")
_CLAUSE: Final = re.compile(r'(?P<field>tags|status|build_id)\s*=\s*"(?P<value>[^"]*)"\Z')
_PAGE: Final = 100


class BuildService:
    """``google.devtools.cloudbuild.v1.CloudBuild``. Methods raise ApiError."""

    api: ClassVar = Api("google.cloud.devtools.cloudbuild_v1", "cloud_build")

    def __init__(self, store: Store, builds: BuildTable, runner: BuildRunner) -> None:
        self.store, self.builds, self.runner = store, builds, runner

    def create_build(self, request: cloudbuild_v1.CreateBuildRequest) -> operations_pb2.Operation:
        """Accept a build; it runs by itself."""
        parent = request.parent or f"projects/{request.project_id}"
        project, region = checks.resolve_parent(self.store, parent)
        build = Build(request.build)  # a copy
        access = checks.check_build(self.store, project, build)
        generation = checks.resolve_source(access, build, self.runner.storage_url)
        build.id = str(uuid.uuid4())
        build.project_id = project
        build.name = f"projects/{project_number(project)}/locations/{region}/builds/{build.id}"
        build.status = Status.QUEUED
        build.create_time = datetime.datetime.now(tz=datetime.UTC)  # pyright: ignore[reportAttributeAccessIssue]
        build.timeout = build.timeout or datetime.timedelta(hours=1)  # pyright: ignore[reportAttributeAccessIssue]
        build.queue_ttl = build.queue_ttl or datetime.timedelta(hours=1)  # pyright: ignore[reportAttributeAccessIssue]
        if build.timeout > _DAY:  # pyright: ignore[reportOperatorIssue]
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
        return _operation(build)

    def get_build(self, request: cloudbuild_v1.GetBuildRequest) -> Build:
        """The build as it is now."""
        return self._existing(request.name or f"builds/{request.id}", request.project_id)

    def list_builds(
        self, request: cloudbuild_v1.ListBuildsRequest
    ) -> cloudbuild_v1.ListBuildsResponse:
        """Builds of a project's region, newest first."""
        parent = request.parent or f"projects/{request.project_id}/locations/global"
        project, region = checks.resolve_parent(self.store, parent)
        wanted = _clauses(request.filter)
        if request.page_size < 0:
            raise invalid_argument(f"page_size must not be negative, got {request.page_size}.")
        if not re.fullmatch(r"[0-9]{0,9}", request.page_token):
            raise invalid_argument(f"Invalid page token: {request.page_token[:80]!r}.")
        place = f"projects/{project_number(project)}/locations/{region}/"
        found = [
            build
            for build in self.builds.all()
            if build.name.startswith(place) and all(_holds(build, *each) for each in wanted)
        ]
        begin = int(request.page_token or 0)
        end = begin + min(request.page_size or _PAGE, _PAGE)
        return cloudbuild_v1.ListBuildsResponse(
            builds=found[begin:end], next_page_token=str(end) if end < len(found) else ""
        )

    def cancel_build(self, request: cloudbuild_v1.CancelBuildRequest) -> Build:
        """End a build. Returns it as it is then; one that has ended cannot be cancelled."""
        build = self._existing(request.name or f"builds/{request.id}", request.project_id)
        if build.status not in LIVE:
            raise failed_precondition("cannot cancel a build that has completed")
        self.runner.cancel(build.id)
        return self.builds.get(build.id) or build

    def _existing(self, name: str, project_id: str) -> Build:
        match = _NAME.match(name)
        if match:
            project, _ = checks.resolve_parent(self.store, match["parent"])
        else:
            project, _ = checks.resolve_parent(self.store, f"projects/{project_id}")
        build = self.builds.get(name.rpartition("/")[2])
        if build is None or build.project_id != project:
            raise ApiError(grpc.StatusCode.NOT_FOUND, "Requested entity was not found.")
        return build


def _operation(build: Build) -> operations_pb2.Operation:
    metadata = cloudbuild_v1.BuildOperationMetadata(build=build)
    packed = any_pb2.Any()
    packed.Pack(cloudbuild_v1.BuildOperationMetadata.pb(metadata))
    encoded = uuid.UUID(build.id).hex
    return operations_pb2.Operation(
        name=f"operations/build/{build.project_id}/{encoded}", metadata=packed
    )


def _clauses(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in re.split(r"\s+AND\s+", text.strip()) if text.strip() else ():
        clause = _CLAUSE.match(part.strip())
        if clause is None:
            raise invalid_argument(f"invalid filter: {part!r} (the local cloud knows few)")
        found.append((clause["field"], clause["value"]))
    return found


def _holds(build: Build, field: str, value: str) -> bool:
    values: dict[str, Any] = {
        "tags": list(build.tags),
        "status": [Status(build.status).name],
        "build_id": [build.id],
    }
    return value in values[field]


class CloudBuild:
    """Cloud Build of one server."""

    def __init__(
        self,
        home: Home,
        store: Store,
        storage_url: str,
        environment: Callable[[], Mapping[str, str]],
        *,
        slots: int = SLOTS,
        program: tuple[str, ...] = (),
    ) -> None:
        """Ends the builds of a killed server. ``environment``: what engines need to push."""
        self.builds = BuildTable(home.builds)
        self._runner = BuildRunner(
            self.builds, home.children, storage_url, environment, slots=slots, program=program
        )
        self._runner.recover()
        self.service = BuildService(store, self.builds, self._runner)

    def entries(self) -> dict[str, Callable[[str, dict[str, str]], Iterator[types.LogEntry]]]:
        """What Cloud Logging reads of builds, by type of resource."""
        return {RESOURCE: entries_of(self.builds)}

    def stop(self) -> None:
        """End all builds."""
        self._runner.stop()
