"""Tests that no link leads reads or writes out of a folder, even if swapped in concurrently."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from localgcp.errors import UnsafePathError
from localgcp.system.root_directory import RootDirectory, is_gits

SECRET: Final = b"canary of the host"
#: linux/fs.h: two names change places in one step, so that there is never none.
RENAME_EXCHANGE: Final = 2
#: Attempts while two names change places; the naive way fails within some ten.
ATTEMPTS: Final = 1000


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Swap two names continuously in a thread while the block runs."""
    renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    names = (-100, os.fsencode(one), -100, os.fsencode(other), RENAME_EXCHANGE)
    if renameat2(*names):
        pytest.skip("the file system cannot exchange two names")
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            renameat2(*names)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder that must not be read or written."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "x").write_bytes(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "x").write_bytes(b"ours")
    return folder


def test_link_in_any_part_of_a_path_is_refused(root: Path, outside: Path) -> None:
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "x")
    (root / "inside").symlink_to("d")
    below = RootDirectory(root)
    for path in ("folder/x", "inside/x"):
        for act in (below.read, below.open, below.remove, lambda p: below.write(p, b"")):
            with pytest.raises(UnsafePathError, match="is a link"):
                act(path)
        assert below.status(path) is None
    with pytest.raises(UnsafePathError, match="is a link"):
        below.read("file")
    assert dict(below.files()).keys() == {"d/x"}
    assert list(below.files("folder")) == []
    below.write("file", b"ours")  # takes the place of the link
    assert not (root / "file").is_symlink()
    assert (outside / "x").read_bytes() == SECRET


@pytest.mark.parametrize(
    "path", ["../outside/x", "/etc/passwd", "d/../../outside/x", "", ".", "d//x", "d/", "a\0b"]
)
def test_path_out_of_the_folder_is_refused(path: str, root: Path, outside: Path) -> None:
    below = RootDirectory(root)
    for act in (below.read, below.open, below.remove, lambda p: below.write(p, b"")):
        with pytest.raises(UnsafePathError, match="not a path below"):
            act(path)
    with pytest.raises(UnsafePathError):
        below.take_in(root / "d" / "x", path)
    assert (outside / "x").read_bytes() == SECRET


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".git.", ".git ", "git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION"]
)
def test_git_folder_is_refused_by_all_its_names(name: str, root: Path) -> None:
    assert is_gits(name)
    for path in (f"{name}/hooks/post-commit", f"d/{name}/config", name):
        with pytest.raises(UnsafePathError, match="reserved for git"):
            RootDirectory(root, refuse_git=True).write(path, b"")
        with pytest.raises(UnsafePathError, match="reserved for git"):
            RootDirectory(root, refuse_git=True).read(path)
    RootDirectory(root).write(f"{name}/config", b"")


def test_pipe_or_folder_in_place_of_a_file_is_refused_at_once(root: Path) -> None:
    os.mkfifo(root / "pipe")
    below = RootDirectory(root)
    for path in ("pipe", "d"):
        with pytest.raises(UnsafePathError):
            below.read(path)
    with pytest.raises(UnsafePathError, match="is a folder"):
        below.write("d", b"")
    with pytest.raises(UnsafePathError, match="is not a folder"):
        below.write("d/x/y", b"")
    assert sorted(path.name for path in root.rglob("*")) == ["d", "pipe", "x"]


def test_file_is_written_completely_with_its_mode(root: Path) -> None:
    below = RootDirectory(root)
    below.write("a/b/c", b"one", 0o755)
    assert ((root / "a/b/c").read_bytes(), (root / "a/b/c").stat().st_mode & 0o777) == (
        b"one",
        0o755,
    )
    (root / "ours").write_bytes(b"two")
    below.take_in(root / "ours", "a/b/c")
    assert below.read("a/b/c") == b"two"
    below.remove("a/b/c")
    below.remove("a/b/c")
    below.remove("none/of/it")
    assert below.read("a/b/c") is None


