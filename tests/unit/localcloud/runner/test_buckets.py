"""Paths below ``/gcs`` that code makes as it runs lead to the buckets, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from google.api_core.exceptions import NotFound
from google.cloud import aiplatform_v1 as vertex

from localgcp.containers.host import ContainerHost
from localgcp.home import Home
from localgcp.inventory.store import Store
from localgcp.runner import hosts
from localgcp.runner.gcsfuse import Mount
from localgcp.runner.programs import CloudHost
from localgcp.vertex.admission import Access
from tests.unit.localcloud.conftest import (
    TRAINER,
    Cloud,
    command_job,
)

JobState = vertex.JobState
pytestmark = pytest.mark.skipif(
    not hosts.has_mounts(), reason="this system gives a process no mounts of its own"
)
#: No word of a job below names the mount: ``G`` is it.
MOUNT = "G=/g; G=${G}cs; "


def shell(script: str, **spec: str) -> dict[str, Any]:
    return command_job("sh", "-ec", MOUNT + script, **spec)


def test_all_replicas_have_the_same_folder(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    out = cloud.bucket("out")
    job = shell("while ! test -e $G/out/two; do sleep 0.05; done; mv $G/out/two $G/out/one")
    second = shell("echo 2 >$G/out/two; sleep 600")
    job["job_spec"]["worker_pool_specs"] += second["job_spec"]["worker_pool_specs"]
    done = cloud.run(job)
    assert done.state == JobState.JOB_STATE_SUCCEEDED, cloud.log(done)
    assert [blob.name for blob in out.list_blobs()] == ["one"]


def test_a_bucket_that_the_account_may_only_read_is_read_only(cloud_with_storage: Cloud) -> None:
    cloud = cloud_with_storage
    data = cloud.bucket("data")
    data.blob("a/b.txt").upload_from_string("read me")
    cloud.grant("b/data", "roles/storage.objectViewer")
    for path in ("$G/data", "/gcs/data"):  # shown as it is, and copied because it is named
        job = cloud.run(shell(f"cat {path}/a/b.txt; echo no >{path}/no", service_account=TRAINER))
        assert job.state == JobState.JOB_STATE_FAILED
        assert "read me" in cloud.log(job)
        assert "Read-only file system" in cloud.log(job)
    assert [blob.name for blob in data.list_blobs()] == ["a/b.txt"]


@dataclass
class Rights:
    """What the account of a job may do with the bucket."""

    read: bool = True
    create: bool = True
    change: bool = True

    def may_read(self, bucket: str) -> bool:
        return self.read and bucket == "out"

    def may_create(self, bucket: str) -> bool:
        return self.create and bucket == "out"

    def may_change(self, bucket: str) -> bool:
        return self.change and bucket == "out"


@dataclass
class Bucket:
    """Takes uploads as the emulator does: a new file in the folder of objects."""

    folder: Path
    calls: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    name: str = ""

    def bucket(self, name: str) -> Bucket:
        assert name == "out"
        return self

    def blob(self, name: str) -> Bucket:
        return Bucket(self.folder, self.calls, name)

    def put(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.folder / ".partial"
        partial.write_bytes(content)
        partial.rename(path)

    def upload_from_file(self, file: BinaryIO, *, size: int, content_type: str | None) -> None:
        content = file.read()
        assert len(content) == size
        self.calls.append(("upload", self.name, str(content_type)))
        self.put(self.name, content)

    def delete(self) -> None:
        self.calls.append(("delete", self.name))
        try:
            (self.folder / self.name).unlink()
        except FileNotFoundError:
            raise NotFound("gone") from None

    def contents(self) -> dict[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}


class Mounted:
    """A mount of the bucket ``out`` for an account with these rights."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch, rights: Rights) -> None:
        self.said: list[str] = []
        home = Home(base, base)
        objects = home.storage / "out"
        objects.mkdir(parents=True)
        (base / "job" / "gcs").mkdir(parents=True)
        self.bucket, self.rights = Bucket(objects), rights
        self.folder = base / "job" / "gcs" / "out"
        access = cast(Access, rights)
        url, containers = "http://127.0.0.1:1", ContainerHost(home, 0)
        cloud = CloudHost(home, Store(home.database), containers, url, "")
        self.mount = Mount(self.folder, cloud, access, self.said.append)
        monkeypatch.setattr(self.mount, "_client", lambda: self.bucket)

    @property
    def calls(self) -> list[tuple[str, ...]]:
        """Calls of the bucket since the last look."""
        found = [*self.bucket.calls]
        self.bucket.calls.clear()
        return found

    def files(self) -> dict[str, bytes]:
        found = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Mounted]:
    return lambda **rights: Mounted(tmp_path, monkeypatch, Rights(**rights))


