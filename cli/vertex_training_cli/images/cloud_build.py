"""Build images with Cloud Build and a separate service account.

A repeated call follows the running build of the same image. BuildKit runs in a separate container
without access to the build account's credentials; its cache is in the image's repository.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from google.api_core.exceptions import (
    FailedPrecondition,
    GoogleAPICallError,
    PreconditionFailed,
    RetryError,
)
from google.auth.exceptions import GoogleAuthError
from google.cloud import storage
from google.cloud.devtools import cloudbuild_v1
from google.cloud.devtools.cloudbuild_v1.services.cloud_build.transports import (
    CloudBuildGrpcTransport,
)
from google.protobuf.duration_pb2 import Duration

from vertex_training.customjob.google import job_service, logs
from vertex_training.customjob.google.intent_store import storage_client
from vertex_training.customjob.google.job_service import enum_name, retry_of_reads
from vertex_training.customjob.google.logs import JobLogs
from vertex_training.errors import ImageBuildError, OperatorError
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, Names, stack_of_repository
from vertex_training.settings.project_files import file_name
from vertex_training_cli.images.programs import (
    SERVICE,
    Build,
    Deadline,
    LastLines,
    WriteLog,
    option_pairs,
)

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
TIMEOUT: Final = 20.0
CREATE_TIMEOUT: Final = 60.0
UPLOAD_TIMEOUT: Final = 60
#: Errors of Google's clients: a refused call, a timeout, missing credentials.
CALL_ERRORS: Final = (GoogleAPICallError, RetryError, GoogleAuthError)
#: Codes of failed calls that may still have started a build.
IN_DOUBT: Final = (
    *("UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED"),
)


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
            types = (cloudbuild_v1.CloudBuildClient, CloudBuildGrpcTransport)
            api = job_service.service_client(
                *types, self.project, endpoint="cloudbuild.googleapis.com"
            )
            log, client = logs.connect(self.project), storage_client(self.project)
        except OperatorError as error:
            raise ImageBuildError(str(error)) from None
        request = build_message(build, names, upload(client, build.archive, names))
        service, last_lines = BuildService(api, names), LastLines(write_log)
        run = _Run(build, request, service, names, self.poll_seconds, last_lines)
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
        self.service.cancel(created)
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
        deadline = Deadline(limit)

        def ended() -> bool:
            nonlocal build
            build = self.service.get(build)
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
        deadline = Deadline(CANCEL_SECONDS)
        with suppress(ImageBuildError):
            self.service.cancel(build)
            while (status := enum_name(self.service.get(build).status)) in LIVE:
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


class BuildService:
    """Builds in one stack's project and region. Refused calls raise ImageBuildError."""

    def __init__(self, client: cloudbuild_v1.CloudBuildClient, names: Names) -> None:
        self._client, self._names = client, names
        self.parent = f"projects/{names.project}/locations/{names.region}"

    def create(self, build: cloudbuild_v1.Build) -> cloudbuild_v1.Build:
        """Request a build, without retries."""
        request = cloudbuild_v1.CreateBuildRequest(
            parent=self.parent, project_id=self._names.project, build=build
        )
        try:
            operation = self._client.create_build(request, retry=None, timeout=CREATE_TIMEOUT)
        except CALL_ERRORS as error:
            failed = refused(error, "start a build", self._names)
            if code_of(error) in IN_DOUBT:
                hint = "run the command again: `vt` follows the build if the call started one."
                raise ImageBuildError(failed.message, hint=hint) from None
            raise failed from None
        return operation.metadata.build  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]

    def get(self, build: cloudbuild_v1.Build) -> cloudbuild_v1.Build:
        """Return the current state of the build."""
        request = cloudbuild_v1.GetBuildRequest(**self._named(build))
        with explained("read a build", self._names):
            return self._client.get_build(request, retry=retry_of_reads(), timeout=TIMEOUT)

    def list_tagged(self, tag: str) -> list[cloudbuild_v1.Build]:
        """Return all builds with this tag, including ended builds."""
        request = cloudbuild_v1.ListBuildsRequest(
            parent=self.parent, project_id=self._names.project, filter=f'tags="{tag}"'
        )
        with explained("list builds", self._names):  # all pages
            return list(self._client.list_builds(request, retry=retry_of_reads(), timeout=TIMEOUT))

    def cancel(self, build: cloudbuild_v1.Build) -> None:
        """Request the cancellation of a build. An ended build does not change."""
        request = cloudbuild_v1.CancelBuildRequest(**self._named(build))
        with explained("cancel a build", self._names), suppress(FailedPrecondition):
            self._client.cancel_build(request, retry=retry_of_reads(), timeout=TIMEOUT)

    def _named(self, build: cloudbuild_v1.Build) -> dict[str, Any]:
        name = build.name or f"{self.parent}/builds/{build.id}"
        return {"name": name, "project_id": self._names.project, "id": name.rpartition("/")[2]}


