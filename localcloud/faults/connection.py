"""A real end of a connection, in place of an answer that says there was one."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import Final
from urllib.parse import unquote

#: l_onoff, l_linger: closing throws away what was not sent, and the other side hears RST.
_NO_LINGER: Final = struct.pack("ii", 1, 0)


def reset_peer(peer: str) -> bool:
    """Close the connection of a gRPC peer (``ipv4:127.0.0.1:4711``); False if it is gone already.

    gRPC has no call for it, so the socket is looked for among those of this process.
    """
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    wanted = (host.strip("[]").removeprefix("::ffff:"), int(port))
    for number in _open_files():
        if (found := _socket(number)) is None:
            continue
        with found:
            try:
                if found.family not in (socket.AF_INET, socket.AF_INET6):
                    continue  # addresses of other families are no pairs
                host, port = found.getpeername()[:2]
                # gRPC listens on IPv6 sockets, which see IPv4 addresses as ::ffff:127.0.0.1.
                if (str(host).removeprefix("::ffff:"), port) != wanted:
                    continue
                reset_connection(found)
            except OSError:
                continue  # not connected
            return True
    return False


def reset_connection(connection: socket.socket) -> None:
    """End a connection at once, for both sides."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    connection.shutdown(socket.SHUT_RDWR)


def _socket(number: int) -> socket.socket | None:
    """A second handle of an open file that is a socket; None if it is none, or closed since."""
    try:
        own = os.dup(number)
    except OSError:
        return None
    try:
        return socket.socket(fileno=own)
    except OSError:
        os.close(own)  # the constructor takes it over only if it succeeds
        return None


def _open_files() -> list[int]:
    """Numbers of this process's open files (Linux and macOS both have /dev/fd)."""
    return [int(entry.name) for entry in Path("/dev/fd").iterdir() if entry.name.isdecimal()]
