"""What a program's launcher asks of the kernel, in which order, and what it does where that fails.

Numbers are those of ``linux/sched.h`` and ``linux/mount.h``.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localgcp.runner import host_launcher

NAMESPACE_OF_MOUNTS, OF_MOUNTS_AND_NAMES, OF_USERS = 0x20000, 0x4020000, 0x10000000
BIND, BIND_ALL, BIND_READ_ONLY = 0x1000, 0x5000, 0x1021
PRIVATE, ALL_PRIVATE, UNBINDABLE = 0x40000, 0x44000, 0x20000
HOST = {"name": "replica-0", "hosts": "/home/hosts"}

Scandir = os.scandir


class Kernel:
    """In place of the kernel: notes each call; ``refused`` are those that fail, how often."""

    def __init__(self, machine: Path) -> None:
        self.machine = machine
        self.calls: list[tuple[Any, ...]] = []
        self.refused: dict[str, list[int]] = {}
        self.flags = 0
        self.error = 0

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any) -> int:
            assert not any(isinstance(each, int) for each in given)  # they would be 32 bits wide
            values = [each.value if isinstance(each, ctypes.c_ulong) else each for each in given]
            self.note(name, *(v.decode() if isinstance(v, bytes) else v for v in values))
            self.error = self.refused[name].pop(0) if self.refused.get(name) else 0
            return -1 if self.error else 0

        return call

    def note(self, *call: Any) -> None:
        self.calls.append(call)

    def entries(self, path: str) -> Iterator[os.DirEntry[str]]:
        """What the machine's ``/`` has, by name."""
        assert path == "/"
        return iter(sorted(Scandir(self.machine), key=lambda each: each.name))


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    machine = tmp_path / "machine"
    for folder in ("bin", "gcs"):
        (machine / folder).mkdir(parents=True)
    (machine / "file").touch()
    (machine / "lib").symlink_to("usr/lib")
    made = Kernel(machine)
    write = Path.write_text

    def write_text(path: Path, text: str, *rest: Any) -> int:
        if path.is_relative_to("/proc"):
            made.note("write", str(path), text)
            return 0
        return write(path, text, *rest)

    def library(name: str | None, *, use_errno: bool) -> Kernel:
        assert (name, use_errno) == (None, True)
        return made

    monkeypatch.setattr(ctypes, "CDLL", library)
    monkeypatch.setattr(ctypes, "get_errno", lambda: made.error)
    monkeypatch.setattr(Path, "write_text", write_text)
    monkeypatch.setattr(Path, "cwd", lambda: Path("/here"))
    monkeypatch.setattr(os, "chdir", lambda path: made.note("chdir", str(path)))
    monkeypatch.setattr(os, "scandir", made.entries)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(os, "getegid", lambda: 2000)
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=made.flags))
    monkeypatch.setattr(socket, "sethostname", lambda name: made.note("sethostname", name))
    return made


def test_a_user_without_the_right_keeps_its_user_in_a_namespace(kernel: Kernel) -> None:
    kernel.refused = {"unshare": [errno.EPERM]}
    host_launcher.enter({})
    assert kernel.calls == [
        ("unshare", NAMESPACE_OF_MOUNTS),
        ("unshare", OF_USERS | NAMESPACE_OF_MOUNTS),
        ("write", "/proc/self/setgroups", "deny"),
        ("write", "/proc/self/uid_map", "1000 1000 1"),
        ("write", "/proc/self/gid_map", "2000 2000 1"),
        ("mount", None, "/", None, ALL_PRIVATE, None),
    ]


