"""``host_launcher.py VIEW PROGRAM ARGUMENT…``: run PROGRAM with its own hosts file and ``/gcs``.

Linux only, with the standard library only. VIEW is a JSON object with optional keys:

``host``
    ``{"name": …, "hosts": …}``: the host name, and a file that replaces ``/etc/hosts``.
``gcs``
    ``{"root": …, "folder": …, "read_only": [folder, …], "objects": {bucket: folder, …}}``:
    ``folder`` replaces ``/gcs``; ``read_only`` lists its read-only folders, ``objects`` maps
    buckets to read-only folders. ``root`` is an empty folder for the program's ``/``.

The exit code is 97 if the system does not support the view.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final

if not __package__:  # This file runs as a script.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from localgcp.system import namespaces
from localgcp.system.namespaces import call, mount

_MNT_DETACH: Final = 2
#: Flags of a mount that a user namespace may not drop: nosuid, nodev, noexec, noatime, nodiratime,
#: relatime. statvfs(3) has the same values, except for relatime.
_KEPT: Final = 0x2 | 0x4 | 0x8 | 0x400 | 0x800
_ST_RELATIME: Final = 0x1000
_MS_RELATIME: Final = 1 << 21
#: Exit code if the system does not support the view.
REFUSED: Final = 97
#: Exit code of a program that cannot be executed, as in shells.
_NOT_EXECUTABLE: Final = 126
#: Name of the folder with the buckets; the machine's folder of this name is hidden.
_MOUNT: Final = "gcs"


def enter(view: dict[str, Any]) -> None:
    """Apply the view to this process. Raises the errors of ``namespaces.unshare``."""
    host_name = namespaces.NEW_HOST_NAME if "host" in view else 0
    namespaces.unshare(namespaces.NEW_MOUNTS | host_name)
    # Without this call, all processes of this machine would see the mounts.
    mount(None, "/", namespaces.RECURSIVE | namespaces.PRIVATE)
    if gcs := view.get("gcs"):
        _enter_root(gcs)
    if host := view.get("host"):
        mount(host["hosts"], "/etc/hosts", namespaces.BIND)
        socket.sethostname(host["name"])


def _enter_root(gcs: dict[str, Any]) -> None:
    root, here = gcs["root"], Path.cwd()
    mount(root, root, namespaces.BIND)
    mount(None, root, namespaces.UNBINDABLE)  # keeps the folder out of the mounts below it
    for entry in os.scandir("/"):
        if entry.name != _MOUNT:
            _show(entry, os.path.join(root, entry.name))
    target = os.path.join(root, _MOUNT)
    Path(target).mkdir(exist_ok=True)
    mount(gcs["folder"], target, namespaces.BIND)
    for folder in gcs["read_only"]:
        at = os.path.join(target, folder)
        mount(at, at, namespaces.BIND)
        _make_read_only(at)
    for bucket, objects in gcs["objects"].items():
        at = os.path.join(target, bucket)
        mount(objects, at, namespaces.BIND)
        _make_read_only(at)
    os.chdir(root)
    call("pivot_root", b".", b".")
    call("umount2", b".", _MNT_DETACH)
    mount(None, "/", namespaces.PRIVATE)
    os.chdir(here)


def _show(entry: os.DirEntry[str], target: str) -> None:
    if entry.is_symlink():
        if not os.path.lexists(target):
            Path(target).symlink_to(Path(entry.path).readlink())
        return
    if entry.is_dir():
        Path(target).mkdir(exist_ok=True)
    else:
        Path(target).touch()
    mount(entry.path, target, namespaces.BIND | namespaces.RECURSIVE)


def _make_read_only(target: str) -> None:
    now = os.statvfs(target).f_flag
    kept = now & _KEPT | (_MS_RELATIME if now & _ST_RELATIME else 0)
    changed = namespaces.REMOUNT | namespaces.BIND | namespaces.READ_ONLY
    mount(None, target, changed | kept)


def main() -> int:
    """Return 97 if this system does not support the view; else replace this process by PROGRAM."""
    view, *command = sys.argv[1:]
    try:
        enter(json.loads(view))
    except (OSError, AttributeError) as error:  # the system or a container forbids the call
        print(error, file=sys.stderr)
        return REFUSED
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, inherited by programs
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        return _NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main())
