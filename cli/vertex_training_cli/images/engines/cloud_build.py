"""Cloud Build: images are built on Google's machines, by an account of their own.

Every step can be repeated: the source is named by its content, and a running build of the same
identity is found by its tag and followed, also one that a killed command left behind. Of two builds
that were started at the same moment the earlier one stays.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vertex_training.customjob.google.job_service import enum_name
from vertex_training.errors import ImageBuildError, OperatorError
from vertex_training.naming import IMAGE_BUILD, STAGING, Names, stack_of_repository
from vertex_training_cli.images.engines import (
    build_logs,
    build_request,
    build_service,
    build_sources,
)
from vertex_training_cli.images.engines.build_service import BuildService
from vertex_training_cli.images.engines.engine import Build
from vertex_training_cli.images.engines.processes import Deadline, LastLines

if TYPE_CHECKING:
    from google.cloud.devtools import cloudbuild_v1

NAME: Final = "cloud-build"
LIVE: Final = ("PENDING", "QUEUED", "WORKING")
POLL_SECONDS: Final = 2.0
#: A build is cancelled within seconds; more than this, and somebody must look.
CANCEL_SECONDS: Final = 30.0
#: How long a build whose answer was lost may take to be listed.
SETTLE_SECONDS: Final = 10.0
#: Entries reach Cloud Logging some seconds after they were written.
LAST_READS: Final = 2

WriteLog = Callable[[str], None]


def find(name: str, project: str, region: str) -> CloudBuildEngine | None:
    """The engine of a project and region: it is always there."""
    return CloudBuildEngine(project, region) if name == NAME else None


@dataclass(frozen=True, slots=True)
class CloudBuildEngine:
    """``Engine`` on Cloud Build, in one project and region."""

    project: str
    region: str
    poll_seconds: float = POLL_SECONDS
    name: str = NAME

    def build(self, build: Build, write_log: WriteLog) -> str:
        """See ``Engine.build``."""
        from vertex_training.customjob.google import logs
        from vertex_training.customjob.google.storage_client import storage_client

        names = self._names(build)
        try:
            service = BuildService(build_service.connect(self.project), names)
            entries = logs.client(self.project)
            client = storage_client(self.project)
        except OperatorError as error:
            raise ImageBuildError(str(error)) from None
        source = build_sources.upload(client, build.archive, names)
        wanted = build_request.build_message(build, names, source, secrets.token_hex(8))
        run = _Run(build, wanted, service, names, self.poll_seconds, LastLines(write_log))
        found, started = run.join_or_start()
        log = build_logs.BuildLog(entries, self.project, found.id)
        return run.follow(found, log, started=started)

    def _names(self, build: Build) -> Names:
        """Names of the stack in whose repository the image lies."""
        _, project, repository, _ = build.image.split("/", 3)
        if project != self.project or stack_of_repository(repository) == repository:
            raise ImageBuildError(
                f"repository {repository} is none that a stack made: Cloud Build has no account "
                "that may push there.",
                hint="build with an engine of this machine: --engine docker, podman or buildah.",
            )
        return Names(self.project, "", self.region, stack_of_repository(repository))


@dataclass(frozen=True, slots=True)
class _Run:
    """One call of ``build``."""

    build: Build
    wanted: cloudbuild_v1.Build
    service: BuildService
    names: Names
    poll_seconds: float
    log: LastLines

    def join_or_start(self) -> tuple[cloudbuild_v1.Build, bool]:
        """A live build of the same identity, and whether this call started it."""
        if running := self._live():
            self.log.write(f"{self.build.name}: follows build {running[0].id}, which runs already")
            return running[0], False
        try:
            made = self.service.create(self.wanted) or self._settle()
        except KeyboardInterrupt:
            self._cancel_unanswered()
            raise
        self.log.write(f"{self.build.name}: build {made.id}, {made.log_url}")
        return self._first_of(made)

    def _live(self) -> list[cloudbuild_v1.Build]:
        """Live builds that make the same image, earliest first."""
        found = self.service.list_tagged(self.build.tag)
        same = [
            each
            for each in found
            if enum_name(each.status) in LIVE and build_request.makes_the_same(each, self.wanted)
        ]
        return sorted(same, key=lambda each: (each.create_time, each.id))  # pyright: ignore

    def _first_of(self, made: cloudbuild_v1.Build) -> tuple[cloudbuild_v1.Build, bool]:
        """Of builds that were started at once the earliest stays; the others are cancelled."""
        first = next(iter(self._live()), made)
        if first.id == made.id:
            return made, True
        self.service.cancel(_name(made, self.service))
        self.log.write(f"{self.build.name}: build {first.id} was started before: {made.id} ends")
        return first, False

    def _settle(self) -> cloudbuild_v1.Build:
        """The build of this call, whose answer was lost."""
        deadline = Deadline(SETTLE_SECONDS)
        while True:
            if found := self._of_this_call():
                return found
            if not deadline.seconds_left:
                raise ImageBuildError(
                    f"{self.build.name}: Cloud Build gave no certain answer.",
                    hint="run it again: a build that was started is found and followed.",
                )
            time.sleep(min(self.poll_seconds, deadline.seconds_left))

    def _of_this_call(self) -> cloudbuild_v1.Build | None:
        attempt = self.wanted.substitutions[build_request.ATTEMPT]
        for each in self.service.list_tagged(self.build.tag):
            if each.substitutions.get(build_request.ATTEMPT) == attempt:
                return each
        return None

    def _cancel_unanswered(self) -> None:
        with suppress(ImageBuildError):
            if found := self._of_this_call():
                self.cancel(found)

    def follow(self, found: cloudbuild_v1.Build, log: build_logs.BuildLog, *, started: bool) -> str:
        """Pass the log on until the build has ended; the digest of its image."""
        limit = self.build.timeout + build_request.QUEUE_SECONDS + CANCEL_SECONDS
        deadline, name = Deadline(limit), _name(found, self.service)
        reader = _LogReader(self, log)
        try:
            while enum_name(found.status) in LIVE:
                if not deadline.seconds_left:
                    raise self._failed(found, f"has not ended after {limit:g} s")
                time.sleep(self.poll_seconds)
                found = self.service.get(name)
                reader.read()
            reader.read_to_end()
        except KeyboardInterrupt:
            self._interrupted(found, started=started)
            raise
        return self._digest(found)

    def _interrupted(self, found: cloudbuild_v1.Build, *, started: bool) -> None:
        if started:
            self.cancel(found)
            return
        # Another command waits for it: it is not this one's to end.
        region = self.names.region
        command = f"gcloud builds cancel {found.id} --region {region}"
        self.log.write(f"{self.build.name}: build {found.id} goes on; to end it: {command}")

    def cancel(self, found: cloudbuild_v1.Build) -> None:
        """Cancel, and look until the build has ended."""
        name, deadline = _name(found, self.service), Deadline(CANCEL_SECONDS)
        with suppress(ImageBuildError):
            self.service.cancel(name)
            while (status := enum_name(self.service.get(name).status)) in LIVE:
                if not deadline.seconds_left:
                    break
                time.sleep(min(self.poll_seconds, deadline.seconds_left))
            else:
                self.log.write(f"{self.build.name}: build {found.id} is {status}")
                return
        region = self.names.region
        command = f"gcloud builds cancel {found.id} --region {region}"
        self.log.write(f"{self.build.name}: build {found.id} may still run: {command}")

    def _digest(self, ended: cloudbuild_v1.Build) -> str:
        if enum_name(ended.status) != "SUCCESS":
            raise self._failed(ended, _end(ended, self.build))
        for image in ended.results.images:
            if image.name in (self.build.reference, self.build.image) and image.digest:
                return image.digest
        raise self._failed(ended, "ended well and reports no digest of the image")

    def _failed(self, ended: cloudbuild_v1.Build, what: str) -> ImageBuildError:
        text = f"{self.build.name}: build {ended.id} {what}."
        return ImageBuildError(text, self.log.lines, _hint(ended, self.names))


class _LogReader:
    """Passes the log on. A log that cannot be read stops no build."""

    def __init__(self, run: _Run, log: build_logs.BuildLog) -> None:
        self._run, self._log, self._refused = run, log, False

    def read(self) -> bool:
        """Pass new lines on; whether there were any."""
        any_line = False
        try:
            for line in self._log.new_lines() if not self._refused else ():
                any_line = True
                self._run.log.write(line)
        except OperatorError as error:
            self._refused = True
            self._run.log.write(
                f"the log cannot be read: {error} It takes roles/logging.viewer in project "
                f"{self._run.names.project}; the build goes on."
            )
        return any_line

    def read_to_end(self) -> None:
        """Pass on what arrives after the end."""
        quiet = 0
        while quiet < LAST_READS and not self._refused:
            quiet = 0 if self.read() else quiet + 1
            if quiet < LAST_READS:
                time.sleep(self._run.poll_seconds)


def _name(build: cloudbuild_v1.Build, service: BuildService) -> str:
    return build.name or f"{service.parent}/builds/{build.id}"


def _end(ended: cloudbuild_v1.Build, build: Build) -> str:
    """How a build ended that gave no image."""
    ends = {
        "TIMEOUT": f"took longer than {build.timeout:g} s and was ended",
        "CANCELLED": "was cancelled",
        "EXPIRED": f"did not begin within {build_request.QUEUE_SECONDS} s",
        "INTERNAL_ERROR": "failed inside of Cloud Build",
    }
    detail = ended.failure_info.detail or ended.status_detail
    text = ends.get(enum_name(ended.status), "failed")
    return f"{text} ({enum_name(ended.status)}{f': {detail.rstrip(chr(46))}' if detail else ''})"


def _hint(ended: cloudbuild_v1.Build, names: Names) -> str:
    account = names.account_email(IMAGE_BUILD)
    by_failure = {
        "PUSH_NOT_AUTHORIZED": f"{account} needs roles/artifactregistry.writer on repository "
        f"{names.repository_id()}: deploy the stack, which grants it.",
        "FETCH_SOURCE_FAILED": f"{account} needs roles/storage.objectViewer on bucket "
        f"{names.bucket(STAGING)}: deploy the stack, which grants it.",
        "LOGGING_FAILURE": f"{account} needs roles/logging.logWriter in project {names.project}: "
        "deploy the stack, which grants it.",
    }
    by_status = {
        "TIMEOUT": "raise --timeout.",
        "CANCELLED": "run it again.",
        "EXPIRED": "run it again; Cloud Build has a quota of builds at a time.",
        "INTERNAL_ERROR": "run it again.",
        "FAILURE": "correct what the log shows.",
    }
    return by_failure.get(enum_name(ended.failure_info.type_)) or by_status.get(
        enum_name(ended.status), ""
    )
