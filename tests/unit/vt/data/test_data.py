"""``vt data`` against the real emulator of Cloud Storage, by the official client."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from google.cloud import storage
from typer.testing import CliRunner, Result

from tests.unit.vt.data.stand_in import bucket, front, home
from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.data import files, transfer

__all__ = ["bucket", "front", "home"]
MIB = 1 << 20


def vt(*words: object) -> Result:
    return CliRunner().invoke(app, ["data", *map(str, words)])


def part_of(folder: Path, remote: storage.Blob | None, name: str = "") -> Path:
    """Where an object lies until it is whole; ``name`` is without the prefix."""
    assert remote is not None
    digest = hashlib.sha256((name or str(remote.name)).encode()).hexdigest()[:32]
    return folder / files.PARTIAL / f"{digest}.{remote.generation}"


@pytest.mark.parametrize("name", ["a/../../out", "/out", "a//b", "..", "a/./b", "b\\..\\c"])
def test_no_object_is_written_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="is not a path below the folder"):
        transfer.ensure_writable(tmp_path, [name])


@pytest.mark.parametrize("have", [0, MIB, 2 * MIB, 3 * MIB])
def test_interrupted_pull_goes_on_with_what_is_there(
    bucket: storage.Bucket, tmp_path: Path, have: int
) -> None:
    data = os.urandom(2 * MIB)
    bucket.blob("big.bin").upload_from_string(data)
    part = part_of(tmp_path / "there", bucket.get_blob("big.bin"))
    part.parent.mkdir(parents=True)
    part.write_bytes((data + b"x" * MIB)[:have])
    done = vt("pull", "data", tmp_path / "there")
    if have > len(data):
        assert (done.exit_code, "checksum of the download is wrong" in done.stderr) == (1, True)
        assert not (tmp_path / "there/big.bin").exists()
        done = vt("pull", "data", tmp_path / "there")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "there/big.bin").read_bytes() == data
    assert not part.parent.exists()


def test_damaged_part_becomes_no_file(bucket: storage.Bucket, tmp_path: Path) -> None:
    bucket.blob("big.bin").upload_from_string(os.urandom(2 * MIB))
    there = tmp_path / "there"
    part = part_of(there, bucket.get_blob("big.bin"))
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * MIB)
    result = vt("pull", "data", there)
    assert (result.exit_code, "checksum of the download is wrong" in result.stderr) == (1, True)
    assert not (there / "big.bin").exists()
    assert vt("pull", "data", there).exit_code == 0


def test_many_files_go_there_and_back(bucket: storage.Bucket, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(60):
        (many / f"{number}").write_text(str(number))
    assert vt("push", "data", many).stdout.startswith("sent 60 files")
    assert vt("push", "data", many).stdout.endswith("60 unchanged\n")
    assert vt("pull", "data", tmp_path / "back").exit_code == 0
    assert len(list((tmp_path / "back").iterdir())) == 60


def test_files_that_fail_keep_no_others_from_arriving(
    bucket: storage.Bucket, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    for name in "abcd":
        bucket.blob(f"set/{name}").upload_from_string(name)
    for name in "bc":
        part = part_of(there, bucket.get_blob(f"set/{name}"), name)
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(b"x")
    done = vt("pull", "data/set", there)
    assert done.exit_code == 1
    assert (
        "2 files failed; the first is 'b': b: the checksum of the download is wrong." in done.stderr
    )
    assert sorted(path.name for path in there.glob("?")) == ["a", "d"]
    assert vt("pull", "data/set", there).stdout.startswith("fetched 2 files")


def test_object_that_changes_meanwhile_is_not_replaced(
    bucket: storage.Bucket, tmp_path: Path
) -> None:
    from vertex_training_cli.data import cloud, transfer

    (tmp_path / "x").write_text("ours")
    found, _ = files.scan(tmp_path / "x")
    bucket.blob("x").upload_from_string("theirs")
    with pytest.raises(CommandError, match="run the command again"):
        transfer.push(bucket.client, cloud.Place(str(bucket.name)), found, {})
    assert bucket.blob("x").download_as_bytes() == b"theirs"
