"""Ports of 127.0.0.1 for servers, which stay the same across restarts."""

from __future__ import annotations

import secrets
import socket
from typing import Final

from localgcp.errors import LocalCloudError

#: Lowest port. All ports are below those of outgoing connections (Linux: from 32768, others: from
#: 49152) and below the rendezvous ports of replicas (torch: 29500; ``vertex_job``: above it).
_LOWEST_PORT: Final = 20_000
_PORTS: Final = 9_000
_ATTEMPTS: Final = 20


def listen(wanted: int, service: str) -> socket.socket:
    """Listen at ``wanted`` if that port is free, else at any free port.

    Chosen are ports that no system gives to outgoing connections: one that is kept for the next
    start must not be another program's by then. Raises LocalCloudError if there is none.
    """
    chosen = (_LOWEST_PORT + secrets.randbelow(_PORTS) for _ in range(_ATTEMPTS))
    for port in (*((wanted,) if wanted else ()), *chosen, 0):
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            if port == wanted:
                print(
                    f"port {port} of {service} is in use by another program; choosing another port"
                )
    raise LocalCloudError(f"127.0.0.1 has no free port for {service}.")


def choose_port(wanted: int, service: str) -> int:
    """Return a port chosen as in ``listen``, for a server that opens it at once."""
    with listen(wanted, service) as listener:
        return listener.getsockname()[1]
