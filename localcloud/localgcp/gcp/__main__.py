"""The command ``python -m localgcp.gcp [ENGINE_ADDRESS]``, which starts the plugin."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from types import FrameType


def main() -> None:
    """Serve until SIGINT, SIGTERM or the end of the engine, then finish the running calls."""
    # A killed engine does not end its plugins; another process becomes their parent. The engine
    # may end at any time after the port is printed, so read the engine's id before.
    engine = os.getppid()
    # Import only the stubs of the SDK: importing the whole SDK doubles the plugin's start time.
    for name in ("pulumi", "pulumi.runtime"):
        module_spec = importlib.util.find_spec(name)
        assert module_spec
        sys.modules[name] = importlib.util.module_from_spec(module_spec)
    from localgcp.gcp.server import serve

    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C sends SIGINT to every process of the terminal, and the engine ends plugins with SIGINT.
    signal.signal(signal.SIGINT, end)
    server, port = serve(os.environ)
    print(port, flush=True)
    while not ended.wait(1.0) and os.getppid() == engine:
        pass
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
