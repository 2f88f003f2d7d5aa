"""Files below one folder, by paths that lead down only."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from localgcp.errors import UnsafePathError
from localgcp.system.root_directory import RootDirectory


@pytest.fixture
def root(tmp_path: Path) -> RootDirectory:
    """``a/b`` and ``top`` with their names in them, an empty ``empty``, links, a pipe, a socket."""
    base = tmp_path / "root"
    (base / "a").mkdir(parents=True)
    (base / "empty").mkdir()
    for name in ("a/b", "top"):
        (base / name).write_text(name)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("secret")
    (base / "link").symlink_to(tmp_path / "outside" / "x")
    (base / "folder-link").symlink_to(tmp_path / "outside")
    os.mkfifo(base / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(base)  # the path of a socket is short
        try:
            made.bind("socket")
        finally:
            os.chdir(here)
    return RootDirectory(base)


def unsafe(call: Callable[..., object], *args: object) -> tuple[str, str]:
    """What is wrong, and with which part of the path."""
    with pytest.raises(UnsafePathError) as refused:
        call(*args)
    return refused.value.strerror, refused.value.filename


def test_a_folder_is_listed_with_all_below_it(root: RootDirectory) -> None:
    assert sorted(path for path, _ in root.entries()) == [
        "a/b", "folder-link", "link", "pipe", "socket", "top",
    ]  # fmt: skip
    assert sorted(path for path, _ in root.files()) == ["a/b", "top"]
    assert [(path, found.st_size) for path, found in root.files("a")] == [("b", 3)]
    assert list(root.entries("empty")) == list(root.entries("none")) == []
    assert list(root.entries("folder-link")) == list(root.files("top")) == []
    assert list(RootDirectory(root.path / "none").entries()) == []


def test_files_move_and_go(root: RootDirectory, tmp_path: Path) -> None:
    root.move("a/b", "new/c")
    assert (root.read("a/b"), root.read("new/c")) == (None, b"a/b")
    (tmp_path / "mine").write_text("mine")
    root.take_in(tmp_path / "mine", "taken/in")
    assert root.read("taken/in") == b"mine"
    assert not (tmp_path / "mine").exists()
    for path in ("taken/in", "link", "none", "none/x"):
        root.remove(path)
    assert root.read("taken/in") is None
    assert (tmp_path / "outside" / "x").exists()
    assert unsafe(root.remove, "folder-link/x") == ("is a link", "folder-link")
    with pytest.raises(FileNotFoundError):
        root.move("none", "x")


def test_a_file_does_not_take_the_place_of_a_folder_above_it(root: RootDirectory) -> None:
    root.write("a/deep/file", b"x")
    for old, new in (("a/b", "a"), ("a/deep/file", "a"), ("a/deep/file", "a/deep")):
        assert unsafe(root.move, old, new) == ("is a folder", new)
    assert (root.read("a/b"), root.read("a/deep/file")) == (b"a/b", b"x")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux shows open files")
def test_no_folder_stays_open(root: RootDirectory, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    calls: list[Callable[[], object]] = [
        *(lambda path=path, call=call: call(path)
          for call in (root.read, root.check, root.status, root.remove)
          for path in ("a/b", "a", "link", "folder-link/x", "pipe", "top/x", "../x", "none/x")),
        lambda: root.append("a").close(),
        lambda: root.append("pipe").close(),
        lambda: root.append("new/x").close(),
        lambda: [*root.files()],
        lambda: root.set_rights(of_folders=0o755, of_files=0o644),
        lambda: root.write("a/b", b"x"),
        lambda: root.write("a", b"x"),
        lambda: root.move("top", "a/c"),
        lambda: root.move("none", "a/c"),
        lambda: root.take_in(tmp_path / "mine", "empty"),
    ]  # fmt: skip
    for call in calls:
        with suppress(OSError):
            call()
    still_open: list[str] = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the list itself
            still_open.append(os.readlink(f"/proc/self/fd/{number}"))
    assert [path for path in still_open if path.startswith(str(tmp_path))] == []


def test_what_git_keeps_for_itself_is_neither_read_nor_written(root: RootDirectory) -> None:
    (root.path / ".git").mkdir()
    (root.path / ".git" / "config").touch()
    closed = RootDirectory(root.path, refuse_git=True)
    assert unsafe(closed.read, ".git/config") == ("is reserved for git", ".git/config")
    assert unsafe(closed.write, "a/.GIT/x", b"") == ("is reserved for git", "a/.GIT/x")
    assert root.read(".git/config") == b""
    assert [path for path, _ in closed.files()] == [path for path, _ in closed.files()
                                                    if ".git" not in path]  # fmt: skip