@pytest.mark.parametrize("is_begun", [False, True])
def test_buckets_are_all_that_is_in_gcs(kernel: Kernel, tmp_path: Path, is_begun: bool) -> None:
    root = tmp_path / "root"
    root.mkdir()
    if is_begun:  # by an attempt before
        for folder in ("bin", "gcs"):
            (root / folder).mkdir()
        (root / "lib").symlink_to("usr/lib")
    gcs = {
        "root": str(root), "folder": "/buckets", "read_only": ["a"], "objects": {"b": "/objects"},
    }  # fmt: skip
    host_launcher.enter({"gcs": gcs})
    machine = kernel.machine
    assert kernel.calls == [
        ("unshare", NAMESPACE_OF_MOUNTS),
        ("mount", None, "/", None, ALL_PRIVATE, None),
        ("mount", f"{root}", f"{root}", None, BIND, None),
        ("mount", None, f"{root}", None, UNBINDABLE, None),
        ("mount", f"{machine}/bin", f"{root}/bin", None, BIND_ALL, None),
        ("mount", f"{machine}/file", f"{root}/file", None, BIND_ALL, None),
        ("mount", "/buckets", f"{root}/gcs", None, BIND, None),
        ("mount", f"{root}/gcs/a", f"{root}/gcs/a", None, BIND, None),
        ("mount", None, f"{root}/gcs/a", None, BIND_READ_ONLY, None),
        ("mount", "/objects", f"{root}/gcs/b", None, BIND, None),
        ("mount", None, f"{root}/gcs/b", None, BIND_READ_ONLY, None),
        ("chdir", f"{root}"),
        ("pivot_root", ".", "."),
        ("umount2", ".", 2),
        ("mount", None, "/", None, PRIVATE, None),
        ("chdir", "/here"),
    ]
    found = {path.name: path.is_dir() for path in root.iterdir() if not path.is_symlink()}
    assert found == {"bin": True, "gcs": True, "file": False}
    assert (root / "lib").readlink() == Path("usr/lib")


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (0x1, 0),  # read-only
        (0x2, 0x2),  # nosuid
        (0x4, 0x4),  # nodev
        (0x8, 0x8),  # noexec
        (0x10, 0),  # synchronous
        (0x400, 0x400),  # noatime
        (0x800, 0x800),  # nodiratime
        (0x1000, 1 << 21),  # relatime, for which statvfs(3) has a number of its own
    ],
)
def test_what_a_namespace_may_not_drop_of_a_mount_is_kept(
    kernel: Kernel, tmp_path: Path, flags: int, kept: int
) -> None:
    kernel.flags = flags
    gcs = {"root": str(tmp_path), "folder": "/buckets", "read_only": ["a"], "objects": {}}
    host_launcher.enter({"gcs": gcs})
    made = ("mount", None, f"{tmp_path}/gcs/a", None, BIND_READ_ONLY | kept, None)
    assert made in kernel.calls


class ReplacedError(Exception):
    """The process is the program."""


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was set for signals, and then the program."""
    done: list[Any] = []

    def become(file: str, command: list[str]) -> None:
        done.append((file, command))
        if file == "gone":
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        raise ReplacedError

    monkeypatch.setattr(signal, "signal", lambda number, act: done.append((number, act)))
    monkeypatch.setattr(os, "execvp", become)
    return done


def test_the_launcher_becomes_the_program_which_gets_signals_as_usual(
    kernel: Kernel, signals: list[Any], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    usual = [(signal.SIGPIPE, signal.SIG_DFL), (signal.SIGXFSZ, signal.SIG_DFL)]
    monkeypatch.setattr(sys, "argv", ["launcher", json.dumps({"host": HOST}), "echo", "a", "b"])
    with pytest.raises(ReplacedError):
        host_launcher.main()
    assert signals == [*usual, ("echo", ["echo", "a", "b"])]
    assert kernel.calls[-1] == ("sethostname", "replica-0")
    monkeypatch.setattr(sys, "argv", ["launcher", "{}", "gone"])
    assert host_launcher.main() == 126
    assert capsys.readouterr() == ("", "gone: No such file or directory\n")


def test_a_system_that_does_not_allow_it_is_told_by_a_code_of_its_own(
    kernel: Kernel, signals: list[Any], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["launcher", "{}", "echo"])
    kernel.refused = {"unshare": [errno.EPERM, errno.ENOSPC]}
    assert host_launcher.main() == 97
    assert capsys.readouterr() == ("", "[Errno 28] No space left on device\n")
    kernel.refused = {"mount": [errno.EACCES]}
    assert host_launcher.main() == 97
    assert capsys.readouterr() == ("", "[Errno 13] Permission denied\n")

    def library(*_given: Any, **_more: Any) -> Any:
        return SimpleNamespace()

    monkeypatch.setattr(ctypes, "CDLL", library)
    assert host_launcher.main() == 97
    assert "no attribute 'unshare'" in capsys.readouterr().err
    assert signals == []