def test_permissions_behind_links_stay_unchanged(root: Path, outside: Path) -> None:
    os.mkfifo(root / "pipe", 0o666)
    (root / "link").symlink_to(outside)
    (root / "d" / "link").symlink_to(outside / "x")
    paths = (root, root / "d", root / "d" / "x", root / "pipe", outside, outside / "x")
    for path in paths:
        path.chmod(0o755)
    before = set(os.listdir("/dev/fd"))
    RootDirectory(root).set_rights(of_folders=0o700, of_files=0o600)
    rights = [path.stat().st_mode & 0o777 for path in paths]
    assert rights == [0o700, 0o700, 0o600, 0o755, 0o755, 0o755]
    assert set(os.listdir("/dev/fd")) == before  # and nothing is left open


def test_move_and_append_create_missing_folders(root: Path) -> None:
    below = RootDirectory(root)
    below.move("d/x", "e/f/y")
    with below.append("g/log") as log:
        log.write(b"a line")
    assert [below.read(path) for path in ("d/x", "e/f/y", "g/log")] == [None, b"ours", b"a line"]


@pytest.mark.parametrize("is_read", [True, False])
def test_append_to_a_pipe_is_refused(root: Path, is_read: bool) -> None:
    os.mkfifo(root / "d/pipe")
    reader = os.open(root / "d/pipe", os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    with pytest.raises(UnsafePathError, match="is not a regular file"):
        RootDirectory(root).append("d/pipe")
    if reader is not None:
        os.close(reader)


def test_folder_swapped_with_a_link_never_leads_out_of_the_root(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    below, ours = RootDirectory(root), root.parent / "ours"
    found = set[bytes | None]()
    with swapping(root / "d", root / "link"):
        for number in range(ATTEMPTS):
            with suppress(UnsafePathError):
                found.add(below.read("d/x"))
            with suppress(UnsafePathError):
                below.write("d/x", b"ours")
            with suppress(UnsafePathError):
                ours.write_bytes(b"ours")
                below.take_in(ours, f"d/{number % 3}")
            with suppress(UnsafePathError):
                below.remove(f"d/{number % 3}")
            below.status("d/x")
            assert {path for path, _ in below.files()} <= {
                f"{folder}/{name}" for folder in ("d", "link") for name in ("x", "0", "1", "2")
            }
    assert found == {b"ours"}
    assert [(path.name, path.read_bytes()) for path in outside.iterdir()] == [("x", SECRET)]


def test_file_swapped_with_a_link_is_never_followed(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside / "x")
    below, found = RootDirectory(root), set[bytes | None]()
    with swapping(root / "d" / "x", root / "link"):
        for _ in range(ATTEMPTS):
            with suppress(UnsafePathError):
                found.add(below.read("d/x"))
    assert found == {b"ours"}


def refusal(act: Callable[[], object]) -> tuple[int | None, str | None, str | None]:
    with pytest.raises(UnsafePathError) as refused:
        act()
    return refused.value.errno, refused.value.strerror, refused.value.filename


def test_refusal_contains_the_obstacle_and_its_path(root: Path, outside: Path) -> None:
    (root / "d" / "out").symlink_to(outside)
    (root / "d" / "link").symlink_to("x")
    os.mkfifo(root / "pipe")
    (root / "e").mkdir()
    below = RootDirectory(root)
    told = {
        "read link": refusal(lambda: below.read("d/link")),
        "read folder": refusal(lambda: below.read("d")),
        "read pipe": refusal(lambda: below.read("pipe")),
        "check link": refusal(lambda: below.check("d/link")),
        "check folder": refusal(lambda: below.check("d")),
        "check pipe": refusal(lambda: below.check("pipe")),
        "behind link": refusal(lambda: below.read("d/out/x/y")),
        "behind file": refusal(lambda: below.read("d/x/y/z")),
        "write folder": refusal(lambda: below.write("d", b"")),
        "append link": refusal(lambda: below.append("d/link")),
        "append folder": refusal(lambda: below.append("d")),
        "move": refusal(lambda: below.move("d/x", "e")),
        "take in": refusal(lambda: below.take_in(root / "d" / "x", "e")),
    }
    assert {name: text for name, (_, text, _) in told.items()} == {
        "read link": "is a link", "read folder": "is not a regular file",
        "read pipe": "is not a regular file",
        "check link": "is a link", "check folder": "is a folder",
        "check pipe": "is not a regular file",
        "behind link": "is a link", "behind file": "is not a folder",
        "write folder": "is a folder", "append link": "is a link", "append folder": "is a folder",
        "move": "is a folder", "take in": "is a folder",
    }  # fmt: skip
    assert [path for _, _, path in told.values()] == [
        "d/link", "d", "pipe", "d/link", "d", "pipe", "d/out", "d/x", "d", "d/link", "d", "e", "e"
    ]  # fmt: skip
    assert (root / "d" / "x").read_bytes() == b"ours"
    assert sorted(os.listdir(root)) == ["d", "e", "pipe"]  # no partial file is left


def test_socket_in_place_of_a_file_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        for act in (RootDirectory(root).read, RootDirectory(root).append):
            assert refusal(lambda act=act: act("s")) == (errno.ENXIO, "is not a regular file", "s")


def test_system_error_contains_the_whole_path(root: Path) -> None:
    for path in ("d/none", "none/of/it"):
        with pytest.raises(FileNotFoundError) as missing:
            RootDirectory(root).open(path)
        assert missing.value.filename == path.partition("/of")[0]
        assert missing.value.strerror == "No such file or directory"


def test_status_exists_only_for_regular_files(root: Path) -> None:
    below = RootDirectory(root)
    found = below.check("d/x")
    assert found is not None
    assert found.st_size == 4
    assert below.status("d/x") == found
    assert below.check("d/none") is None
    assert below.check("none/x") is None
    for path in ("d", "d/none", "d/x/y", "../outside"):
        assert below.status(path) is None


def test_entries_are_listed_by_relative_path(root: Path, outside: Path) -> None:
    (root / "d" / "e" / "f").mkdir(parents=True)
    (root / "d" / "e" / "f" / "y").write_bytes(b"abc")
    (root / "top").write_bytes(b"")
    (root / "d" / "link").symlink_to(outside)
    os.mkfifo(root / "d" / "pipe")
    below = RootDirectory(root)
    assert {path: found.st_size for path, found in below.files()} == {
        "top": 0, "d/x": 4, "d/e/f/y": 3
    }  # fmt: skip
    assert {path for path, _ in below.files("d/e")} == {"f/y"}
    kinds = {path: stat.S_IFMT(found.st_mode) for path, found in below.entries("d")}
    assert kinds == {
        "x": stat.S_IFREG, "e/f/y": stat.S_IFREG, "link": stat.S_IFLNK, "pipe": stat.S_IFIFO
    }  # fmt: skip
    for path in ("none", "d/x", "d/link"):
        assert list(below.entries(path)) == []


def test_new_file_is_private_unless_a_mode_is_given(root: Path) -> None:
    below = RootDirectory(root)
    before = os.umask(0)
    try:
        below.write("a", b"")
        below.append("log").close()
    finally:
        os.umask(before)
    assert (root / "a").stat().st_mode & 0o777 == 0o644
    assert (root / "log").stat().st_mode & 0o777 == 0o600
    with below.append("log") as log:
        log.write(b"one ")
    with below.append("log") as log:
        log.write(b"two")
    assert below.read("log") == b"one two"


def test_leftover_partial_file_does_not_block_a_write(root: Path) -> None:
    below = RootDirectory(root)
    below.write("d/x", b"new")
    [name] = os.listdir(root / "d")
    assert name == "x"
    partial = f".vt-new-{zlib.crc32(b'x'):08x}"
    (root / "d" / partial).symlink_to(root / "elsewhere")
    below.write("d/x", b"newer")
    assert (below.read("d/x"), os.listdir(root / "d")) == (b"newer", ["x"])
    assert not (root / "elsewhere").exists()


def test_no_file_descriptor_stays_open(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside)
    below, before = RootDirectory(root), set(os.listdir("/dev/fd"))
    for path in ("d/x", "link/x", "d", "d/none", "a\0b", "d/x/y"):
        with suppress(OSError):
            below.read(path)
        with suppress(OSError):
            below.append(path).close()
        with suppress(OSError):
            below.write(path, b"")
    assert [*below.files()]
    assert set(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("name", [".gitx", "x.git", "git", "git~10", "git~2", ".git x", "a:.git"])
def test_names_similar_to_git_are_accepted(name: str) -> None:
    assert not is_gits(name)
