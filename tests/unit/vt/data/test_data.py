"""``vt data`` against the real emulator of Cloud Storage, by the official client."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud import storage
from typer.testing import CliRunner, Result

from localgcp.faults.model import Fault
from localgcp.faults.proxy import StorageFront
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage import StorageEmulator
from tests import fixture_project
from tests.unit.localcloud.conftest import free_port
from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.data import files, sessions

NAME = "local-training-data-local"
MIB = 1 << 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    made = Home(tmp_path_factory.mktemp("home"), fixture_project.ROOT)
    made.create()
    return made


@pytest.fixture(scope="module")
def front(home: Home) -> Iterator[StorageFront]:
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    made = StorageFront(emulator, FaultTable(home.faults), free_port)
    made.start(free_port())
    yield made
    made.stop()


@pytest.fixture
def bucket(
    front: StorageFront, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[storage.Bucket]:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", front.url)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (project := tmp_path / "project").mkdir()
    monkeypatch.chdir(fixture_project.copy_project(project))
    made = storage_client(front.url).create_bucket(NAME)
    yield made
    for blob in made.list_blobs():
        blob.delete()
    made.delete()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    for name, text in (("a.txt", "a"), ("sub/ü b.txt", "b"), ("sub/empty", ""), (".hidden", "h")):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


def vt(*words: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, words)])


def names(bucket: storage.Bucket) -> set[str]:
    return {str(blob.name) for blob in bucket.list_blobs()}


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    bucket: storage.Bucket, folder: Path
) -> None:
    bucket.blob("set/old").upload_from_string(b"old")
    said = vt("push", "data/set", folder, "--delete", "--dry-run").stdout
    assert "send a.txt (new, 1 B)" in said
    assert "delete old" in said
    assert names(bucket) == {"set/old"}
    said = vt("pull", "data/set", folder, "--dry-run").stdout
    assert said == "fetch old (new, 3 B)\n"
    assert not (folder / "old").exists()


def test_a_pull_keeps_files_that_differ_and_names_them(
    bucket: storage.Bucket, folder: Path, tmp_path: Path
) -> None:
    vt("push", "data/set", folder)
    there = tmp_path / "there"
    assert vt("pull", "data/set", there).exit_code == 0
    assert (there / "sub" / "ü b.txt").read_text() == "b"
    (there / "a.txt").write_text("mine")
    kept = vt("pull", "data/set", there)
    assert (kept.exit_code, (there / "a.txt").read_text()) == (1, "mine")
    assert "1 differ and are kept: a.txt" in kept.stderr
    assert vt("pull", "data/set", there, "--replace").exit_code == 0
    assert (there / "a.txt").read_text() == "a"
    assert not (there / files.PARTIAL).exists()


def test_an_address_and_a_list(bucket: storage.Bucket, folder: Path) -> None:
    assert vt("push", f"gs://{NAME}/x", folder / "a.txt").exit_code == 0
    rows = [
        json.loads(line)
        for line in vt("ls", f"gs://{NAME}", "--format", "json").stdout.split("\n")
        if line
    ]
    assert [(row["name"], row["size"]) for row in rows] == [("x/a.txt", 1)]
    assert "x/a.txt" in vt("ls", "data").stdout


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("dat", "did you mean 'data'?"),
        ("data/../x", "dots only"),
        ("gs://UPPER/x", "no address of a bucket"),
        ("gs://local-training-nowhere-local", "there is no bucket"),
        ("artifacts", "`vt up` makes it"),
    ],
)
def test_a_wrong_place_is_one_plain_line(
    bucket: storage.Bucket, folder: Path, given: str, text: str
) -> None:
    result = vt("push", given, folder)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert text in result.stderr


def test_a_missing_right_is_told_with_the_role(
    front: StorageFront, home: Home, bucket: storage.Bucket, folder: Path
) -> None:
    table = FaultTable(home.faults)
    fault = table.add(
        Fault.parse(service="storage", kind="error", code="403", method="objects.insert")
    )
    try:
        result = vt("push", "data", folder)
    finally:
        table.clear(fault)
    assert result.exit_code == 1
    assert "roles/storage.objectUser" in result.stderr
    assert "writes: [data]" in result.stderr


def test_names_and_kinds_that_cannot_be_objects_are_all_told(
    bucket: storage.Bucket, folder: Path
) -> None:
    (folder / "line\nbreak").write_text("x")
    os.mkfifo(folder / "pipe")
    result = vt("push", "data", folder)
    assert result.exit_code == 1
    assert "has a line break" in result.stderr
    assert "'pipe' is no regular file" in result.stderr
    assert names(bucket) == set()
    assert vt("push", "data", folder, "--exclude", "line*", "--exclude", "pipe").exit_code == 0


@pytest.mark.parametrize("name", ["a/../../out", "/out", "a//b", "..", "a/./b", "b\\..\\c"])
def test_no_object_is_written_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="is no path below the folder"):
        files.ensure_writable(tmp_path, [name])


def test_nothing_is_written_through_a_link(
    bucket: storage.Bucket, folder: Path, tmp_path: Path
) -> None:
    vt("push", "data", folder)
    there, outside = tmp_path / "there", tmp_path / "outside"
    there.mkdir()
    outside.mkdir()
    (there / "sub").symlink_to(outside)
    result = vt("pull", "data", there)
    assert (result.exit_code, "is a link" in result.stderr) == (1, True)
    assert list(outside.iterdir()) == []
    (there / "sub").unlink()
    (there / "a.txt").symlink_to(outside / "new")
    assert "is a link" in vt("pull", "data", there, "--replace").stderr
    assert list(outside.iterdir()) == []


def test_a_large_file_goes_on_where_a_kill_left_it(
    front: StorageFront, bucket: storage.Bucket, home: Home, tmp_path: Path
) -> None:
    big = tmp_path / "big.bin"
    data = os.urandom(MIB) * 65  # three parts of at most 32 MiB
    table = FaultTable(home.faults)
    held = table.add(Fault.parse(service="storage", kind="hold", nth=4, match="big"))
    big.write_bytes(data)
    command = [sys.executable, "-m", "vertex_training_cli.cli", "data", "push", "data", str(big)]
    push = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": fixture_project.source_path(fixture_project.ROOT)}
    )
    table.wait_held(held, 60)  # the first part has arrived
    push.send_signal(signal.SIGKILL)
    push.wait()
    table.clear(held)
    parts = front_uploads(front)
    arrived = max(path.stat().st_size for path in parts.glob("*.part"))
    assert 0 < arrived < len(data)
    note = next(sessions.folder().glob("*.json"))
    assert note.stat().st_mode & 0o777 == 0o600
    first = {path.name for path in parts.glob("*.part")}
    assert vt("push", "data", big).exit_code == 0
    assert {path.name for path in parts.glob("*.part")} < first  # no second session
    assert bucket.blob("big.bin").download_as_bytes() == data
    assert list(sessions.folder().glob("*.json")) == []


def test_a_damaged_part_becomes_no_file(
    bucket: storage.Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vertex_training_cli.data.download.LARGE", MIB)
    bucket.blob("big.bin").upload_from_string(os.urandom(2 * MIB))
    remote = bucket.get_blob("big.bin")
    assert remote is not None
    there = tmp_path / "there"
    (there / files.PARTIAL).mkdir(parents=True)
    (there / files.PARTIAL / f"{_digest('big.bin')}.{remote.generation}").write_bytes(b"x" * MIB)
    result = vt("pull", "data", there)
    assert (result.exit_code, "is damaged" in result.stderr) == (1, True)
    assert not (there / "big.bin").exists()
    assert vt("pull", "data", there).exit_code == 0


def test_files_in_batches(bucket: storage.Bucket, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(300):
        (many / f"{number}").write_text(str(number))
    assert vt("push", "data", many).stdout.startswith("sent 300 files")
    assert vt("push", "data", many).stdout.endswith("300 are the same\n")
    assert vt("pull", "data", tmp_path / "back").exit_code == 0
    assert len(list((tmp_path / "back").iterdir())) == 300


def front_uploads(front: StorageFront) -> Path:
    return front._emulator.root.with_name("uploads")


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def test_a_push_deletes_no_file_of_a_snapshot(bucket: storage.Bucket, folder: Path) -> None:
    run = f"snapshots/local/clicks/{'0a' * 10}"
    for name in (f"{run}/manifest.json", f"{run}/0.parquet", "snapshots/mine/x"):
        bucket.blob(name).upload_from_string(b"x")
    found = vt("push", "data", folder, "--delete", "--yes")
    assert "vt: 2 files of snapshots stay; `vt data snapshots delete`" in found.stderr
    assert {f"{run}/manifest.json", f"{run}/0.parquet"} <= names(bucket)
    assert "snapshots/mine/x" not in names(bucket)
    below = vt("push", "data/snapshots/local", folder, "--delete", "--dry-run")
    assert "delete" not in below.stdout


def test_a_push_puts_no_file_into_a_snapshot(bucket: storage.Bucket, folder: Path) -> None:
    run = f"snapshots/local/clicks/{'0a' * 10}"
    (folder / run).mkdir(parents=True)
    (folder / run / "manifest.json").write_text("{}")
    for place, what in ((f"data/{run}", folder / run), ("data", folder)):
        found = vt("push", place, what)
        assert found.exit_code != 0
        said = f"gs://{NAME}/{run}/manifest.json is a file of a snapshot, and those never change."
        assert said in found.stderr + str(found.exception)
    assert names(bucket) == set()


def test_nothing_is_pushed_among_the_records_of_submissions(
    bucket: storage.Bucket, folder: Path
) -> None:
    found = vt("push", f"gs://{NAME.replace('data', 'control')}/x", folder, "--delete", "--yes")
    assert found.exit_code != 0
    assert "has the records of submissions, and takes no files." in found.stderr + str(
        found.exception
    )
    assert names(bucket) == set()
