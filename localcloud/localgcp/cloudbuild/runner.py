"""Runs builds: a thread and a process for each, two at a time.

QUEUED ─► WORKING ─► SUCCESS, FAILURE, TIMEOUT, INTERNAL_ERROR
   └─► EXPIRED          └─► CANCELLED, from QUEUED too
"""

from __future__ import annotations

import datetime
import gzip
import importlib.metadata
import json
import os
import shutil
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.devtools import cloudbuild_v1

from localgcp.cloudbuild import steps
from localgcp.cloudbuild.checks import BuildAccess
from localgcp.cloudbuild.records import LIVE, Build, BuildTable, Status
from localgcp.environment import server_environment
from localgcp.errors import CommandNotFoundError, UnsupportedBuildError
from localgcp.folders import delete_folder
from localgcp.runner import replica
from localgcp.runner.gcsfuse import storage_client
from localgcp.runner.joblog import JobLog
from localgcp.runner.replica import Ending
from localgcp.threads import make_thread

#: Builds at a time.
SLOTS: Final = 2
#: Group of the entry point that names the image builder: a module that ``python -m`` runs with a
#: file of the build and one for the digest. localgcp brings none.
BUILDER: Final = "localgcp.image_builder"
_POLL_SECONDS: Final = 0.05
_Failure = cloudbuild_v1.Build.FailureInfo


