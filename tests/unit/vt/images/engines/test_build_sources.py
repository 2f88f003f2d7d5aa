"""An archive for Cloud Build is stored once, under the name of its content."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from google.api_core.exceptions import Forbidden, PreconditionFailed
from google.auth.exceptions import RefreshError

from vertex_training.errors import ImageBuildError
from vertex_training.naming import Names
from vertex_training_cli.images.engines import build_sources
from vertex_training_cli.images.engines.build_request import StoredSource

NAMES = Names("acme", "", "us-central1", "dev")
BUCKET = "acme-staging-dev"


class Storage:
    """A bucket that has at most one object; what is asked of it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.content = b""
        self.error: Exception | None = None
        self.there: str | None = None
        """MD5 of what somebody else stored under the name."""

    def bucket(self, name: str) -> Any:
        self.calls.append(("bucket", name))
        return SimpleNamespace(name=name, blob=self.blob)

    def blob(self, name: str) -> Any:
        self.made = SimpleNamespace(
            name=name, bucket=SimpleNamespace(name=BUCKET), generation=None, md5_hash=None,
            upload_from_filename=self.upload, reload=self.reload,
        )  # fmt: skip
        return self.made

    def upload(self, path: str, **given: Any) -> None:
        self.calls.append(("upload", given))
        self.content = Path(path).read_bytes()
        if self.error:
            raise self.error
        if self.there is not None:
            raise PreconditionFailed("exists")
        self.made.generation, self.made.md5_hash = 5, self.md5

    def reload(self, timeout: float) -> None:
        self.calls.append(("reload", timeout))
        self.made.generation, self.made.md5_hash = 4, self.there

    @property
    def md5(self) -> str:
        return base64.b64encode(hashlib.md5(self.content).digest()).decode()

    @property
    def name(self) -> str:
        return f"images/{hashlib.sha256(self.content).hexdigest()}.tar.gz"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    file = tmp_path / "a.tar"
    file.write_bytes(b"x" * 3_000_000)
    return file


def upload(storage: Storage, archive: Path) -> StoredSource:
    return build_sources.upload(cast(Any, storage), archive, NAMES)


@pytest.mark.parametrize(
    ("error", "text", "hint"),
    [
        (Forbidden("no"), "PERMISSION_DENIED: no",
         "you need roles/storage.objectCreator and roles/storage.objectViewer on bucket "
         f"{BUCKET}: add yourself to `builders` in Pulumi.dev.yaml and deploy it."),
        (RefreshError("expired"), "RefreshError: expired",
         "sign in: gcloud auth application-default login."),
    ],
)  # fmt: skip
def test_a_bucket_that_takes_nothing_is_told_with_the_right_that_is_missing(
    archive: Path, error: Exception, text: str, hint: str
) -> None:
    storage = Storage()
    storage.error = error
    with pytest.raises(ImageBuildError) as refused:
        upload(storage, archive)
    assert refused.value.message == f"Google Cloud refused to upload the source: {text}"
    assert refused.value.hint == hint