@contextmanager
def explained(doing: str, names: Names) -> Iterator[None]:
    """Convert errors of Google's clients to ImageBuildError with the missing role."""
    try:
        yield
    except CALL_ERRORS as error:
        raise refused(error, doing, names) from None


def code_of(error: Exception) -> str:
    """Return the name of the gRPC code, or of the exception if it has no code."""
    by_http = {403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}  # Cloud Storage
    if getattr(error, "grpc_status_code", None) is None:
        return by_http.get(int(getattr(error, "code", 0) or 0), type(error).__name__)
    return job_service.code_of(error)


def refused(error: Exception, doing: str, names: Names) -> ImageBuildError:
    """Return the error for a refused call, with the missing role if it is known."""
    error = getattr(error, "cause", None) or error  # The cause of a RetryError has the code.
    code, text = code_of(error), str(getattr(error, "message", "") or error)
    message = f"Google Cloud refused to {doing}: {code}: {' '.join(text.split())}"
    return ImageBuildError(message, hint=_refusal_hint(code, text.lower(), doing, names))


def _refusal_hint(code: str, text: str, doing: str, names: Names) -> str:
    account = names.account_email(IMAGE_BUILD)
    if code in ("PERMISSION_DENIED", "INVALID_ARGUMENT") and "resolve source" in text:
        role = f"roles/storage.objectViewer on bucket {names.bucket(STAGING)}"
        return f"deploy the stack, which grants {role} to {account}."
    if "has not been used in project" in text or "it is disabled" in text:
        return f"deploy stack {names.stack} first: the deployment enables the API."
    if code == "FAILED_PRECONDITION" and "quota" in text:
        return (
            f"request quota for Cloud Build in {names.region}, or build on this machine: "
            "--engine docker."
        )
    if code == "PERMISSION_DENIED":
        role = f"roles/cloudbuild.builds.editor in project {names.project}"
        if "act as" in text or "actas" in text:
            role = f"roles/iam.serviceAccountUser on {account}"
        elif doing == "upload the source":
            role = "roles/storage.objectCreator and roles/storage.objectViewer on bucket "
            role += names.bucket(STAGING)
        builders = f"add yourself to `builders` in {file_name(names.stack)} and deploy the stack."
        return f"you need {role}: {builders}"
    sign_in = "sign in with `gcloud auth application-default login`."
    return {
        "NOT_FOUND": f"deploy stack {names.stack} first: the deployment creates the staging bucket "
        f"and {account}.",
        "RESOURCE_EXHAUSTED": "wait, or request more quota for cloudbuild.googleapis.com.",
        "UNAUTHENTICATED": sign_in,
        "RefreshError": sign_in,
    }.get(code, "")


def upload(client: storage.Client, archive: Path, names: Names) -> cloudbuild_v1.StorageSource:
    """Upload a compressed tar archive to the staging bucket, unless the object exists."""
    with TemporaryDirectory() as folder, explained("upload the source", names):
        packed = Path(folder) / "source.tar.gz"
        # The gzip header has no name and no time, so that equal archives have equal digests.
        with (
            archive.open("rb") as plain,
            packed.open("wb") as raw,
            gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream,
        ):
            shutil.copyfileobj(plain, stream)
        with packed.open("rb") as stream:
            name = f"{SOURCES}{hashlib.file_digest(stream, 'sha256').hexdigest()}.tar.gz"
            stream.seek(0)
            md5 = hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).digest()
        blob = client.bucket(names.bucket(STAGING)).blob(name)
        try:
            # Generation 0: the upload fails if the object exists.
            blob.upload_from_filename(
                str(packed),
                content_type="application/gzip",
                if_generation_match=0,
                timeout=UPLOAD_TIMEOUT,
            )
        except PreconditionFailed:
            blob.reload(timeout=UPLOAD_TIMEOUT)
    if blob.generation is None or blob.md5_hash != base64.b64encode(md5).decode():
        raise ImageBuildError(
            f"gs://{blob.bucket.name}/{blob.name} does not match the digest in its name: "
            "another program wrote the object.",
            hint="delete this object, and find out which account wrote the object.",
        )
    return cloudbuild_v1.StorageSource(
        bucket=blob.bucket.name, object_=blob.name, generation=blob.generation
    )
