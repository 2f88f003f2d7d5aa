"""``vt data`` against the real emulator of Cloud Storage, by the official client."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from google.cloud import storage
from typer.testing import CliRunner, Result

from localgcp.faults.model import Fault
from localgcp.faults.proxy import StorageFront
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from tests import fixture_project
from tests.unit.vt.data.stand_in import bucket, front, home
from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.data import files, sessions

__all__ = ["bucket", "front", "home"]
MIB = 1 << 20


def vt(*words: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, words)])


@pytest.mark.parametrize("name", ["a/../../out", "/out", "a//b", "..", "a/./b", "b\\..\\c"])
def test_no_object_is_written_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="is no path below the folder"):
        files.ensure_writable(tmp_path, [name])


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
