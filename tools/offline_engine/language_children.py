"""The child processes of the stand-in language host: lifetime and output."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from queue import SimpleQueue
from typing import IO, Final

import grpc

GRACE_SECONDS: Final = 2.0
#: Bytes per read.
CHUNK: Final = 65536


class Children:
    """The running child processes of this host. All end with the host."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def start(
        self,
        command: list[str],
        context: grpc.ServicerContext,
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        piped: bool = False,
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Run ``command`` until the block ends, the engine cancels the call, or the host stops.

        It inherits the output streams, unless ``piped``: then ``output`` reads them.

        The child leads a process group of its own: the engine interrupts the host's whole group
        when it shuts down, and a program hit by that prints a KeyboardInterrupt traceback.
        """
        pipe = subprocess.PIPE if piped else None
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            cwd=cwd,
            env=env,
            process_group=0,
        )
        with self._lock:
            self._running.add(process)
        if not context.add_callback(lambda: _end(process)):
            _end(process)  # the call was cancelled before this line
        try:
            yield process
        finally:
            with self._lock:
                self._running.discard(process)
            _end(process)

    def end_all(self) -> None:
        """End all running children."""
        with self._lock:
            running = list(self._running)
        for process in running:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate a running child and its process group; kill them after a grace period."""
    if process.poll() is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
            return


def output(process: subprocess.Popen[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield pairs of ("stdout" | "stderr", bytes) in order of arrival, until both are closed."""
    arrived: SimpleQueue[tuple[str, bytes]] = SimpleQueue()

    def pump(name: str, stream: IO[bytes]) -> None:
        while data := os.read(stream.fileno(), CHUNK):
            arrived.put((name, data))
        arrived.put((name, b""))

    streams = {"stdout": process.stdout, "stderr": process.stderr}
    for name, stream in streams.items():
        if stream is None:
            raise ValueError(f"{name} of the process is not a pipe")
        threading.Thread(target=pump, args=(name, stream), daemon=True).start()
    open_streams = set(streams)
    while open_streams:
        name, data = arrived.get()
        if data:
            yield name, data
        else:
            open_streams.discard(name)
