"""Files of a folder and objects of a bucket: which are sent, and what may be written where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.infra.stacks import stack
from vertex_training.errors import CommandError
from vertex_training_cli.data import files, transfer


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


def test_links_are_left_out(folder: Path) -> None:
    found, links = files.scan(folder, ["skip"])
    assert ([file.name for file in found], links) == (["a", "b/c"], 3)


def test_what_cannot_be_an_object_is_refused_ten_at_a_time(folder: Path) -> None:
    with pytest.raises(CommandError, match="does not exist"):
        files.scan(folder / "nothing-here")
    for number in range(12):
        (folder / f"x\n{number:02}").write_text("x")
    with pytest.raises(CommandError) as refused:
        files.scan(folder)
    assert refused.value.message.count("this object name is not allowed") == 10
    assert "; and 2 more." in refused.value.message
    os.mkfifo(folder / "pipe")
    with pytest.raises(CommandError, match="'pipe' is not a regular file"):
        files.scan(folder, ["x*"])
    Path(os.fsdecode(os.fsencode(folder) + b"/b\xff")).touch()
    with pytest.raises(CommandError, match=r"'b.udcff' is not UTF-8"):
        files.scan(folder, ["x*", "pipe"])


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: str) -> None:
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(CommandError) as refused:
        files.scan(tmp_path)
    assert str(refused.value) == f"{tmp_path} cannot be read: Permission denied."


def test_an_object_becomes_no_file_of_ones_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    with pytest.raises(CommandError, match="is your home folder"):
        transfer.ensure_writable(folder, ["x"])


RULE = "this text looks like a secret and would be uploaded (key-file)"


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
    found, _ = files.scan(tmp_path / "top")
    with pytest.raises(CommandError) as refused:
        transfer.refuse_secrets(found, stack(), tmp_path, print)
    said = "; ".join(f"{name}: {RULE}" for name in names[:10])
    assert (refused.value.message, refused.value.hint) == (
        f"{said}{end}.",
        "read the secret from Secret Manager, or --exclude it. If this is not a secret, add "
        'allowedSecrets: {"top/00/.netrc": reason} to the stack file',
    )
    reason = {name: "made up for this test" for name in names}
    transfer.refuse_secrets(found, stack(allowedSecrets=reason), tmp_path, print)


def test_what_is_not_looked_at_is_reported_and_what_cannot_be_read_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"\x1f\x8b" + b"x" * 20)
    found, _ = files.scan(tmp_path)
    told = list[str]()
    transfer.refuse_secrets(found, stack(), tmp_path, told.append)
    assert told == [
        "vt: skipped by the secret scan (compressed, larger than 1 MiB, or above 16 MiB in total): "
        "a.gz"
    ]
    (tmp_path / "a.gz").unlink()
    with pytest.raises(CommandError) as refused:
        transfer.refuse_secrets(found, stack(), tmp_path, told.append)
    text = "a.gz cannot be read: No such file or directory."
    assert (refused.value.message, len(told)) == (text, 1)
