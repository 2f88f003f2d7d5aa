"""``network_launcher.py FD PROGRAM ARGUMENT…``: become PROGRAM in a network of its own (Linux).

Nobody outside of that network reaches a port in it. A second process stays beside the program and
hands out sockets of the network through FD: one for each byte it reads, until the other end closes.
Its first byte is ``y``; ``n`` and a reason mean that the system refuses such a network.

A script of its own: it changes the process it runs in. Standard library only, so that it starts in
a few hundredths of a second.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

#: include/uapi/linux/sched.h
_CLONE_NEWUSER: Final = 0x10000000
_CLONE_NEWNET: Final = 0x40000000
#: include/uapi/linux/sockios.h and if.h
_SIOCSIFFLAGS: Final = 0x8914
_UP_AND_RUNNING: Final = 0x41


def enter_network() -> None:
    """Give this process a network with nothing but its own 127.0.0.1. Raises OSError.

    Without the right to do so, it first gets a user namespace, in which it keeps its user.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_CLONE_NEWNET)
    except PermissionError:
        _unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        keep_user(user, group)
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))


def keep_user(user: int, group: int) -> None:
    """Keep the ids of this process in the user namespace that it just got. Raises OSError."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def hand_out_sockets(control: socket.socket) -> None:
    """A socket for each byte, until the other end closes."""
    with suppress(OSError):
        while control.recv(1):
            with socket.socket() as made:
                socket.send_fds(control, [b"s"], [made.fileno()])


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def main() -> int:
    """Exit code 1 if there is no such network here; else the process becomes the program."""
    control, command = socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]
    try:
        enter_network()
    except (OSError, AttributeError) as error:  # no such call, or a container that forbids it
        control.sendall(f"n{error}".encode())
        return 1
    control.sendall(b"y")
    if os.fork() == 0:
        hand_out_sockets(control)
        os._exit(0)
    control.close()
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
