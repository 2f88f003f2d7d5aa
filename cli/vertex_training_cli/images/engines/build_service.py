"""Cloud Build's calls by the official client, archives in its bucket, and what refusals mean."""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from vertex_training.errors import ImageBuildError
from vertex_training.naming import IMAGE_BUILD, SOURCES, STAGING, Names
from vertex_training.settings.project_files import file_name

if TYPE_CHECKING:
    from google.cloud import storage
    from google.cloud.devtools import cloudbuild_v1

TIMEOUT: Final = 20.0
READ_DEADLINE: Final = 60.0
CREATE_TIMEOUT: Final = 60.0
UPLOAD_TIMEOUT: Final = 60
_CHUNK: Final = 1 << 20

#: Codes after which a build may exist all the same.
IN_DOUBT: Final = (
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "UNKNOWN",
    "ABORTED",
    "CANCELLED",
)


@dataclass(frozen=True, slots=True)
class StoredSource:
    """An archive in the staging bucket."""

    bucket: str
    name: str
    generation: int


def connect(project: str) -> cloudbuild_v1.CloudBuildClient:
    """The official client; see ``job_service.service_client``."""
    from google.cloud.devtools import cloudbuild_v1
    from google.cloud.devtools.cloudbuild_v1.services.cloud_build.transports import (
        CloudBuildGrpcTransport,
    )

    from vertex_training.customjob.google.job_service import service_client

    types = (cloudbuild_v1.CloudBuildClient, CloudBuildGrpcTransport)
    return service_client(*types, project, endpoint="cloudbuild.googleapis.com")


class BuildService:
    """Builds of one stack's project and region. Calls raise ImageBuildError if they are refused."""

    def __init__(self, client: cloudbuild_v1.CloudBuildClient, names: Names) -> None:
        self._client, self._names = client, names
        self.parent = f"projects/{names.project}/locations/{names.region}"

    def create(self, build: cloudbuild_v1.Build) -> cloudbuild_v1.Build:
        """Request a build, once.

        Raises:
            ImageBuildError: it was refused, or the answer was lost: then there may be a build.
        """
        from google.api_core.exceptions import GoogleAPICallError, RetryError
        from google.auth.exceptions import GoogleAuthError
        from google.cloud.devtools import cloudbuild_v1

        request = cloudbuild_v1.CreateBuildRequest(
            parent=self.parent, project_id=self._names.project, build=build
        )
        try:
            operation = self._client.create_build(request, retry=None, timeout=CREATE_TIMEOUT)
        except (GoogleAPICallError, GoogleAuthError, RetryError) as error:
            failed = refused(error, "start a build", self._names)
            if code_of(error) in IN_DOUBT:
                hint = "run it again: a build that was started is found and followed."
                raise ImageBuildError(failed.message, hint=hint) from None
            raise failed from None
        return operation.metadata.build  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]

    def get(self, name: str) -> cloudbuild_v1.Build:
        """The build as it is now."""
        from google.cloud.devtools import cloudbuild_v1

        request = cloudbuild_v1.GetBuildRequest(
            name=name, project_id=self._names.project, id=name.rpartition("/")[2]
        )
        return self._read(self._client.get_build, request, "look at a build")

    def list_tagged(self, tag: str) -> list[cloudbuild_v1.Build]:
        """All builds with this tag, also those that ended."""
        from google.cloud.devtools import cloudbuild_v1

        request = cloudbuild_v1.ListBuildsRequest(
            parent=self.parent, project_id=self._names.project, filter=f'tags="{tag}"'
        )
        return self._read(self._list, request, "list builds")

    def _list(self, request: Any, **options: Any) -> list[cloudbuild_v1.Build]:
        return list(self._client.list_builds(request, **options))  # all pages

    def cancel(self, name: str) -> None:
        """Request cancellation; one that has ended stays as it is."""
        from google.api_core.exceptions import FailedPrecondition
        from google.cloud.devtools import cloudbuild_v1

        request = cloudbuild_v1.CancelBuildRequest(
            name=name, project_id=self._names.project, id=name.rpartition("/")[2]
        )
        try:
            self._read(self._client.cancel_build, request, "cancel a build")
        except FailedPrecondition:
            return

    def _read(self, call: Any, request: Any, doing: str) -> Any:
        from google.api_core.exceptions import (
            DeadlineExceeded,
            FailedPrecondition,
            GoogleAPICallError,
            RetryError,
        )
        from google.api_core.retry import Retry, if_transient_error
        from google.auth.exceptions import GoogleAuthError

        def is_transient(error: Exception) -> bool:
            return if_transient_error(error) or isinstance(error, DeadlineExceeded)

        retry = Retry(predicate=is_transient, initial=0.2, maximum=5.0, timeout=READ_DEADLINE)
        try:
            return call(request, retry=retry, timeout=TIMEOUT)
        except FailedPrecondition:
            raise
        except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
            raise refused(error, doing, self._names) from None


