"""A network of a child process of its own: its ports are reached only through this object.

For servers that listen on TCP and check nothing. A network namespace of Linux has addresses and
ports of its own. A socket belongs to the namespace that it was made in, whoever connects it: so a
helper inside makes sockets and hands them out through a socket pair that only this process holds.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from localgcp.errors import NoPrivateNetworkError

_LAUNCHER: Final = Path(__file__).with_name("network_launcher.py")
_START_SECONDS: Final = 15.0


class PrivateNetwork:
    """The network of one child process."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._lock = control, threading.Lock()
        self.broken = False
        """Whether it gives no sockets any more: the child is to be started again."""

    def connect(self, port: int, timeout: float | None) -> socket.socket:
        """A connection to 127.0.0.1:``port`` of the network. Raises OSError."""
        with self._lock:
            try:
                self._control.sendall(b"c")
                _, files, _, _ = socket.recv_fds(self._control, 1, 1)
            except OSError:
                self.broken = True
                raise
        if not files:
            self.broken = True
            raise ConnectionError("the network of the process is gone")
        made = socket.socket(fileno=files[0])
        try:
            made.settimeout(timeout)
            made.connect(("127.0.0.1", port))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            made.close()
            raise
        return made

    def close(self) -> None:
        """End the helper; the child is ended by who started it. Repeatable."""
        self._control.close()


def start(
    command: Sequence[str], log: IO[bytes], umask: int
) -> tuple[subprocess.Popen[bytes], PrivateNetwork]:
    """Start ``command`` (a path and arguments) in a network of its own.

    It leads a session and writes to ``log``. Raises NoPrivateNetworkError if this system has none.
    """
    if not sys.platform.startswith("linux"):
        raise NoPrivateNetworkError("only Linux has them")
    ours, theirs = socket.socketpair()
    ours.settimeout(_START_SECONDS)
    with theirs:
        launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), str(theirs.fileno())]
        process = subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=[theirs.fileno()],
            umask=umask,
        )
    try:
        answer = ours.recv(4096)
    except OSError as error:
        answer = f"n{error}".encode()
    if answer[:1] == b"y":
        return process, PrivateNetwork(ours)
    ours.close()
    process.kill()
    process.wait()
    raise NoPrivateNetworkError(answer[1:].decode(errors="replace") or "the launcher ended")
