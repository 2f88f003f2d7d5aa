"""Linux namespaces and mounts through system calls, with few imports for a fast start."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path
from typing import Final

#: include/uapi/linux/sched.h
NEW_MOUNTS: Final = 0x00020000
NEW_HOST_NAME: Final = 0x04000000
NEW_IPC: Final = 0x08000000
NEW_USER: Final = 0x10000000
NEW_PROCESSES: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000
#: include/uapi/linux/mount.h
READ_ONLY: Final = 0x1
REMOUNT: Final = 0x20
BIND: Final = 0x1000
RECURSIVE: Final = 0x4000
UNBINDABLE: Final = 1 << 17
PRIVATE: Final = 1 << 18
#: include/uapi/linux/sockios.h and if.h
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41


def call(name: str, *arguments: bytes | int | None) -> None:
    """Call a function of the C library that returns 0. Raises OSError or AttributeError."""
    libc = ctypes.CDLL(None, use_errno=True)
    converted = (ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments)
    if getattr(libc, name)(*converted) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def mount(source: str | None, target: str, flags: int, kind: str | None = None) -> None:
    """Mount a file system of this type, or change a mount. Raises OSError."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    call("mount", *texts, flags, None)


def keep_user(user: int, group: int) -> None:
    """Keep the user and group ids in this process's new user namespace. Raises OSError."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def unshare(spaces: int) -> None:
    """Move this process into new namespaces. Raises OSError or AttributeError."""
    user, group = os.geteuid(), os.getegid()
    try:
        call("unshare", spaces)
    except PermissionError:
        call("unshare", NEW_USER | spaces)
        keep_user(user, group)


def enter_network() -> None:
    """Move this process into a network with only a 127.0.0.1. Raises errors of ``unshare``."""
    unshare(NEW_NETWORK)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))