class BuildRunner:
    """Runs the builds of one server."""

    def __init__(
        self,
        builds: BuildTable,
        children: Path,
        storage_url: str,
        environment: Callable[[], Mapping[str, str]],
        *,
        slots: int = SLOTS,
        program: tuple[str, ...] = (),
    ) -> None:
        """``children``: where processes are noted; ``environment``: what engines need to push.

        ``program`` builds images; without one the installed builder does.
        """
        self.storage_url = storage_url
        self._builds, self._children, self._environment = builds, children, environment
        self._slots, self._program = threading.Semaphore(slots), program
        self._cancelled: dict[str, threading.Event] = {}
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def recover(self) -> None:
        """End the builds of a server that was killed."""
        for build in self._builds.all():
            if build.status in LIVE:
                self._end(build.id, Status.INTERNAL_ERROR, "the local cloud was stopped")

    def start(self, build_id: str, access: BuildAccess) -> None:
        """Run a build that was accepted."""
        self._cancelled[build_id] = threading.Event()
        thread = make_thread(self._run, build_id, access)
        self._threads.append(thread)
        thread.start()

    def cancel(self, build_id: str) -> None:
        """End a build; its record says so at once, and its process ends within seconds."""
        self._end(build_id, Status.CANCELLED, "")
        if event := self._cancelled.get(build_id):
            event.set()

    def stop(self) -> None:
        """End all builds and wait for their processes."""
        self._stopping.set()
        for event in list(self._cancelled.values()):
            event.set()
        for thread in self._threads:
            thread.join()

    def _run(self, build_id: str, access: BuildAccess) -> None:
        try:
            if self._wait_for_slot(build_id):
                try:
                    self._work(build_id, access)
                finally:
                    self._slots.release()
        except Exception as error:
            traceback.print_exc()  # to the server's log
            self._end(build_id, Status.INTERNAL_ERROR, f"internal error: {type(error).__name__}")
        finally:
            delete_folder(self._builds.work(build_id))

    def _wait_for_slot(self, build_id: str) -> bool:
        build = self._builds.get(build_id)
        assert build is not None
        deadline = time.monotonic() + build.queue_ttl.total_seconds()  # pyright: ignore[reportAttributeAccessIssue]
        while not self._slots.acquire(timeout=_POLL_SECONDS):
            if self._cancelled[build_id].is_set():
                return False
            if time.monotonic() > deadline:
                self._end(build_id, Status.EXPIRED, "")
                return False
        if self._begin(build_id):
            return True
        self._slots.release()
        return False

    def _begin(self, build_id: str) -> bool:
        def begin(build: Build) -> None:
            build.status = Status.WORKING
            build.start_time = datetime.datetime.now(tz=datetime.UTC)  # pyright: ignore[reportAttributeAccessIssue]

        return self._builds.change(build_id, begin)

    def _work(self, build_id: str, access: BuildAccess) -> None:
        build = self._builds.get(build_id)
        assert build is not None
        log = self._log(build, access)
        work = self._builds.work(build_id)
        work.mkdir()
        archive = work / "source.tar"
        types = _Failure.FailureType
        try:
            self._fetch(build, work / "source.tar.gz", archive)
        except (GoogleAPICallError, gzip.BadGzipFile, EOFError, zlib.error) as error:
            log.append(f"the source cannot be fetched: {error}")
            self._fail(build_id, types.FETCH_SOURCE_FAILED, "failed to fetch the source")
            return
        try:
            request = steps.engine_request(build, str(archive))
        except UnsupportedBuildError as error:
            log.append(f"the local cloud builds images by docker buildx alone, not: {error}")
            self._fail(build_id, types.USER_BUILD_STEP, "the local cloud cannot run this build")
            return
        if not access.pushes(build.images[0]):
            text = 'denied: Permission "artifactregistry.repositories.uploadArtifacts" denied'
            log.append(f"{text} on resource of {build.images[0]} (or it may not exist)")
            self._fail(build_id, types.PUSH_NOT_AUTHORIZED, f"failed to push {build.images[0]}")
            return
        self._build(build, request, log, work)

    def _build(self, build: Build, request: Mapping[str, object], log: JobLog, work: Path) -> None:
        program = self._program or installed_builder()
        if not program:
            log.append(f"no installed package has an image builder (entry point {BUILDER})")
            text = "the local cloud has no image builder"
            self._fail(build.id, _Failure.FailureType.USER_BUILD_STEP, text)
            return
        given, result = work / "request.json", work / "digest"
        given.write_text(json.dumps(request), encoding="utf-8")
        seconds = build.timeout.total_seconds()  # pyright: ignore[reportAttributeAccessIssue]
        types = _Failure.FailureType
        try:
            outcome = replica.run(
                [*program, str(given), str(result)],
                env={**server_environment(), **self._environment(), "TMPDIR": str(work)},
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
            self._end(build.id, Status.TIMEOUT, "")
        elif outcome.ending is Ending.CANCELLED:
            self._end(build.id, Status.INTERNAL_ERROR, "the local cloud was stopped")
        elif outcome.code or not result.exists():
            text = f'build step 1 "{steps.DOCKER}" failed: step exited with non-zero status'
            self._fail(build.id, types.USER_BUILD_STEP, f"{text}: {outcome.code}")
        else:
            self._succeed(build, result.read_text(encoding="utf-8").strip())

    def _log(self, build: Build, access: BuildAccess) -> JobLog:
        """The build's log; nowhere if the account may not write it."""
        if access.writes_logs():
            return JobLog(self._builds.log(build.id))
        text = (
            f"The service account running this build {build.service_account} does not have "
            "permission to write logs to Cloud Logging. To fix this, grant the Logs Writer "
            "(roles/logging.logWriter) role to the service account."
        )

        def warn(changed: Build) -> None:
            warning = cloudbuild_v1.Build.Warning
            changed.warnings = [
                warning(text=text, priority=warning.Priority.ALERT)  # pyright: ignore[reportAttributeAccessIssue]
            ]

        self._builds.change(build.id, warn)
        return JobLog(Path(os.devnull))

    def _fetch(self, build: Build, packed: Path, archive: Path) -> None:
        """Download and unpack the source's generation."""
        source = build.source_provenance.resolved_storage_source
        blob = storage_client(self.storage_url).bucket(source.bucket).blob(source.object_)
        blob.download_to_filename(str(packed), if_generation_match=int(source.generation))
        with gzip.open(packed, "rb") as plain, archive.open("wb") as target:
            shutil.copyfileobj(plain, target)

    def _succeed(self, build: Build, digest: str) -> None:
        image = cloudbuild_v1.BuiltImage(name=build.images[0], digest=digest)

        def succeed(changed: Build) -> None:
            changed.results = cloudbuild_v1.Results(images=[image])
            _finish(changed, Status.SUCCESS, "")

        self._builds.change(build.id, succeed)

    def _fail(self, build_id: str, kind: _Failure.FailureType, detail: str) -> None:
        def fail(build: Build) -> None:
            build.failure_info = _Failure(type_=kind, detail=detail)
            _finish(build, Status.FAILURE, detail)

        self._builds.change(build_id, fail)

    def _end(self, build_id: str, status: Status, detail: str) -> None:
        self._builds.change(build_id, lambda build: _finish(build, status, detail))


def installed_builder() -> tuple[str, ...]:
    """The command of the installed image builder; empty if there is none."""
    for found in importlib.metadata.entry_points(group=BUILDER):
        return sys.executable, "-m", found.module
    return ()


def _finish(build: Build, status: Status, detail: str) -> None:
    build.status, build.status_detail = status, detail
    build.finish_time = datetime.datetime.now(tz=datetime.UTC)  # pyright: ignore[reportAttributeAccessIssue]
