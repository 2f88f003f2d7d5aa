"""Locks in a folder, and in a bucket of the storage emulator through Google's own client."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localgcp.runner.gcsfuse import storage_client
from localgcp.storage.emulator import StorageEmulator
from localgcp.system import processes
from tests.unit.localcloud.conftest import free_port, wait_until
from vertex_training.errors import CommandError
from vertex_training_cli.engine import locks

OBJECT = ".pulumi/locks/organization/demo/{}/{}.json"
Write = Callable[..., None]
Backend = tuple[str, Write, Callable[[], int]]


def silent(_: str) -> None:
    pass


@pytest.fixture
def live_pulumi(tmp_path: Path) -> Iterator[int]:
    """The id of a process whose program is called pulumi."""
    program = tmp_path / "pulumi"
    program.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen([program, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        wait_until(lambda: processes.program(process.pid) == "pulumi")
        yield process.pid
        process.kill()


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("storage")
    (folder / "objects").mkdir()
    server = StorageEmulator(folder / "objects", folder / "log", folder / "run")
    server.start(free_port())
    yield server.url
    server.stop()


@pytest.fixture(params=["file", "gs", "gs with a prefix"])
def backend(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Backend:
    """A backend's URL, what writes a lock into it, and how many it holds."""
    if request.param == "file":
        folder = tmp_path / "state of mine"

        def write_file(stack: str, name: str = "1", **lock: Any) -> None:
            path = folder / OBJECT.format(stack, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(lock))

        return f"file://{folder}", write_file, lambda: len(list(folder.rglob("*.json")))
    url = request.getfixturevalue("emulator")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
    name = f"state-{os.getpid()}-{tmp_path.name}".lower().replace("_", "-")[-60:].strip("-")
    bucket = storage_client(url).create_bucket(name)
    prefix = "teams/ml/" if "prefix" in request.param else ""

    def write_blob(stack: str, name: str = "1", **lock: Any) -> None:
        bucket.blob(prefix + OBJECT.format(stack, name)).upload_from_string(json.dumps(lock))

    url = f"gs://{bucket.name}/{prefix}".rstrip("/")
    return url, write_blob, lambda: len(list(bucket.list_blobs()))


HERE = socket.gethostname()


def test_a_dead_lock_is_removed_and_said_and_no_other(backend: Backend, dead: int) -> None:
    url, write, count = backend
    write("dev", pid=dead, hostname=HERE)
    write("prod", pid=dead, hostname=HERE)
    said: list[str] = []
    assert len(locks.clear_dead(url, "demo", "dev", said.append)) == 1
    assert said == [f"removed the lock of stack dev, because process {dead} has ended"]
    assert count() == 1
    assert locks.clear_dead(url, "demo", "dev", silent) == []


def test_a_lock_of_a_live_pulumi_is_respected(
    backend: Backend, live_pulumi: int, dead: int
) -> None:
    url, write, count = backend
    write("dev", "1", pid=dead, hostname=HERE)
    write("dev", "2", pid=live_pulumi, hostname=HERE)
    with pytest.raises(CommandError) as refused:
        locks.clear_dead(url, "demo", "dev", silent)
    place = f"{url.removeprefix('file://')}/{OBJECT.format('dev', '2')}"
    assert str(refused.value) == (
        f"stack dev is in use by pulumi, process {live_pulumi} on {HERE} (lock {place}). "
        "Hint: wait until the process has ended."
    )
    assert count() == 2


def test_a_lock_of_another_host_is_respected_and_the_way_out_is_said(backend: Backend) -> None:
    url, write, count = backend
    write("dev", pid=1, hostname="a-container-of-yesterday")
    with pytest.raises(CommandError) as refused:
        locks.clear_dead(url, "demo", "dev", silent)
    place = f"{url.removeprefix('file://')}/{OBJECT.format('dev', '1')}"
    assert str(refused.value) == (
        "stack dev is in use by pulumi, process 1 on a-container-of-yesterday (lock "
        f"{place}). Hint: wait until the process has ended. If the process no longer exists, run "
        "`pulumi cancel --yes --stack dev`."
    )
    assert count() == 1


def test_a_process_id_that_is_another_programs_by_now_is_dead(backend: Backend) -> None:
    url, write, _ = backend
    write("dev", pid=os.getpid(), hostname=HERE)
    assert [lock.alive for lock in locks.find(url)] == [False]


def test_a_lock_that_cannot_be_read_is_a_crash_here_and_a_mystery_in_a_bucket(
    backend: Backend,
) -> None:
    url, write, _ = backend
    write("dev", something="else")
    assert [lock.alive for lock in locks.find(url)] == [url.startswith("gs:")]


def test_a_lock_that_was_released_meanwhile_is_no_error(
    emulator: str, monkeypatch: pytest.MonkeyPatch, dead: int
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    bucket = storage_client(emulator).create_bucket(f"replaced-{os.getpid()}")
    blob = bucket.blob(OBJECT.format("dev", "1"))
    blob.upload_from_string(json.dumps({"pid": dead, "hostname": HERE}))
    [lock] = locks.find(f"gs://{bucket.name}")
    blob.delete()
    lock.remove()
    assert locks.find(f"gs://{bucket.name}") == []


def test_a_file_that_was_released_meanwhile_is_no_lock(tmp_path: Path, dead: int) -> None:
    folder = tmp_path / OBJECT.format("dev", "1")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path / "gone")
    assert locks.find(f"file://{tmp_path}") == []
    folder.unlink()
    folder.write_text(json.dumps({"pid": dead, "hostname": HERE}))
    [lock] = locks.find(f"file://{tmp_path}")
    lock.remove()
    lock.remove()
    assert locks.find(f"file://{tmp_path}") == []


def test_a_bucket_that_is_not_there_is_one_line(
    emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator)
    with pytest.raises(CommandError, match="cannot read the locks in gs://no-such-bucket"):
        locks.find("gs://no-such-bucket")


def test_other_backends_keep_their_own_locks() -> None:
    assert locks.find("https://api.pulumi.com") == []
