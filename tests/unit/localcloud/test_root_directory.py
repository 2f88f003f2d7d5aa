"""Files below one folder, by paths that lead down only."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from localgcp.errors import UnsafePathError
from localgcp.root_directory import RootDirectory, is_gits, path_problem

BELOW = "is no path below the folder"


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


def test_a_file_is_read_by_its_path(root: RootDirectory) -> None:
    with root.open("a/b") as file:
        assert file.read() == b"a/b"
    assert root.read("top") == b"top"
    assert root.read("none") is None
    assert root.read("none/x") is None
    with pytest.raises(FileNotFoundError) as missing:
        root.open("a/none")
    assert (missing.value.filename, missing.value.errno) == ("a/none", errno.ENOENT)


NOT_FILES = [
    ("link", ("is a link", "link")),
    ("folder-link", ("is a link", "folder-link")),
    ("folder-link/x", ("is a link", "folder-link")),
    ("top/x", ("is no folder", "top")),
    ("socket", ("is no file", "socket")),
    ("pipe", ("is no file", "pipe")),
    ("../outside/x", (BELOW, "../outside/x")),
    ("/top", (BELOW, "/top")),
    ("a//b", (BELOW, "a//b")),
    ("a/./b", (BELOW, "a/./b")),
    ("", (BELOW, "")),
    ("a\0b", (BELOW, "a\0b")),
]


@pytest.mark.parametrize(("path", "why"), [*NOT_FILES, ("a", ("is no file", "a"))])
def test_what_is_no_file_is_not_opened(
    root: RootDirectory, path: str, why: tuple[str, str]
) -> None:
    assert unsafe(root.open, path) == why
    assert unsafe(root.read, path) == why


@pytest.mark.parametrize(("path", "why"), [*NOT_FILES, ("a", ("is a folder", "a"))])
def test_what_is_no_file_has_no_status(
    root: RootDirectory, path: str, why: tuple[str, str]
) -> None:
    assert unsafe(root.check, path) == why
    assert root.status(path) is None


def test_the_status_is_that_of_a_regular_file(root: RootDirectory) -> None:
    for call in (root.status, root.check):
        found = call("a/b")
        assert found is not None
        assert found.st_size == 3
        assert call("a/none") is None
        assert call("none/b") is None


def test_a_folder_is_listed_with_all_below_it(root: RootDirectory) -> None:
    assert sorted(path for path, _ in root.entries()) == [
        "a/b", "folder-link", "link", "pipe", "socket", "top",
    ]  # fmt: skip
    assert sorted(path for path, _ in root.files()) == ["a/b", "top"]
    assert [(path, found.st_size) for path, found in root.files("a")] == [("b", 3)]
    assert list(root.entries("empty")) == list(root.entries("none")) == []
    assert list(root.entries("folder-link")) == list(root.files("top")) == []
    assert list(RootDirectory(root.path / "none").entries()) == []


def test_deep_folders_are_listed_as_far_as_a_path_can_name(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c" / "d").touch()
    assert [path for path, _ in RootDirectory(tmp_path).files()] == ["a/b/c/d"]


def test_a_file_is_written_whole_with_the_folders_above_it(root: RootDirectory) -> None:
    root.write("new/deep/file", b"one")
    file = root.path / "new" / "deep" / "file"
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"one", 0o644)
    root.write("new/deep/file", b"two", 0o755)
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"two", 0o755)
    assert [path.name for path in file.parent.iterdir()] == ["file"]


def test_a_link_in_place_of_a_file_is_replaced(root: RootDirectory, tmp_path: Path) -> None:
    root.write("link", b"ours")
    assert not (root.path / "link").is_symlink()
    assert (tmp_path / "outside" / "x").read_text() == "secret"


def test_what_a_write_that_was_cut_off_left_is_no_hindrance(root: RootDirectory) -> None:
    partial = root.path / ".vt-new-2a4f5d37"
    root.write("file", b"x")
    names = {path.name for path in root.path.iterdir()}
    assert not any(name.startswith(".vt-new") for name in names)
    partial.touch()
    root.write("file", b"y")
    assert root.read("file") == b"y"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a", ("is a folder", "a")),
        ("folder-link/new", ("is a link", "folder-link")),
        ("top/new", ("is no folder", "top")),
        ("../new", (BELOW, "../new")),
    ],
)
def test_nothing_is_written_elsewhere(
    root: RootDirectory, tmp_path: Path, path: str, why: tuple[str, str]
) -> None:
    source = tmp_path / "source"
    source.touch()
    assert unsafe(root.write, path, b"x") == why
    assert unsafe(root.take_in, source, path) == why
    root.write("mine", b"mine")
    assert unsafe(root.move, "mine", path) == why
    assert source.exists()
    assert root.read("mine") == b"mine"
    assert sorted(each.name for each in (tmp_path / "outside").iterdir()) == ["x"]
    assert not any(each.name.startswith(".vt-new") for each in root.path.iterdir())


def test_lines_are_added_to_a_file_for_this_user_alone(root: RootDirectory) -> None:
    for line in (b"one\n", b"two\n"):
        with root.append("log/file") as file:
            file.write(line)
    file = root.path / "log" / "file"
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (b"one\ntwo\n", 0o600)
    for path, why in (
        ("link", "is a link"), ("pipe", "is no file"), ("socket", "is no file"),
        ("a", "is a folder"), ("folder-link/x", "is a link"),
    ):  # fmt: skip
        assert unsafe(root.append, path)[0] == why


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


def test_rights_are_those_of_folders_and_of_files(root: RootDirectory, tmp_path: Path) -> None:
    for path in (root.path, root.path / "a", root.path / "top", root.path / "a" / "b"):
        path.chmod(0o700)
    (tmp_path / "outside" / "x").chmod(0o600)
    root.set_rights(of_folders=0o755, of_files=0o640)

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert [mode(root.path / name) for name in (".", "a", "empty")] == [0o755] * 3
    assert [mode(root.path / name) for name in ("top", "a/b")] == [0o640] * 2
    assert mode(tmp_path / "outside" / "x") == 0o600


def test_what_git_keeps_for_itself_is_neither_read_nor_written(root: RootDirectory) -> None:
    (root.path / ".git").mkdir()
    (root.path / ".git" / "config").touch()
    closed = RootDirectory(root.path, refuse_git=True)
    assert unsafe(closed.read, ".git/config") == ("is git's own", ".git/config")
    assert unsafe(closed.write, "a/.GIT/x", b"") == ("is git's own", "a/.GIT/x")
    assert root.read(".git/config") == b""
    assert [path for path, _ in closed.files()] == [path for path, _ in closed.files()
                                                    if ".git" not in path]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("a", ""),
        ("a/b.c", ""),
        (".gitignore", ""),
        ("..a", ""),
        ("a/", BELOW),
        ("..", BELOW),
        ("a/../b", BELOW),
        (".", BELOW),
        (".git", "is git's own"),
        ("a/.git/b", "is git's own"),
    ],
)
def test_a_path_that_leads_down_has_no_problem(path: str, problem: str) -> None:
    assert path_problem(path, refuse_git=True) == problem
    assert path_problem(path) == (problem if problem == BELOW else "")


@pytest.mark.parametrize(
    ("name", "own"),
    [(".git", True), (".GiT", True), (".git. ", True), (".git::$INDEX", True), ("GIT~1", True),
     (".g\u200cit", True), (".gitx", False), ("git", False), ("git~2", False), ("x.git", False)],
)  # fmt: skip
def test_gits_own_names_are_known_on_any_file_system(name: str, own: bool) -> None:
    assert is_gits(name) is own