def code_of(error: Exception) -> str:
    """The gRPC code's name; that of the exception where there is none."""
    code = getattr(error, "grpc_status_code", None)
    if code is None:
        by_http = {403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
        return by_http.get(int(getattr(error, "code", 0) or 0), type(error).__name__)
    return str(code.name)


def refused(error: Exception, doing: str, names: Names) -> ImageBuildError:
    """What a refused call means, with the role that is missing, as far as the answer says."""
    error = getattr(error, "cause", None) or error  # RetryError itself has only the duration
    code, text = code_of(error), str(getattr(error, "message", "") or error)
    message = f"Google Cloud refused to {doing}: {code}: {' '.join(text.split())}"
    return ImageBuildError(message, hint=_hint(code, text.lower(), doing, names))


def _hint(code: str, text: str, doing: str, names: Names) -> str:
    account = names.account_email(IMAGE_BUILD)
    file = file_name(names.stack)
    if code in ("PERMISSION_DENIED", "INVALID_ARGUMENT") and "resolve source" in text:
        role = f"roles/storage.objectViewer on bucket {names.bucket(STAGING)}"
        return f"{account} needs {role}: deploy the stack, which grants it."
    if "has not been used in project" in text or "it is disabled" in text:
        return f"deploy stack {names.stack} first: it enables the API."
    if code == "PERMISSION_DENIED":
        role = _missing_role(text, doing, account, names)
        return f"you need {role}: add yourself to `builders` in {file} and deploy it."
    if code == "NOT_FOUND":
        return f"deploy stack {names.stack} first: it makes the staging bucket and {account}."
    if code == "RESOURCE_EXHAUSTED":
        return "wait, or ask for more quota of cloudbuild.googleapis.com."
    if code == "FAILED_PRECONDITION" and "quota" in text:
        return f"ask for quota of Cloud Build in {names.region}, or build here: --engine docker."
    if code in ("UNAUTHENTICATED", "RefreshError"):
        return "sign in: gcloud auth application-default login."
    return ""


def _missing_role(text: str, doing: str, account: str, names: Names) -> str:
    if "act as" in text or "actas" in text:
        return f"roles/iam.serviceAccountUser on {account}"
    if doing == "upload the source":
        role = "roles/storage.objectCreator and roles/storage.objectViewer"
        return f"{role} on bucket {names.bucket(STAGING)}"
    return f"roles/cloudbuild.builds.editor in project {names.project}"


def upload(client: storage.Client, archive: Path, names: Names) -> StoredSource:
    """Put a tar into the staging bucket, compressed, unless it is there.

    Raises:
        ImageBuildError: Cloud Storage refuses, or something else lies under the archive's name.
    """
    from google.api_core.exceptions import GoogleAPICallError, PreconditionFailed, RetryError
    from google.auth.exceptions import GoogleAuthError

    with TemporaryDirectory() as folder:
        packed = Path(folder) / "source.tar.gz"
        _compress(archive, packed)
        content, md5 = _digests(packed)
        blob = client.bucket(names.bucket(STAGING)).blob(f"{SOURCES}{content}.tar.gz")
        try:
            try:
                # The bucket refuses to overwrite: 0 means that there is no such object yet.
                blob.upload_from_filename(
                    str(packed),
                    content_type="application/gzip",
                    if_generation_match=0,
                    timeout=UPLOAD_TIMEOUT,
                )
            except PreconditionFailed:
                blob.reload(timeout=UPLOAD_TIMEOUT)
        except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
            raise refused(error, "upload the source", names) from None
        if blob.generation is None or blob.md5_hash != md5:
            raise ImageBuildError(
                f"gs://{blob.bucket.name}/{blob.name} is not the archive that its name says: "
                "somebody else wrote it.",
                hint="delete this object, and find out who wrote it.",
            )
        return StoredSource(str(blob.bucket.name), str(blob.name), int(blob.generation))


def _compress(archive: Path, target: Path) -> None:
    """Without a name or a time, so that equal archives stay equal."""
    with (
        archive.open("rb") as plain,
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
    ):
        shutil.copyfileobj(plain, packed, _CHUNK)


def _digests(file: Path) -> tuple[str, str]:
    """SHA-256 in hex, and MD5 as Cloud Storage reports it."""
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with file.open("rb") as stream:
        while data := stream.read(_CHUNK):
            sha256.update(data)
            md5.update(data)
    return sha256.hexdigest(), base64.b64encode(md5.digest()).decode()
