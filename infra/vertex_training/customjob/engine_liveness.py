"""Whether the Pulumi engine that started this provider process is still alive.

The SDK (3.272.0) has no API for it. An engine starts ``python -m pulumi.dynamic ADDRESS`` for a
dynamic provider, with its own gRPC address as the last argument; this module connects to it. A
provider outlives a killed engine and continues with its call. It must not begin to send a request
then: the next ``pulumi up`` may already run.

``tests/unit/infra/customjob/test_engine_liveness.py`` fails when the SDK changes this.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

#: The module that runs as a provider's process: ``python -m pulumi.dynamic``.
PROVIDER_MODULE: Final = "pulumi.dynamic.__main__"
#: Seconds to wait for a connection to the engine.
CONNECT_TIMEOUT: Final = 2.0


def is_engine_alive() -> bool:
    """Whether the engine accepts connections. True in a process that no engine started."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is None or main.name != PROVIDER_MODULE:
        return True  # a test, or a program that calls the provider itself
    host, _, port = sys.argv[-1].rpartition(":")
    if not port.isdecimal():
        return True  # another SDK version, which passes the address in another way
    try:
        socket.create_connection((host or "127.0.0.1", int(port)), CONNECT_TIMEOUT).close()
    except OSError:
        return False
    return True
