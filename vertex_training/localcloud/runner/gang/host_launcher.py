"""``host_launcher.py HOSTNAME HOSTS PROGRAM ARGUMENT…``: become PROGRAM on a host of its own.

Linux only. The program sees HOSTNAME as the name of its machine, and the file HOSTS as
``/etc/hosts``. All else is this machine's: network, files, users. Exit code 97 and a line if the
system does not allow it.

A script of its own: it changes the process it runs in. Standard library only, so that it starts in
a few hundredths of a second.
"""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from pathlib import Path
from typing import Final

#: include/uapi/linux/sched.h
_CLONE_NEWNS: Final = 0x00020000
_CLONE_NEWUTS: Final = 0x04000000
_CLONE_NEWUSER: Final = 0x10000000
#: include/uapi/linux/mount.h
_MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 1 << 18
#: Exit code of a system that does not allow it.
REFUSED: Final = 97


def enter_host(hostname: str, hosts: str) -> None:
    """Give this process a host name and an ``/etc/hosts`` of its own. Raises OSError.

    Without the right to do so, it first gets a user namespace, in which it keeps its user.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    try:
        _call(libc.unshare, _CLONE_NEWNS | _CLONE_NEWUTS)
    except PermissionError:
        _call(libc.unshare, _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWUTS)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    # Else the mount would reach all processes of this machine.
    _call(libc.mount, None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    _call(libc.mount, os.fsencode(hosts), b"/etc/hosts", None, _MS_BIND, None)
    socket.sethostname(hostname)


def _call(function: ctypes._FuncPointer, *arguments: bytes | int | None) -> None:
    given = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    if function(*given) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main() -> int:
    """Exit code 97 if there is no such host here; else the process becomes the program."""
    hostname, hosts, *command = sys.argv[1:]
    try:
        enter_host(hostname, hosts)
    except (OSError, AttributeError) as error:  # no such call, or a container that forbids it
        print(error, file=sys.stderr)
        return REFUSED
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
