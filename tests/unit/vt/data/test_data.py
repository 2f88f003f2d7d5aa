"""Downloads of ``vt jobs artifacts`` from the real emulator of Cloud Storage."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from google.cloud import storage

from tests.unit.vt.data.stand_in import bucket, front, home
from vertex_training.errors import CommandError
from vertex_training_cli.data import cloud, download

__all__ = ["bucket", "front", "home"]
MIB = 1 << 20


def pull(bucket: storage.Bucket, folder: Path, prefix: str = "", *, replace: bool = False) -> str:
    """Download the objects, and return the error; empty if all were downloaded."""
    place = cloud.place_of(f"gs://{bucket.name}/{prefix}")
    try:
        download.download(bucket.client, place, folder, replace=replace)
    except CommandError as failed:
        return str(failed)
    return ""


def part_of(folder: Path, remote: storage.Blob | None, name: str = "") -> Path:
    """Where an object lies until it is whole; ``name`` is without the prefix."""
    assert remote is not None
    digest = hashlib.sha256((name or str(remote.name)).encode()).hexdigest()[:32]
    return folder / download.PARTIAL / f"{digest}.{remote.generation}"


@pytest.mark.parametrize("name", ["a/../../out", "/out", "a//b", "..", "a/./b", "b\\..\\c"])
def test_no_object_is_written_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(CommandError, match="is not a path below the folder"):
        download.ensure_writable(tmp_path, [name])


@pytest.mark.parametrize("have", [0, MIB, 2 * MIB, 3 * MIB])
def test_interrupted_download_continues(bucket: storage.Bucket, tmp_path: Path, have: int) -> None:
    data = os.urandom(2 * MIB)
    bucket.blob("big.bin").upload_from_string(data)
    part = part_of(tmp_path / "there", bucket.get_blob("big.bin"))
    part.parent.mkdir(parents=True)
    part.write_bytes((data + b"x" * MIB)[:have])
    if have > len(data):
        assert "checksum of the download is wrong" in pull(bucket, tmp_path / "there")
        assert not (tmp_path / "there/big.bin").exists()
    assert pull(bucket, tmp_path / "there") == ""
    assert (tmp_path / "there/big.bin").read_bytes() == data
    assert not part.parent.exists()


def test_changed_files_are_kept_unless_they_are_to_be_replaced(
    bucket: storage.Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("set/a", "set/sub/b", "set/", "other"):
        bucket.blob(name).upload_from_string(name)
    assert pull(bucket, tmp_path / "there", "set") == ""
    assert pull(bucket, tmp_path / "there", "set/") == ""
    assert capsys.readouterr().out == (
        "fetched 2 files, 14 B; 0 unchanged\nfetched no files, 0 B; 2 unchanged\n"
    )
    (tmp_path / "there/a").write_text("mine!")
    said = (
        "the download did not replace 1 local file with other content: a. Hint: to replace these "
        "files, add --replace"
    )
    assert pull(bucket, tmp_path / "there", "set") == said
    assert (tmp_path / "there/a").read_text() == "mine!"
    assert pull(bucket, tmp_path / "there", "set", replace=True) == ""
    assert (tmp_path / "there/a").read_text() == "set/a"
    assert not (tmp_path / "there/other").exists()
    download.list_objects(bucket.client, cloud.place_of(f"gs://{bucket.name}/set"))
    listed = capsys.readouterr()
    assert [line.split()[::3] for line in listed.out.splitlines()[-2:]] == [
        ["5", "set/a"], ["9", "set/sub/b"],
    ]  # fmt: skip
    assert "vt: 2 objects, 14 B, in gs://local-training-data-local" in listed.err


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
    said = "2 files failed; the first is 'b': b: the checksum of the download is wrong."
    assert said in pull(bucket, there, "set")
    assert sorted(path.name for path in there.glob("?")) == ["a", "d"]
    assert pull(bucket, there, "set") == ""
    assert sorted(path.name for path in there.glob("?")) == ["a", "b", "c", "d"]
