"""Choose ports of 127.0.0.1 for servers, which keep their ports across restarts."""

from __future__ import annotations

import secrets
import socket
from typing import Final

from localgcp.errors import LocalCloudError

#: Replicas use ports from 29500; the system uses ports from 32768 for outgoing connections.
_PORTS: Final = range(20_000, 29_000)


def listen(wanted: int, service: str) -> socket.socket:
    """Listen at the port ``wanted`` or at another free port. Raises LocalCloudError."""
    chosen = (secrets.choice(_PORTS) for _ in range(20))
    for port in (*((wanted,) if wanted else ()), *chosen, 0):
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            if port == wanted:
                text = "is in use by another program; choosing another port"
                print(f"port {port} of {service} {text}")
    raise LocalCloudError(f"127.0.0.1 has no free port for {service}.")


def choose_port(wanted: int, service: str) -> int:
    """Return a port that ``listen`` chooses, for a server that opens the port immediately."""
    with listen(wanted, service) as listener:
        return listener.getsockname()[1]
