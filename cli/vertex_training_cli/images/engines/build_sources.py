"""Sources of builds: archives in the staging bucket, named by what they hold."""

from __future__ import annotations

import base64
import gzip
import hashlib
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from vertex_training.errors import ImageBuildError
from vertex_training.naming import SOURCES, STAGING, Names
from vertex_training_cli.images.engines.build_request import StoredSource
from vertex_training_cli.images.engines.build_service import refused

if TYPE_CHECKING:
    from google.cloud import storage

TIMEOUT: Final = 60
_CHUNK: Final = 1 << 20


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
                    timeout=TIMEOUT,
                )
            except PreconditionFailed:
                blob.reload(timeout=TIMEOUT)
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
