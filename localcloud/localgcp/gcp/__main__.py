"""``python -m localgcp.gcp [ENGINE_ADDRESS]``: the command with which the engine starts the plugin.

Prints the port on stdout, as the engine expects, and serves until the engine ends it.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from types import FrameType
from typing import Final

_WATCH_SECONDS: Final = 1.0


def main() -> None:
    """Serve until SIGINT, SIGTERM or the end of the engine, then finish the running calls."""
    # A killed engine does not end its plugins: init or another reaper becomes their parent.
    # Read before the port is printed: after that, the engine may be gone at any time.
    engine = os.getppid()
    # The SDK's stubs alone: the SDK around them takes half of a start, and each preview has one.
    for name in ("pulumi", "pulumi.runtime"):
        module_spec = importlib.util.find_spec(name)
        assert module_spec
        sys.modules[name] = importlib.util.module_from_spec(module_spec)
    from localgcp.gcp.server import serve

    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    # Ctrl-C reaches every process of the terminal, and the engine ends plugins with SIGINT too:
    # either way, finish what runs and leave without a traceback.
    signal.signal(signal.SIGINT, end)
    server, port = serve(os.environ)
    print(port, flush=True)
    while not ended.wait(_WATCH_SECONDS) and os.getppid() == engine:
        pass
    server.stop(grace=5).wait()


if __name__ == "__main__":
    main()
