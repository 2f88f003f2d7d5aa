"""A private network for ``pulumi``, its plugins and its program (Linux), which forwards some ports.

Calls to the engine's TCP port run code, so only the engine's own processes may connect to it. This
module runs at each ``pulumi`` command. It imports only a few modules of the standard library.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Final

from localgcp.system.namespaces import enter_network

_LOOPBACK: Final = "127.0.0.1"
_BLOCK: Final = 1 << 16
_POLL_SECONDS: Final = 0.2
#: Value of SO_LINGER with which a closed connection ends with a reset.
_RESET: Final = struct.pack("ii", 1, 0)


def enter(ports: Collection[int]) -> bool:
    """Move this process to a private network with forwarded ``ports`` until the process ends.

    Return False, without a change, if the system does not allow such a network.
    """
    if not _is_possible():
        return False
    ours, theirs = socket.socketpair()
    process = os.getpid()
    if (child := os.fork()) == 0:
        # A grandchild, so that the program of this process does not become its parent.
        if os.fork() == 0:
            ours.close()
            _pass_on(theirs, process)
        os._exit(0)
    os.waitpid(child, 0)
    theirs.close()
    enter_network()
    with ours:
        listeners = [socket.create_server((_LOOPBACK, port)) for port in ports]
        socket.send_fds(ours, [b"l"], [listener.fileno() for listener in listeners])
        for socket_ in listeners:
            socket_.close()
    return True


def _is_possible() -> bool:
    """Test in a child process if this system allows the network: an attempt cannot be undone."""
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(OSError, AttributeError):
            enter_network()
            code = 0
        os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def _pass_on(control: socket.socket, process: int) -> None:
    """Serve the listeners received over ``control`` until ``process`` and all connections end."""
    os.setsid()  # Ctrl-C must not end this process before the engine has saved its state
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    _, files, _, _ = socket.recv_fds(control, 1, 64)
    open_connections: list[socket.socket] = []
    for file in files:
        listener = socket.socket(fileno=file)
        threading.Thread(target=_accept, args=(listener, open_connections), daemon=True).start()
    while files and (_is_alive(process) or open_connections):
        time.sleep(_POLL_SECONDS)


def _is_alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


def _accept(listener: socket.socket, open_connections: list[socket.socket]) -> None:
    port = listener.getsockname()[1]
    while True:
        with suppress(ConnectionError):  # the connection ended before this call
            inner, _ = listener.accept()
            open_connections.append(inner)
            arguments = (inner, port, open_connections)
            threading.Thread(target=_connect, args=arguments, daemon=True).start()


def _connect(inner: socket.socket, port: int, open_connections: list[socket.socket]) -> None:
    try:
        with inner, suppress(OSError), socket.create_connection((_LOOPBACK, port)) as outer:
            for connection in (inner, outer):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=_copy, args=(outer, inner), daemon=True)
            back.start()
            _copy(inner, outer)
            back.join()
    finally:
        open_connections.remove(inner)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy until ``source`` ends, then close ``sink`` in the same way: shutdown or reset."""
    try:
        while data := source.recv(_BLOCK):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # one side reset the connection: reset the other side, too
        for connection in (source, sink):
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                connection.shutdown(socket.SHUT_RD)
