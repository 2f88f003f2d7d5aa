"""Call Cloud Build, upload archives of sources, and explain refused calls."""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from google.api_core.exceptions import (
    DeadlineExceeded,
    FailedPrecondition,
    GoogleAPICallError,
    PreconditionFailed,
    RetryError,
)
from google.api_core.retry import Retry, if_transient_error
from google.auth.exceptions import GoogleAuthError
from google.cloud import storage
from google.cloud.devtools import cloudbuild_v1
from google.cloud.devtools.cloudbuild_v1.services.cloud_build.transports import (
    CloudBuildGrpcTransport,
)

from vertex_training.customjob.google import job_service
from vertex_training.errors import ImageBuildError
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, Names
from vertex_training.settings.project_files import file_name

TIMEOUT: Final = 20.0
READ_DEADLINE: Final = 60.0
CREATE_TIMEOUT: Final = 60.0
UPLOAD_TIMEOUT: Final = 60
#: Errors of Google's clients: a refused call, a timeout, missing credentials.
CALL_ERRORS: Final = (GoogleAPICallError, RetryError, GoogleAuthError)
#: Codes of failed calls that may still have started a build.
IN_DOUBT: Final = (
    *("UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "ABORTED", "CANCELLED"),
)


def connect(project: str) -> cloudbuild_v1.CloudBuildClient:
    """Return the official client of Cloud Build."""
    types = (cloudbuild_v1.CloudBuildClient, CloudBuildGrpcTransport)
    return job_service.service_client(*types, project, endpoint="cloudbuild.googleapis.com")


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

    def get(self, name: str) -> cloudbuild_v1.Build:
        """Return the current state of the build."""
        request = cloudbuild_v1.GetBuildRequest(**self._named(name))
        with explained("read a build", self._names):
            return self._client.get_build(request, retry=_retry(), timeout=TIMEOUT)

    def list_tagged(self, tag: str) -> list[cloudbuild_v1.Build]:
        """Return all builds with this tag, including ended builds."""
        request = cloudbuild_v1.ListBuildsRequest(
            parent=self.parent, project_id=self._names.project, filter=f'tags="{tag}"'
        )
        with explained("list builds", self._names):  # all pages
            return list(self._client.list_builds(request, retry=_retry(), timeout=TIMEOUT))

    def cancel(self, name: str) -> None:
        """Request the cancellation of a build. An ended build does not change."""
        request = cloudbuild_v1.CancelBuildRequest(**self._named(name))
        with explained("cancel a build", self._names):
            try:
                self._client.cancel_build(request, retry=_retry(), timeout=TIMEOUT)
            except FailedPrecondition:
                return

    def _named(self, name: str) -> dict[str, Any]:
        return {"name": name, "project_id": self._names.project, "id": name.rpartition("/")[2]}


def _retry() -> Retry:
    def is_transient(error: Exception) -> bool:
        return if_transient_error(error) or isinstance(error, DeadlineExceeded)

    return Retry(predicate=is_transient, initial=0.2, maximum=5.0, timeout=READ_DEADLINE)


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
    return ImageBuildError(message, hint=_hint(code, text.lower(), doing, names))


def _hint(code: str, text: str, doing: str, names: Names) -> str:
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