def later(path: Path) -> None:
    """Let a file have changed a second after all others."""
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 10**9))


def test_a_file_that_the_job_removes_goes_from_the_bucket(make: Callable[..., Mounted]) -> None:
    made = make()
    made.bucket.put("a", b"1")
    made.bucket.put("b", b"2")
    made.mount.fill()
    (made.folder / "a").unlink()
    made.mount.sync(final=False)
    assert (made.calls, made.bucket.contents()) == ([("delete", "a")], {"b": b"2"})
    (made.folder / "b").unlink()
    (made.bucket.folder / "b").unlink()
    made.mount.sync(final=True)
    assert made.calls == [("delete", "b")]
    assert made.said == ["/gcs/out/b was already deleted from the bucket."]
    made.mount.sync(final=True)
    assert made.calls == []


def test_what_others_write_and_delete_follows_while_the_job_runs(
    make: Callable[..., Mounted],
) -> None:
    made = make()
    made.bucket.put("a", b"1")
    made.mount.fill()
    made.bucket.put("a", b"22")
    made.bucket.put("d/new", b"3")
    made.mount.sync(final=False)
    assert made.files() == {"a": b"22", "d/new": b"3"}
    (made.bucket.folder / "a").unlink()
    made.mount.sync(final=False)
    assert made.files() == {"d/new": b"3"}
    made.bucket.put("late", b"4")
    made.mount.sync(final=True)
    assert made.files() == {"d/new": b"3"}
    assert made.calls == []


def test_a_file_that_the_job_has_changed_is_its_own(make: Callable[..., Mounted]) -> None:
    made = make()
    made.bucket.put("a", b"1")
    made.bucket.put("gone", b"1")
    made.mount.fill()
    for name in ("a", "gone"):
        (made.folder / name).write_bytes(b"mine")
        later(made.folder / name)
    made.bucket.put("a", b"theirs")
    (made.bucket.folder / "gone").unlink()
    made.mount.sync(final=False)
    assert made.files() == {"a": b"mine", "gone": b"mine"}
    made.mount.sync(final=False)
    assert made.bucket.contents() == {"a": b"mine", "gone": b"mine"}
    assert [call[0] for call in made.calls] == ["upload", "upload"]


def test_without_the_right_to_read_the_folder_stays_empty(make: Callable[..., Mounted]) -> None:
    made = make(read=False)
    made.bucket.put("a", b"1")
    made.mount.fill()
    made.mount.sync(final=False)
    assert made.files() == {}
    assert made.said == [
        "/gcs/out: the job's account has no read permission; the folder looks empty."
    ]
    (made.folder / "mine").write_bytes(b"2")
    made.mount.sync(final=True)
    assert made.bucket.contents() == {"a": b"1", "mine": b"2"}


def test_an_account_that_may_only_read_uploads_and_deletes_nothing(
    make: Callable[..., Mounted],
) -> None:
    made = make(create=False, change=False)
    made.bucket.put("a", b"1")
    made.mount.fill()
    (made.folder / "a").unlink()
    (made.folder / "new").write_bytes(b"2")
    for final in (False, False, True, True):
        made.mount.sync(final=final)
    assert made.calls == []
    assert made.said == [
        "/gcs/out/a was not uploaded: storage.objects.delete denied.",
        "/gcs/out/new was not uploaded: storage.objects.create denied.",
    ]
    assert made.mount.refused == {"a", "new"}


def test_a_job_sees_no_half_of_an_object(make: Callable[..., Mounted], tmp_path: Path) -> None:
    made = make()
    made.bucket.put("a", b"1")
    made.mount.fill()
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["gcs"]
    # Something else in its place stays.
    made.bucket.put("d", b"of others")
    (made.folder / "d").mkdir()
    made.mount.sync(final=False)
    assert (made.folder / "d").is_dir()


def test_what_is_no_file_is_not_uploaded_and_a_link_is_told_once(
    make: Callable[..., Mounted],
) -> None:
    made = make()
    made.mount.fill()
    (made.folder / "link").symlink_to("file")
    (made.folder / "file").write_bytes(b"1")
    os.mkfifo(made.folder / "pipe")
    for final in (False, False, True, True):
        made.mount.sync(final=final)
    assert made.bucket.contents() == {"file": b"1"}
    assert made.said == [
        "/gcs/out/link is a symbolic link and was not uploaded. The real service stores "
        "an object without content."
    ]
