"""What is asked of Cloud Storage for each file and object, and what becomes of those that fail."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from google.api_core import exceptions

from vertex_training.errors import CommandError
from vertex_training_cli.data import download, files, upload
from vertex_training_cli.data.comparison import Pair, RemoteObject
from vertex_training_cli.data.places import Place

PLACE = Place("b", "set/", "data")
#: CRC-32C of "123456789" is E3069283 (RFC 3720): big-endian, in base64.
DIGITS, CRC32C = b"123456789", "4waSgw=="


def sized(*sizes: int) -> list[Pair]:
    return [
        Pair(str(number), "new", object=RemoteObject(str(number), size, "", 1))
        for number, size in enumerate(sizes)
    ]


AGAIN = "run it again: what arrived is not sent again."


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        ([FileNotFoundError(2, "No such file")], "0: No such file"),
        ([OSError("odd")], "0: odd"),
        ([exceptions.BadGateway("later")], f"gs://b/set/: later Hint: {AGAIN}"),
        ([OSError("odd")] * 3, "3 files failed; the first is '0': 0: odd"),
    ],
)
def test_all_that_failed_is_one_error(errors: list[Exception], text: str) -> None:
    failed = list(zip(sized(*[1] * len(errors)), errors, strict=True))
    assert str(upload.failure(failed, PLACE, "write")) == text


class Blob:
    """An object of a bucket: what is asked of it, and its content or the error of its service."""

    def __init__(self, bucket: Bucket, name: str, generation: int | None) -> None:
        self.bucket, self.name, self.generation = bucket, name, generation

    def _ask(self, what: str, *more: Any) -> Any:
        self.bucket.asked.append((what, self.name, self.generation, *more))
        found = self.bucket.objects.get(self.name, b"")
        if isinstance(found, Exception):
            raise found
        return found

    def upload_from_file(
        self, file: BinaryIO, *, size: int, content_type: str | None, timeout: float
    ) -> None:
        self._ask("put", file.read(), size, content_type, timeout)

    def download_to_file(
        self, file: BinaryIO, *, raw_download: bool, timeout: float,
        start: int | None = None, end: int | None = None,
    ) -> None:  # fmt: skip
        assert raw_download
        data = self._ask("get", start, end, timeout)
        file.write(data[start : None if end is None else end + 1])

    def delete(self, *, if_generation_match: int, timeout: float) -> None:
        self._ask("delete", if_generation_match, timeout)


class Bucket:
    """A client with one bucket, and that bucket."""

    def __init__(self, **objects: Any) -> None:
        self.objects = {f"set/{name}": content for name, content in objects.items()}
        self.asked: list[tuple[Any, ...]] = []

    def bucket(self, name: str) -> Bucket:
        assert name == "b"
        return self

    def blob(self, name: str, generation: int | None = None) -> Blob:
        return Blob(self, name, generation)


def test_an_object_that_is_gone_or_was_written_anew_is_left_and_others_are_deleted() -> None:
    gone, anew = exceptions.NotFound("no"), exceptions.PreconditionFailed("no")
    client: Any = Bucket(a=gone, b=anew, c=b"", d=exceptions.Forbidden("no"), e=b"")
    objects = [RemoteObject(name, 1, "", 7 + n) for n, name in enumerate("abcde")]
    with pytest.raises(CommandError, match="you may not write here"):
        upload.delete(client, PLACE, objects)
    assert client.asked == [
        ("delete", f"set/{name}", None, 7 + number, 60) for number, name in enumerate("abcd")
    ]


def remote(name: str, size: int = 9, crc32c: str = CRC32C) -> Pair:
    return Pair(name, "new", object=RemoteObject(name, size, crc32c, 7))


def part_of(folder: Path, name: str) -> Path:
    return folder / ".vt-data" / f"{sha256(name.encode()).hexdigest()[:32]}.7"


def pull(client: Any, folder: Path, *pairs: Pair) -> tuple[int, list[int]]:
    told: list[int] = []
    return download.pull(client, PLACE, folder, iter(pairs), told.append), told


@pytest.mark.parametrize(
    ("have", "ranges", "told"),
    [
        (b"", [(0, 3), (4, 7), (8, 8)], [0, 4, 4, 1]),
        (b"1234", [(4, 7), (8, 8)], [4, 4, 1]),
        (b"12345", [(5, 8)], [5, 4]),
        (DIGITS, [], [9]),
        (DIGITS + b"x", [(0, 3), (4, 7), (8, 8)], [0, 4, 4, 1]),
    ],
)
def test_a_large_object_is_fetched_in_ranges_after_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    have: bytes, ranges: list[tuple[int, int]], told: list[int],
) -> None:  # fmt: skip
    monkeypatch.setattr(download, "LARGE", 4)
    client = Bucket(a=DIGITS)
    if have:
        part_of(tmp_path, "a").parent.mkdir()
        part_of(tmp_path, "a").write_bytes(have)
    assert pull(client, tmp_path, remote("a")) == (1, told)
    assert (tmp_path / "a").read_bytes() == DIGITS
    assert client.asked == [("get", "set/a", 7, *each, 60) for each in ranges]
    assert not (tmp_path / ".vt-data").exists()


@pytest.mark.parametrize("large", [1, 100])
def test_what_arrived_damaged_becomes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    monkeypatch.setattr(download, "LARGE", large)
    client = Bucket(a=DIGITS)
    with pytest.raises(CommandError) as failed:
        pull(client, tmp_path, remote("a", 9, "AAAAAA=="))
    assert str(failed.value) == "a: what arrived is damaged. Hint: run it again."
    assert not (tmp_path / "a").exists()
    assert not part_of(tmp_path, "a").exists()


def test_objects_that_fail_keep_no_others_from_becoming_files(tmp_path: Path) -> None:
    client = Bucket(a=exceptions.Forbidden("no"), b=DIGITS, c=exceptions.BadGateway("later"))
    with pytest.raises(CommandError) as failed:
        pull(client, tmp_path, remote("a"), remote("b"), remote("c"))
    assert str(failed.value) == (
        "2 files failed; the first is 'a': gs://b/set/: you may not read here; that takes "
        "roles/storage.objectViewer on the bucket. Hint: accounts with `reads: [data]` in the "
        "stack file have it; ask for it, or act as one of them."
    )
    assert (tmp_path / "b").read_bytes() == DIGITS
    assert (tmp_path / files.PARTIAL).is_dir()  # with what arrived of the others


def test_a_file_that_a_folder_has_the_place_of_is_told(tmp_path: Path) -> None:
    (tmp_path / "a/x").mkdir(parents=True)
    with pytest.raises(CommandError) as failed:
        pull(Bucket(a=DIGITS), tmp_path, remote("a"))
    assert str(failed.value) == (
        f"{tmp_path}/a is a folder: the object 'a' cannot be a file there. "
        "Hint: --exclude it, or move away what is in its place."
    )
