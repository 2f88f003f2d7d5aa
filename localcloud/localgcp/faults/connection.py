"""A real end of a connection, in place of an answer that says there was one."""

from __future__ import annotations

import socket
import struct
from typing import Final

from localgcp.access.gate import connection_of

#: l_onoff, l_linger: closing throws away what was not sent, and the other side hears RST.
_NO_LINGER: Final = struct.pack("ii", 1, 0)


def reset_peer(peer: str) -> bool:
    """Close the connection of a gRPC peer (``ServicerContext.peer()``); False if it is over.

    gRPC has no call for it.
    """
    connection = connection_of(peer)
    if connection is None:
        return False
    try:
        reset_connection(connection)
    except OSError:
        return False  # it ended a moment ago
    return True


def reset_connection(connection: socket.socket) -> None:
    """End a connection at once, for both sides."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    connection.shutdown(socket.SHUT_RDWR)
