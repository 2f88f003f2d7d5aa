"""`python -m localcloud.gcp [ENGINE_ADDRESS]`: the plugin as the Pulumi engine starts it.

Prints the port on stdout, as the engine expects, and serves until the engine ends it.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from types import FrameType, ModuleType

_WATCH_SECONDS = 1.0


def _light_sdk() -> None:
    """Let the SDK's protobuf stubs be imported without the SDK.

    `import pulumi` takes 0.3 s and this process needs only `pulumi.runtime.proto`: the engine
    waits for it at every start. Must run before anything imports pulumi.
    """
    spec = importlib.util.find_spec("pulumi")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("pulumi-resource-gcp: the package pulumi is not installed. Hint: make setup")
    root = spec.submodule_search_locations[0]
    for name, path in (("pulumi", root), ("pulumi.runtime", os.path.join(root, "runtime"))):
        module = ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module


def main() -> None:
    """Serve until SIGINT, SIGTERM, or the end of the engine; what runs then is finished."""
    # An engine that was killed tells nobody: its plugins are then children of another process.
    # Asked for first: once the port is printed, the engine may be gone at any time.
    engine = os.getppid()
    _light_sdk()
    from localcloud.gcp.server import serve

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
