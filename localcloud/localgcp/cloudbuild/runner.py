"""Run builds of one image, with a thread and a process for each build.

QUEUED ─► WORKING ─► SUCCESS, FAILURE, TIMEOUT, INTERNAL_ERROR
   └──────────┴────► CANCELLED
"""

from __future__ import annotations

import datetime
import gzip
import importlib.metadata
import json
import os
import re
import shutil
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild.records import LIVE, Build, BuildTable, Status
from localgcp.errors import CommandNotFoundError, UnsupportedBuildError
from localgcp.home.environment import server_environment
from localgcp.inventory.store import LOG_WRITERS, Store, has_role
from localgcp.runner import replica
from localgcp.runner.gcsfuse import storage_client
from localgcp.runner.replica import Ending, Launch
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder
from localgcp.vertex.admission import READERS as VIEWERS
from localgcp.vertex.admission import WRITERS
from localgcp.vertex.job_logs import JobLog

#: Entry point group of the image builder. ``python -m MODULE BUILD DIGEST`` reads the file BUILD
#: and writes the file DIGEST.
BUILDER: Final = "localgcp.image_builder"
DOCKER: Final = "gcr.io/cloud-builders/docker"
#: Options with a value but without effect in the local cloud.
IGNORED: Final = frozenset(
    {"--builder", "--platform", "--provenance", "--progress", "--cache-from", "--cache-to"}
)
REPEATED: Final = frozenset({"--build-arg", "--label"})
SINGLE: Final = frozenset({"--file", "--tag", "--target"})
_Failure = cloudbuild_v1.Build.FailureInfo
PUSHERS: Final = frozenset(
    f"roles/artifactregistry.{role}" for role in ("writer", "repoAdmin", "admin")
)
IMAGE: Final = re.compile(
    r"(?P<region>[a-z0-9-]+)-docker\.pkg\.dev/(?P<project>[^/]+)/(?P<repository>[^/]+)/[^:@]+(?::[\w.-]+)?\Z"
)


@dataclass(frozen=True)
class BuildAccess:
    """The permissions of a build's account."""

    store: Store
    project: str
    email: str

    def reads(self, bucket: str) -> bool:
        """Return whether the account may read objects of the bucket."""
        owner = (self.store.bucket(bucket) or {}).get("project") or self.project
        places = (f"projects/{owner}", f"b/{bucket}")
        return has_role(self.store, self.email, VIEWERS | WRITERS, *places)

    def writes_logs(self) -> bool:
        """Return whether the account may write log entries."""
        return has_role(self.store, self.email, LOG_WRITERS, f"projects/{self.project}")

    def pushes(self, image: str) -> bool:
        """Return whether the account may push this image."""
        match = IMAGE.match(image)
        if match is None:
            return False
        project = f"projects/{match['project']}"
        place = f"{project}/locations/{match['region']}/repositories/{match['repository']}"
        return has_role(self.store, self.email, PUSHERS, project, place)


