"""Build images with Cloud Build and a separate service account.

A repeated call follows the running build of the same image. BuildKit runs in a separate container
without access to the build account's credentials; its cache is in the image's repository.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from google.cloud.devtools import cloudbuild_v1
from google.protobuf.duration_pb2 import Duration

from vertex_training.customjob.google import logs
from vertex_training.customjob.google.intent_store import storage_client
from vertex_training.customjob.google.job_service import enum_name
from vertex_training.customjob.google.logs import JobLogs
from vertex_training.errors import ImageBuildError, OperatorError
from vertex_training.naming import IMAGE_BUILD, STAGING, Names, stack_of_repository
from vertex_training_cli.images.engines import SERVICE, Build, WriteLog, build_service, option_pairs
from vertex_training_cli.images.engines.build_service import BuildService
from vertex_training_cli.images.engines.commands import Deadline, LastLines

LIVE: Final = ("PENDING", "QUEUED", "WORKING")
POLL_SECONDS: Final = 2.0
#: Maximum duration of a cancellation in seconds. Then a person must check the build.
CANCEL_SECONDS: Final = 30.0
#: Docker builder of Cloud Build:
#: https://github.com/GoogleCloudPlatform/cloud-builders/tree/master/docker
DOCKER: Final = "gcr.io/cloud-builders/docker"
#: BuildKit image in Google's copy of Docker Hub, which does not limit pulls.
BUILDKIT: Final = "image=mirror.gcr.io/moby/buildkit:buildx-stable-1"
BUILDER: Final = "images"
#: Tag of the cached layers that the next build uses.
CACHE_TAG: Final = "buildcache"
#: Maximum time that a build waits in the queue, in seconds.
QUEUE_SECONDS: Final = 1800
#: Name of the substitution that contains the identity of the image to build.
IDENTITY: Final = "_IDENTITY"
#: Tag of all builds that this program requests.
OURS: Final = "vertex-training"


@dataclass(frozen=True, slots=True)
class CloudBuildEngine:
    """``Engine`` on Cloud Build, in one project and region."""

    project: str
    region: str
    poll_seconds: float = POLL_SECONDS
    name: str = SERVICE

    def build(self, build: Build, write_log: WriteLog) -> str:
        """Implement ``Engine.build``."""
        names = self._names(build)
        try:
            service = BuildService(build_service.connect(self.project), names)
            log, client = logs.connect(self.project), storage_client(self.project)
        except OperatorError as error:
            raise ImageBuildError(str(error)) from None
        source = build_service.upload(client, build.archive, names)
        request = build_message(build, names, source)
        run = _Run(build, request, service, names, self.poll_seconds, LastLines(write_log))
        current, started = run.join_or_start()
        return run.follow(current, log, started=started)

    def _names(self, build: Build) -> Names:
        _, project, repository, _ = build.image.split("/", 3)
        if project != self.project or stack_of_repository(repository) == repository:
            raise ImageBuildError(
                f"repository {repository} belongs to no stack, so no Cloud Build account "
                "can push to it.",
                hint="build on this machine with `--engine docker`, `podman` or `buildah`.",
            )
        return Names(self.project, "", self.region, stack_of_repository(repository))


@dataclass(frozen=True, slots=True)
class _Run:
    build: Build
    wanted: cloudbuild_v1.Build
    service: BuildService
    names: Names
    poll_seconds: float
    log: LastLines

    def join_or_start(self) -> tuple[cloudbuild_v1.Build, bool]:
        """Return a live build of the same image, and True if this call started the build."""
        if running := self._live():
            self._write(f"following build {running[0].id}, which is already running")
            return running[0], False
        created = self.service.create(self.wanted)
        self._write(f"build {created.id}, {created.log_url}")
        first = next(iter(self._live()), created)
        if first.id == created.id:
            return created, True
        self.service.cancel(_name(created, self.service))
        self._write(f"build {created.id} was cancelled: build {first.id} was started earlier")
        return first, False

    def _live(self) -> list[cloudbuild_v1.Build]:
        tagged = self.service.list_tagged(self.build.tag)
        same = [
            build
            for build in tagged
            if enum_name(build.status) in LIVE and makes_the_same(build, self.wanted)
        ]
        return sorted(same, key=lambda build: (build.create_time, build.id))  # pyright: ignore

    def follow(self, build: cloudbuild_v1.Build, log: JobLogs, *, started: bool) -> str:
        """Print the log until the build has ended, and return the digest of the image."""
        limit = self.build.timeout + QUEUE_SECONDS + CANCEL_SECONDS
        deadline, name = Deadline(limit), _name(build, self.service)

        def ended() -> bool:
            nonlocal build
            build = self.service.get(name)
            is_live = enum_name(build.status) in LIVE
            if is_live and not deadline.seconds_left:
                raise self._failed(build, f"has not ended after {limit:g} s")
            return not is_live

        def pause() -> None:
            time.sleep(self.poll_seconds)

        try:
            try:
                id_ = f"{logs.BUILD}{build.id}"
                for line in log.follow(id_, None, ended=ended, pause=pause, report=lambda _: None):
                    self.log.write(line.text)
            except OperatorError as error:
                self.log.write(
                    f"cannot read the log: {error}. You need roles/logging.viewer in project "
                    f"{self.names.project}. The build continues."
                )
                while not ended():
                    pause()
        except KeyboardInterrupt:
            if started:
                self.cancel(build)
            else:  # Another command started the build and waits for the result.
                command = self._cancel_command(build)
                self._write(f"build {build.id} continues. To cancel the build: {command}")
            raise
        return self._digest(build)

    def cancel(self, build: cloudbuild_v1.Build) -> None:
        """Cancel the build and wait until it has ended."""
        name, deadline = _name(build, self.service), Deadline(CANCEL_SECONDS)
        with suppress(ImageBuildError):
            self.service.cancel(name)
            while (status := enum_name(self.service.get(name).status)) in LIVE:
                if not deadline.seconds_left:
                    break
                time.sleep(min(self.poll_seconds, deadline.seconds_left))
            else:
                self._write(f"build {build.id} has the state {status}")
                return
        self._write(
            f"build {build.id} may still run. To cancel the build: {self._cancel_command(build)}"
        )

    def _cancel_command(self, build: cloudbuild_v1.Build) -> str:
        return f"gcloud builds cancel {build.id} --region {self.names.region}"

    def _write(self, line: str) -> None:
        self.log.write(f"{self.build.name}: {line}")

    def _digest(self, ended: cloudbuild_v1.Build) -> str:
        if enum_name(ended.status) != "SUCCESS":
            raise self._failed(ended, _end(ended, self.build))
        for image in ended.results.images:
            if image.name in (self.build.reference, self.build.image) and image.digest:
                return image.digest
        raise self._failed(ended, "succeeded, but reports no digest of the image")

    def _failed(self, ended: cloudbuild_v1.Build, what: str) -> ImageBuildError:
        text = f"{self.build.name}: build {ended.id} {what}."
        return ImageBuildError(text, self.log.lines, _hint(ended, self.names))


def _name(build: cloudbuild_v1.Build, service: BuildService) -> str:
    return build.name or f"{service.parent}/builds/{build.id}"


def _end(ended: cloudbuild_v1.Build, build: Build) -> str:
    ends = {
        "TIMEOUT": f"exceeded its limit of {build.timeout:g} s",
        "CANCELLED": "was cancelled",
        "EXPIRED": f"did not start within {QUEUE_SECONDS} s",
        "INTERNAL_ERROR": "failed with an internal error of Cloud Build",
    }
    detail = ended.failure_info.detail or ended.status_detail
    text = ends.get(enum_name(ended.status), "failed")
    return f"{text} ({enum_name(ended.status)}{f': {detail.rstrip(chr(46))}' if detail else ''})"


def _hint(ended: cloudbuild_v1.Build, names: Names) -> str:
    account = names.account_email(IMAGE_BUILD)
    roles = {
        "PUSH_NOT_AUTHORIZED": "roles/artifactregistry.writer on repository "
        f"{names.repository_id()}",
        "FETCH_SOURCE_FAILED": f"roles/storage.objectViewer on bucket {names.bucket(STAGING)}",
        "LOGGING_FAILURE": f"roles/logging.logWriter in project {names.project}",
    }
    if role := roles.get(enum_name(ended.failure_info.type_)):
        return f"deploy the stack, which grants {role} to {account}."
    by_status = {
        "TIMEOUT": "raise --timeout.",
        "CANCELLED": "run the command again.",
        "EXPIRED": "run the command again. Cloud Build limits the number of concurrent builds.",
        "INTERNAL_ERROR": "run the command again.",
        "FAILURE": "fix the error in the log.",
    }
    return by_status.get(enum_name(ended.status), "")


def build_message(
    build: Build, names: Names, source: cloudbuild_v1.StorageSource
) -> cloudbuild_v1.Build:
    """Return the request for a build."""
    options = cloudbuild_v1.BuildOptions
    # The daemon's own builder cannot write a cache to a registry.
    driver = ("--driver", "docker-container", "--driver-opt", BUILDKIT)
    create = ["buildx", "create", "--name", BUILDER, *driver]
    # Cloud Build reads `$` as the start of a substitution.
    arguments = [argument.replace("$", "$$") for argument in _arguments(build)]
    return cloudbuild_v1.Build(
        source=cloudbuild_v1.Source(storage_source=source),
        steps=[
            cloudbuild_v1.BuildStep(name=DOCKER, id="builder", args=create),
            cloudbuild_v1.BuildStep(name=DOCKER, id="build", args=arguments),
        ],
        images=[build.reference],
        service_account=names.account(IMAGE_BUILD),
        tags=[OURS, f"image-{build.name}", build.tag],
        substitutions={IDENTITY: build.identity},
        timeout=Duration(seconds=max(1, int(build.timeout))),
        queue_ttl=Duration(seconds=QUEUE_SECONDS),
        options=options(
            logging=options.LoggingMode.CLOUD_LOGGING_ONLY,
            substitution_option=options.SubstitutionOption.ALLOW_LOOSE,
        ),
    )


def makes_the_same(build: cloudbuild_v1.Build, wanted: cloudbuild_v1.Build) -> bool:
    """Return True if ``build`` builds the image of ``wanted``: same source, steps and account.

    The tag alone is not sufficient: every account that can start builds can set any tag.
    """
    return _essence(build) == _essence(wanted)


def _essence(build: cloudbuild_v1.Build) -> tuple[object, ...]:
    source = build.source.storage_source
    return (
        (source.bucket, source.object_, int(source.generation)),
        [(step.name, step.entrypoint, [*_without_labels(step.args)]) for step in build.steps],
        [*build.images],
        build.service_account.rpartition("/")[2],
        build.substitutions.get(IDENTITY),
    )


def _without_labels(args: Iterable[str]) -> Iterator[str]:
    values = iter(args)
    for arg in values:
        if arg == "--label":
            next(values, None)
        else:
            yield arg.replace("$$", "$")


def _arguments(build: Build) -> list[str]:
    cache = f"type=registry,ref={build.image}:{CACHE_TAG}"
    return [
        *("buildx", "build", "--builder", BUILDER, "--platform", "linux/amd64"),
        # Without provenance, the digest belongs to the image's manifest, not to an index.
        *("--provenance", "false", "--progress", "plain"),
        *("--file", build.dockerfile, "--tag", build.reference),
        *option_pairs("--build-arg", build.build_args),
        *option_pairs("--label", build.labels),
        *(("--target", build.target) if build.target else ()),
        *("--cache-from", cache),
        # With immutable tags, later writes of the cache are refused. Such errors are ignored.
        *(("--cache-to", f"{cache},mode=max,ignore-error=true") if build.writes_cache else ()),
        *("--load", "."),
    ]
