"""No link leads what we read or write out of its folder, also one that is swapped in meanwhile."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from localgcp.errors import UnsafePathError
from localgcp.root_directory import RootDirectory, is_gits

SECRET: Final = b"canary of the host"
#: linux/fs.h: two names change places in one step, so that there is never none.
RENAME_EXCHANGE: Final = 2
#: Attempts while two names change places; the naive way fails within some ten.
ATTEMPTS: Final = 1000


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Two names change places all the time, as fast as a thread can."""
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
    """A folder that nothing may be read from, and nothing written to."""
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


def test_a_link_in_any_part_of_a_path_is_refused(root: Path, outside: Path) -> None:
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
def test_a_path_that_does_not_lead_down_is_refused(path: str, root: Path, outside: Path) -> None:
    below = RootDirectory(root)
    for act in (below.read, below.open, below.remove, lambda p: below.write(p, b"")):
        with pytest.raises(UnsafePathError, match="no path below"):
            act(path)
    with pytest.raises(UnsafePathError):
        below.take_in(root / "d" / "x", path)
    assert (outside / "x").read_bytes() == SECRET


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".git.", ".git ", "git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION"]
)
def test_what_git_keeps_for_itself_is_refused_by_all_its_names(name: str, root: Path) -> None:
    assert is_gits(name)
    for path in (f"{name}/hooks/post-commit", f"d/{name}/config", name):
        with pytest.raises(UnsafePathError, match="git's own"):
            RootDirectory(root, refuse_git=True).write(path, b"")
        with pytest.raises(UnsafePathError, match="git's own"):
            RootDirectory(root, refuse_git=True).read(path)
    RootDirectory(root).write(f"{name}/config", b"")


def test_a_pipe_or_a_folder_is_no_file_and_holds_nobody_up(root: Path) -> None:
    os.mkfifo(root / "pipe")
    below = RootDirectory(root)
    for path in ("pipe", "d"):
        with pytest.raises(UnsafePathError):
            below.read(path)
    with pytest.raises(UnsafePathError, match="is a folder"):
        below.write("d", b"")
    with pytest.raises(UnsafePathError, match="is no folder"):
        below.write("d/x/y", b"")
    assert sorted(path.name for path in root.rglob("*")) == ["d", "pipe", "x"]


def test_a_file_is_written_as_a_whole_with_its_rights(root: Path) -> None:
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


def test_rights_are_given_to_files_and_folders_and_to_nothing_that_a_link_leads_to(
    root: Path, outside: Path
) -> None:
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


def test_a_file_is_moved_to_a_folder_that_is_made_and_appended_to_in_one(root: Path) -> None:
    below = RootDirectory(root)
    below.move("d/x", "e/f/y")
    with below.append("g/log") as log:
        log.write(b"a line")
    assert [below.read(path) for path in ("d/x", "e/f/y", "g/log")] == [None, b"ours", b"a line"]


@pytest.mark.parametrize("is_read", [True, False])
def test_nothing_is_appended_to_a_pipe(root: Path, is_read: bool) -> None:
    os.mkfifo(root / "d/pipe")
    reader = os.open(root / "d/pipe", os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    with pytest.raises(UnsafePathError, match="is no file"):
        RootDirectory(root).append("d/pipe")
    if reader is not None:
        os.close(reader)


def test_a_folder_swapped_with_a_link_never_leads_out(root: Path, outside: Path) -> None:
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


def test_a_file_swapped_with_a_link_is_never_read_through(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside / "x")
    below, found = RootDirectory(root), set[bytes | None]()
    with swapping(root / "d" / "x", root / "link"):
        for _ in range(ATTEMPTS):
            with suppress(UnsafePathError):
                found.add(below.read("d/x"))
    assert found == {b"ours"}
