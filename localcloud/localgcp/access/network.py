"""A private network (Linux) for a server on TCP without access control.

``network.py FD PROGRAM ARGUMENT…`` becomes the server; it imports only the standard library. A
helper process in the network sends sockets over FD, after ``y``, or ``n`` and an error.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

if not __package__:  # This file runs as a script.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from localgcp.errors import NoPrivateNetworkError
from localgcp.system.namespaces import enter_network

_LAUNCHER: Final = Path(__file__)
_START_SECONDS: Final = 15.0


class PrivateNetwork:
    """The network of one child process."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._lock = control, threading.Lock()
        self.broken = False
        """True if the network has ended: the child process must be restarted."""

    def connect(self, port: int, timeout: float | None) -> socket.socket:
        """Return a connection to 127.0.0.1:``port`` of the network. Raises OSError."""
        with self._lock:
            try:
                self._control.sendall(b"c")
                _, files, _, _ = socket.recv_fds(self._control, 1, 1)
            except OSError:
                self.broken = True
                raise
        if not files:
            self.broken = True
            raise ConnectionError("the network of the process has ended")
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
        """End the helper process, not the child process; a second call has no effect."""
        self._control.close()


def start(
    command: Sequence[str], log: IO[bytes], umask: int
) -> tuple[subprocess.Popen[bytes], PrivateNetwork]:
    """Start ``command`` (a path and arguments) in a private network, with its output in ``log``.

    The process leads a session. Raises NoPrivateNetworkError if this system has no namespaces.
    """
    null, log_too = subprocess.DEVNULL, subprocess.STDOUT
    process, control = launch(
        _LAUNCHER, command, stdin=null, stdout=log, stderr=log_too, umask=umask
    )
    return process, PrivateNetwork(control)


def launch(
    script: Path, arguments: Sequence[str], **options: Any
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a script of this package in a new session; return its process and control socket.

    ``options`` are those of Popen. Raises NoPrivateNetworkError if the script does not answer
    ``y``.
    """
    if not sys.platform.startswith("linux"):
        raise NoPrivateNetworkError("only Linux has network namespaces")
    ours, theirs = socket.socketpair()
    ours.settimeout(_START_SECONDS)
    with theirs:
        process: Any = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script), str(theirs.fileno()), *arguments],
            start_new_session=True,
            pass_fds=[theirs.fileno()],
            **options,
        )
    try:
        answer = ours.recv(4096)
    except OSError as error:
        answer = f"n{error}".encode()
    if answer[:1] == b"y":
        return process, ours
    ours.close()
    process.kill()
    process.wait()
    raise NoPrivateNetworkError(answer[1:].decode(errors="replace") or "the launcher process ended")


def main() -> int:
    """Return 1 if this system cannot create the network; else replace this process by PROGRAM.

    A helper process sends a new socket of the network for each byte from FD, until FD is closed.
    """
    control, command = socket.socket(fileno=int(sys.argv[1])), sys.argv[2:]
    try:
        enter_network()
    except (OSError, AttributeError) as error:  # the system or a container forbids the call
        control.sendall(f"n{error}".encode())
        return 1
    control.sendall(b"y")
    if os.fork() == 0:
        with suppress(OSError):
            while control.recv(1):
                with socket.socket() as made:
                    socket.send_fds(control, [b"s"], [made.fileno()])
        os._exit(0)
    control.close()
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