class BuildRunner:
    """Runs the builds of one server."""

    def __init__(
        self,
        builds: BuildTable,
        children: Path,
        storage_url: str,
        environment: Callable[[], Mapping[str, str]],
        program: tuple[str, ...] = (),
    ) -> None:
        # ``children`` is the folder of process records; ``environment`` returns variables for
        # pushing images; ``program`` replaces the installed image builder.
        self.storage_url = storage_url
        self._builds, self._children, self._environment = builds, children, environment
        self._program = program
        self._cancelled: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []

    def recover(self) -> None:
        """Set the active builds of a killed server to failed."""
        for build in self._builds.all():
            if build.status in LIVE:
                self._end(build.id, Status.INTERNAL_ERROR, "the local cloud was stopped")

    def start(self, build_id: str, access: BuildAccess) -> None:
        """Start an accepted build."""
        self._cancelled[build_id] = threading.Event()
        thread = make_thread(self._run, build_id, access)
        self._threads.append(thread)
        thread.start()

    def cancel(self, build_id: str) -> None:
        """Cancel a build: change the record, and request the end of the process."""
        self._end(build_id, Status.CANCELLED)
        if event := self._cancelled.get(build_id):
            event.set()

    def stop(self) -> None:
        """End all builds and wait for their processes."""
        for event in list(self._cancelled.values()):
            event.set()
        for thread in self._threads:
            thread.join()

    def _run(self, build_id: str, access: BuildAccess) -> None:
        def begin(build: Build) -> None:
            build.status = Status.WORKING
            build.start_time = datetime.datetime.now(tz=datetime.UTC)  # pyright: ignore[reportAttributeAccessIssue]

        try:
            if self._builds.change(build_id, begin):
                self._work(build_id, access)
        except Exception as error:
            traceback.print_exc()  # writes to server.log
            self._end(build_id, Status.INTERNAL_ERROR, f"internal error: {type(error).__name__}")
        finally:
            delete_folder(self._builds.work(build_id))

    def _work(self, build_id: str, access: BuildAccess) -> None:
        build = self._builds.get(build_id)
        assert build is not None
        # Discard the log if the account may not write log entries.
        log = JobLog(self._builds.log(build_id) if access.writes_logs() else Path(os.devnull))
        work = self._builds.work(build_id)
        work.mkdir()
        archive = work / "source.tar"
        try:
            self._fetch(build, work / "source.tar.gz", archive)
        except (GoogleAPICallError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            log.append(f"cannot fetch the source: {error}")
            self._fail(build_id, "FETCH_SOURCE_FAILED", "failed to fetch the source")
            return
        try:
            request = engine_request(build, str(archive))
        except UnsupportedBuildError as error:
            text = "the local cloud supports only builds by docker buildx; not supported:"
            log.append(f"{text} {error}")
            self._fail(build_id, "USER_BUILD_STEP", "the local cloud cannot run this build")
            return
        if not access.pushes(build.images[0]):
            text = 'denied: Permission "artifactregistry.repositories.uploadArtifacts" denied'
            log.append(f"{text} on resource of {build.images[0]} (or it may not exist)")
            self._fail(build_id, "PUSH_NOT_AUTHORIZED", f"failed to push {build.images[0]}")
            return
        self._build(build, request, log, work)

    def _build(self, build: Build, request: Mapping[str, object], log: JobLog, work: Path) -> None:
        program = self._program or installed_builder()
        if not program:
            log.append(f"no installed package provides an image builder (entry point {BUILDER})")
            text = "the local cloud has no image builder"
            self._fail(build.id, "USER_BUILD_STEP", text)
            return
        request_file, result = work / "request.json", work / "digest"
        request_file.write_text(json.dumps(request), encoding="utf-8")
        seconds = build.timeout.total_seconds()  # pyright: ignore[reportAttributeAccessIssue]
        env = {**server_environment(), **self._environment(), "TMPDIR": str(work)}
        try:
            outcome = replica.run(
                Launch([*program, str(request_file), str(result)], env),
                cwd=work,
                log=log,
                notes=self._children,
                cancelled=self._cancelled[build.id],
                timeout_seconds=seconds,
            )
        except CommandNotFoundError as error:
            self._end(build.id, Status.INTERNAL_ERROR, str(error))
            return
        if outcome.ending is Ending.TIMED_OUT:
            self._end(build.id, Status.TIMEOUT)
        elif outcome.ending is Ending.CANCELLED:
            self._end(build.id, Status.INTERNAL_ERROR, "the local cloud was stopped")
        elif outcome.code or not result.exists():
            text = f'build step 1 "{DOCKER}" failed: step exited with non-zero status'
            self._fail(build.id, "USER_BUILD_STEP", f"{text}: {outcome.code}")
        else:
            digest = result.read_text(encoding="utf-8").strip()
            image = cloudbuild_v1.BuiltImage(name=build.images[0], digest=digest)
            results = cloudbuild_v1.Results(images=[image])
            self._end(build.id, Status.SUCCESS, results=results)

    def _fetch(self, build: Build, packed: Path, archive: Path) -> None:
        source = build.source_provenance.resolved_storage_source
        blob = storage_client(self.storage_url).bucket(source.bucket).blob(source.object_)
        blob.download_to_filename(str(packed), if_generation_match=int(source.generation))
        with gzip.open(packed, "rb") as plain, archive.open("wb") as target:
            shutil.copyfileobj(plain, target)

    def _fail(self, build_id: str, kind: str, detail: str) -> None:
        failure = _Failure(type_=_Failure.FailureType[kind], detail=detail)
        self._end(build_id, Status.FAILURE, detail, failure_info=failure)

    def _end(self, build_id: str, status: Status, detail: str = "", **fields: Any) -> None:
        def end(build: Build) -> None:
            build.status, build.status_detail = status, detail
            build.finish_time = datetime.datetime.now(tz=datetime.UTC)  # pyright: ignore[reportAttributeAccessIssue]
            for name, value in fields.items():
                setattr(build, name, value)

        self._builds.change(build_id, end)


def installed_builder() -> tuple[str, ...]:
    """Return the command of the installed image builder; empty without a builder."""
    for entry_point in importlib.metadata.entry_points(group=BUILDER):
        return sys.executable, "-m", entry_point.module
    return ()


def engine_request(build: cloudbuild_v1.Build, archive: str) -> dict[str, Any]:
    """Return the fields of a build for the image builder. Raises UnsupportedBuildError."""
    for step in build.steps:
        if step.name.partition(":")[0] != DOCKER or step.entrypoint:
            raise UnsupportedBuildError(f"step {step.name}")

    def value(match: re.Match[str]) -> str:  # an unset variable is empty, as with ALLOW_LOOSE
        return "$" if match[0] == "$$" else build.substitutions.get(match[1], "")

    variable = r"\$\$|\$\{?(_[A-Z0-9_]+|[A-Z][A-Z0-9_]*)\}?"
    commands = [[re.sub(variable, value, arg) for arg in step.args] for step in build.steps]
    builds = [args[2:] for args in commands if args[:2] == ["buildx", "build"]]
    creations = [args for args in commands if args[:2] == ["buildx", "create"]]
    if len(builds) != 1 or len(builds) + len(creations) != len(commands):
        text = "docker commands other than `buildx create` and one `buildx build`"
        raise UnsupportedBuildError(text)
    options = _options(builds[0])
    reference = options["--tag"]
    folder, slash, last = reference.rpartition("/")  # the host may have a port
    name, _, tag = last.partition(":")
    if list(build.images) != [reference]:
        raise UnsupportedBuildError(f"images {list(build.images)} differ from --tag {reference}")
    return {
        "name": name,
        "archive": archive,
        "context": ".",
        "dockerfile": options.get("--file", "Dockerfile"),
        "build_args": options["--build-arg"],
        "target": options.get("--target", ""),
        "image": f"{folder}{slash}{name}",
        "tag": tag or "latest",  # docker's default
        "labels": options["--label"],
        "identity": build.substitutions.get("_IDENTITY", ""),
        "timeout": build.timeout.total_seconds(),  # pyright: ignore[reportAttributeAccessIssue]
    }


def _options(args: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"--build-arg": {}, "--label": {}}
    rest = iter(args)
    for option in rest:
        if option in ("--load", "."):
            continue
        if option not in IGNORED | REPEATED | SINGLE:
            raise UnsupportedBuildError(f"docker buildx build {option}")
        value = next(rest, "")
        if option in REPEATED:
            key, _, text = value.partition("=")
            options[option][key] = text
        elif option in SINGLE:
            options[option] = value
    if "--tag" not in options:
        raise UnsupportedBuildError("docker buildx build without --tag")
    return options
