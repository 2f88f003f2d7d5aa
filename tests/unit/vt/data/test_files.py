"""Files of a folder and objects of a bucket: which are sent, and what may be written where."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import planned, stack
from vertex_training.errors import CommandError
from vertex_training_cli.data import files, places, upload
from vertex_training_cli.data.comparison import (
    FolderComparison,
    Pair,
    RemoteObject,
    to_pull,
    to_push,
)
from vertex_training_cli.data.files import LocalFile
from vertex_training_cli.data.places import Place


def local(name: str, size: int = 3) -> LocalFile:
    return LocalFile(Path("/folder") / name, name, size)


def remote(name: str, size: int = 3, crc32c: str = "sum") -> RemoteObject:
    return RemoteObject(name, size, crc32c, 1)


def checksum(file: LocalFile) -> str:
    return "sum" if file.name != "other" else "else"


def test_a_push_sends_what_is_new_or_changed() -> None:
    given = [local("new"), local("same"), local("other"), local("grown", 4)]
    objects = {each.name: each for each in map(remote, ("same", "other", "grown", "z", "a"))}
    found = to_push(given, objects, checksum)
    assert found == FolderComparison(
        (
            Pair("new", "new", given[0], None),
            Pair("same", "same", given[1], objects["same"]),
            Pair("other", "changed", given[2], objects["other"]),
            Pair("grown", "changed", given[3], objects["grown"]),
        ),
        ("a", "z"),
    )
    assert [each.name for each in found.of("new", "changed")] == ["new", "other", "grown"]
    assert [each.size for each in found.pairs] == [3, 3, 3, 4]


def test_a_pull_fetches_what_the_folder_has_not_or_otherwise() -> None:
    there = {each.name: each for each in (local("same"), local("other"), local("z"), local("a"))}
    objects = [remote("new", 9), remote("same"), remote("other")]
    found = to_pull(there, objects, checksum)
    assert found == FolderComparison(
        (
            Pair("new", "new", None, objects[0]),
            Pair("same", "same", there["same"], objects[1]),
            Pair("other", "changed", there["other"], objects[2]),
        ),
        ("a", "z"),
    )
    assert [each.size for each in found.pairs] == [9, 3, 3]
    assert Pair("none", "new").size == 0


@pytest.mark.parametrize(
    ("name", "patterns", "excluded"),
    [
        ("a/b.txt", ["*.txt"], True),
        ("a/b.txt", ["a"], True),
        ("a/b.txt", ["a/"], True),
        ("a/b.txt", ["b"], False),
        ("a/b.txt", ["a/*"], True),
        ("a/b.txt", ["*.csv", "b.*"], True),
        ("a/b.txt", ["A"], False),
        ("a/b.txt", [], False),
    ],
)
def test_a_pattern_is_of_the_name_or_of_a_part_of_it(
    name: str, patterns: list[str], excluded: bool
) -> None:
    assert files.is_excluded(name, patterns) is excluded


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name, text in {"b/c": "cc", "a": "a", ".vt-data/part": "x", "skip/d": "d"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "outside").write_text("outside")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder").symlink_to(tmp_path)
    (root / "gone").symlink_to(tmp_path / "nothing")
    return root


def test_a_scan_has_the_regular_files_by_name_and_leaves_links_out(folder: Path) -> None:
    found = files.scan(folder, ["skip"])
    assert [(each.name, each.size, each.path) for each in found.files] == [
        ("a", 1, folder / "a"), ("b/c", 2, folder / "b/c"),
    ]  # fmt: skip
    assert found.links == 3
    assert [each.folder for each in found.files] == [folder, folder]
    assert found.files[0].mtime_ns == (folder / "a").stat().st_mtime_ns


def test_links_are_followed_to_files_alone(folder: Path) -> None:
    found = files.scan(folder, ["skip", "a", "b"], follow_links=True)
    [link] = found.files
    assert (link.name, link.size, link.folder, found.links) == ("link", 7, None, 2)
    assert link.open().read() == b"outside"


def test_one_file_is_a_folder_of_itself(folder: Path) -> None:
    [found] = files.scan(folder / "a").files
    assert (found.name, found.folder, found.open().read()) == ("a", folder, b"a")


def test_a_file_that_became_a_link_is_not_read(folder: Path) -> None:
    [found] = files.scan(folder / "a").files
    (folder / "a").unlink()
    (folder / "a").symlink_to(folder.parent / "outside")
    with pytest.raises(OSError, match=r".*"):
        found.open()


def test_what_cannot_be_an_object_is_refused_ten_at_a_time(folder: Path) -> None:
    with pytest.raises(CommandError, match="there is no folder"):
        files.scan(folder / "nothing-here")
    for number in range(12):
        (folder / f"x\n{number:02}").write_text("x")
    with pytest.raises(CommandError) as refused:
        files.scan(folder)
    assert refused.value.message.count("has a line break") == 10
    assert "; and 2 more." in refused.value.message
    os.mkfifo(folder / "pipe")
    with pytest.raises(CommandError, match="'pipe' is no regular file"):
        files.scan(folder, ["x*"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a" * 1024, None),
        ("\u00e9" * 512, None),
        (
            "a" * 1025,
            f"'{'a' * 40}'\u2026 has 1025 bytes, and an object's name has at most 1024",
        ),
        (
            "\u00e9" * 513,
            f"'{'é' * 40}'… has 1026 bytes, and an object's name has at most 1024",
        ),
        ("a\udcff", "'a\\udcff' is not UTF-8"),
        ("a\rb", "'a\\rb' has a line break"),
        ("a\nb", "'a\\nb' has a line break"),
        (
            ".well-known/acme-challenge/x",
            "'.well-known/acme-challenge/x' is a name that Cloud Storage refuses",
        ),
        ("x/.well-known/acme-challenge/x", None),
        (".well-known/x", None),
    ],
)
def test_names_that_the_service_refuses_are_refused_before(name: str, problem: str | None) -> None:
    assert files._problem(name) == problem


def test_what_is_refused_of_a_folder_is_told_with_the_way(tmp_path: Path) -> None:
    (tmp_path / "a\rb").write_text("x")
    with pytest.raises(CommandError) as refused:
        files.scan(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: 'a\\rb' has a line break. Hint: rename them, or use --exclude."
    )


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: str) -> None:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CommandError) as refused:
        files.scan(tmp_path)
    assert str(refused.value) == f"{tmp_path} cannot be read: Permission denied."


def test_files_are_looked_for_by_their_names(folder: Path) -> None:
    found = list(files.at(folder, ["b/c", "nothing", "a"]))
    assert [(each.name, each.size, each.folder) for each in found] == [
        ("b/c", 2, folder), ("a", 1, folder),
    ]  # fmt: skip


def test_a_checksum_is_that_of_cloud_storage() -> None:
    # The check value of CRC32C is 0xe3069283, of no bytes 0.
    assert files.checksum(io.BytesIO(b"123456789")) == "4waSgw=="
    assert files.checksum(io.BytesIO(b"")) == "AAAAAA=="


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../../x", ".vt-data/x", "a\\b", "link", "folder/x"]
)
def test_an_object_becomes_no_file_elsewhere(folder: Path, name: str) -> None:
    with pytest.raises(CommandError):
        files.ensure_writable(folder, ["fine", name])


@pytest.mark.parametrize("mark", [".git", "Pulumi.yaml", "PulumiPolicy.yaml"])
def test_an_object_becomes_no_file_of_a_project(folder: Path, mark: str) -> None:
    files.ensure_writable(folder, ["new/x", "b/c"])
    (folder / "b" / mark).write_text("")
    files.ensure_writable(folder, ["new/x"])
    with pytest.raises(CommandError, match=f"has {mark}: no object becomes a file of it"):
        files.ensure_writable(folder, ["b/deep/x"])


def test_an_object_becomes_no_file_of_ones_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    with pytest.raises(CommandError, match="is your home"):
        files.ensure_writable(folder, ["x"])


SETTINGS = planned(buckets={"data": {}, "new": {"formerly": "old"}})


def find(text: str) -> Place:
    return places.find(text, SETTINGS.settings, SETTINGS.settings.names)


@pytest.mark.parametrize(
    ("text", "place", "shown"),
    [
        ("data", ("acme-ml-prod-data-prod", "", "data"), "gs://acme-ml-prod-data-prod/"),
        ("data/", ("acme-ml-prod-data-prod", "", "data"), "gs://acme-ml-prod-data-prod/"),
        ("new", ("acme-ml-prod-old-prod", "", "new"), "gs://acme-ml-prod-old-prod/"),
        (
            "data/a/b",
            ("acme-ml-prod-data-prod", "a/b/", "data"),
            "gs://acme-ml-prod-data-prod/a/b/",
        ),
        ("gs://other", ("other", "", ""), "gs://other/"),
        ("gs://other/a/", ("other", "a/", ""), "gs://other/a/"),
    ],
)
def test_a_place_is_a_bucket_of_the_stack_or_an_address(text: str, place: Any, shown: str) -> None:
    assert find(text) == Place(*place)
    assert str(find(text)) == shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dat/x", "stack 'prod' has no bucket 'dat'"),
        ("gs://", "is no address of a bucket"),
        ("gs://A/x", "is no address of a bucket"),
        ("gs://-x", "is no address of a bucket"),
        ("data/a//b", "has an empty part, or one of dots only"),
        ("data/../b", "has an empty part, or one of dots only"),
        ("gs://other/./b", "has an empty part, or one of dots only"),
    ],
)
def test_what_is_no_place_is_refused(text: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        find(text)


RULE = "looks like a secret, and would leave this machine (key-file)"


@pytest.mark.parametrize(
    ("count", "end"),
    [(1, ""), (10, ""), (11, "; and 1 more"), (12, "; and 2 more")],
)
def test_files_with_secrets_are_refused_and_ten_are_named(
    tmp_path: Path, count: int, end: str
) -> None:
    names = [f"top/{number:02}/.netrc" for number in range(count)]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("x")
    found = [Pair(each.name, "new", each) for each in files.scan(tmp_path / "top").files]
    with pytest.raises(CommandError) as refused:
        upload.refuse_secrets([*found, Pair("gone", "new")], stack(), tmp_path, print)
    said = "; ".join(f"{name}: {RULE}" for name in names[:10])
    assert (refused.value.message, refused.value.hint) == (
        f"{said}{end}.",
        "read it from Secret Manager, or --exclude it; if it is none, the stack file says so: "
        'allowedSecrets: {"top/00/.netrc": reason}',
    )
    reason = {name: "made up for this test" for name in names}
    upload.refuse_secrets(found, stack(allowedSecrets=reason), tmp_path, print)


def test_what_is_not_looked_at_is_reported_and_what_cannot_be_read_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b" + b"x" * 20)
    found = [Pair(each.name, "new", each) for each in files.scan(tmp_path).files]
    told = list[str]()
    upload.refuse_secrets(found, stack(), tmp_path, told.append)
    assert told == [
        "vt: not scanned for secrets: compressed, larger than 1 MiB, or beyond 16 MiB in all: a.gz"
    ]
    (tmp_path / "a.gz").unlink()
    with pytest.raises(CommandError) as refused:
        upload.refuse_secrets(found, stack(), tmp_path, told.append)
    text = "a.gz cannot be read: No such file or directory."
    assert (refused.value.message, len(told)) == (text, 1)
