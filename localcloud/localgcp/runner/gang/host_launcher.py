"""``host_launcher.py VIEW PROGRAM ARGUMENT…``: become PROGRAM, with another view of the machine.

Linux only. VIEW is JSON, and both of its parts may be left out:

``host``
    ``{"name": …, "hosts": …}``: the name of the machine, and a file that is its ``/etc/hosts``.
``gcs``
    ``{"root": …, "folder": …, "read_only": [folder, …], "objects": {bucket: folder, …}}``: ``/gcs``
    is this folder. Its folders in ``read_only`` cannot be written to; below it lie the read-only
    ``objects``. No file outside of it lies below ``/gcs``, and none that the program makes in
    ``/`` itself reaches the machine: ``root``, an empty folder, is what its ``/`` is made from.

All else is this machine's: network, files, users. Exit code 97 and a line if the system does not
allow it.

A script of its own: it changes the process it runs in. Standard library only, so that it starts in
a few hundredths of a second.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

#: include/uapi/linux/sched.h
_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWUTS: Final = 0x04000000
_CLONE_NEWUSER: Final = 0x10000000
#: include/uapi/linux/mount.h
_MS_RDONLY: Final = 0x1
_MS_REMOUNT: Final = 0x20
_MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_UNBINDABLE: Final = 1 << 17
_MS_PRIVATE: Final = 1 << 18
_MNT_DETACH: Final = 2
#: Flags of a mount that a user namespace may not drop: nosuid, nodev, noexec, noatime, nodiratime,
#: relatime. statvfs(3) has them with the same values, but for the last.
_KEPT: Final = 0x2 | 0x4 | 0x8 | 0x400 | 0x800
_ST_RELATIME: Final = 0x1000
_MS_RELATIME: Final = 1 << 21
#: Exit code of a system that does not allow it.
REFUSED: Final = 97
#: Exit code of a program that cannot be executed, as shells have it.
_NOT_EXECUTABLE: Final = 126
#: Where buckets are; the folder of the machine by that name is hidden.
_MOUNT: Final = "gcs"


def enter(view: dict[str, Any]) -> None:
    """Give this process what the view says. Raises OSError.

    Without the right to do so, it first gets a user namespace, in which it keeps its user.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    spaces = _CLONE_NEWNS | (_CLONE_NEWUTS if "host" in view else 0)
    try:
        _call(libc.unshare, spaces)
    except PermissionError:
        _call(libc.unshare, _CLONE_NEWUSER | spaces)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    # Else the mounts would reach all processes of this machine.
    _mount(libc, None, "/", _MS_REC | _MS_PRIVATE)
    if gcs := view.get("gcs"):
        _enter_root(libc, gcs)
    if host := view.get("host"):
        _mount(libc, host["hosts"], "/etc/hosts", _MS_BIND)
        socket.sethostname(host["name"])


def _enter_root(libc: ctypes.CDLL, gcs: dict[str, Any]) -> None:
    """Make a root of everything that the machine's has, but for ``/gcs``; and enter it.

    ``/gcs`` need not be there, and making it takes root's rights and leaves it behind.
    """
    root, here = gcs["root"], Path.cwd()
    _mount(libc, root, root, _MS_BIND)
    _mount(libc, None, root, _MS_UNBINDABLE)  # else it would be part of its own parts
    for entry in os.scandir("/"):
        if entry.name != _MOUNT:
            _show(libc, entry, os.path.join(root, entry.name))
    target = os.path.join(root, _MOUNT)
    Path(target).mkdir(exist_ok=True)
    _mount(libc, gcs["folder"], target, _MS_BIND)
    for folder in gcs["read_only"]:
        at = os.path.join(target, folder)
        _mount(libc, at, at, _MS_BIND)
        _make_read_only(libc, at)
    for bucket, objects in gcs["objects"].items():
        at = os.path.join(target, bucket)
        _mount(libc, objects, at, _MS_BIND)
        _make_read_only(libc, at)
    os.chdir(root)
    _call(libc.pivot_root, b".", b".")
    _call(libc.umount2, b".", _MNT_DETACH)
    _mount(libc, None, "/", _MS_PRIVATE)
    os.chdir(here)


def _show(libc: ctypes.CDLL, entry: os.DirEntry[str], target: str) -> None:
    """Put an entry of the machine's ``/`` at its place in the new root."""
    if entry.is_symlink():
        if not os.path.lexists(target):
            Path(target).symlink_to(Path(entry.path).readlink())
        return
    if entry.is_dir():
        Path(target).mkdir(exist_ok=True)
    else:
        Path(target).touch()
    _mount(libc, entry.path, target, _MS_BIND | _MS_REC)


def _make_read_only(libc: ctypes.CDLL, target: str) -> None:
    flags = os.statvfs(target).f_flag
    kept = flags & _KEPT | (_MS_RELATIME if flags & _ST_RELATIME else 0)
    _mount(libc, None, target, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept)


def _mount(libc: ctypes.CDLL, source: str | None, target: str, flags: int) -> None:
    of = None if source is None else os.fsencode(source)
    _call(libc.mount, of, os.fsencode(target), None, flags, None)


def _call(function: ctypes._FuncPointer, *arguments: bytes | int | None) -> None:
    given = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    if function(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main() -> int:
    """Exit code 97 if there is no such view here; else the process becomes the program."""
    view, *command = sys.argv[1:]
    try:
        enter(json.loads(view))
    except (OSError, AttributeError) as error:  # no such call, or a container that forbids it
        print(error, file=sys.stderr)
        return REFUSED
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and so would the program
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main())
