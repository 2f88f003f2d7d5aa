"""Shards of weights: server, and client for workers.

Arrays are sent as ``.npy`` over HTTP, never as pickles. This is a small example of the pattern; for
large models use a framework's own, such as TensorFlow's ParameterServerStrategy.
"""

from __future__ import annotations

import io
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import numpy as np

#: Largest accepted gradient.
MAX_BYTES: Final = 64 * 1024 * 1024


def pack(array: np.ndarray) -> bytes:
    """Convert an array to bytes of an ``.npy`` file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def unpack(data: bytes) -> np.ndarray:
    """Convert bytes of an ``.npy`` file to an array."""
    return np.load(io.BytesIO(data), allow_pickle=False)


class Server(ThreadingHTTPServer):
    """Server of one shard: GET returns the weights, POST applies a gradient."""

    daemon_threads = True

    def __init__(self, port: int, size: int, rate: float) -> None:
        self.weights = np.zeros(size)
        self.rate = rate
        self.lock = threading.Lock()
        super().__init__(("", port), Handler)


class Handler(BaseHTTPRequestHandler):
    """Handler of a worker's request."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_GET(self) -> None:
        """Return the current weights."""
        with self.server.lock:
            self._answer(200, pack(self.server.weights))

    def do_POST(self) -> None:
        """Apply a gradient, even if the weights have changed since it was computed."""
        length = int(self.headers.get("Content-Length", 0))
        if not 0 < length <= MAX_BYTES:
            return self._answer(413, b"")
        gradient = unpack(self.rfile.read(length))
        if gradient.shape != self.server.weights.shape:
            return self._answer(400, b"")
        with self.server.lock:
            self.server.weights -= self.server.rate * gradient
        return self._answer(200, b"")

    def log_message(self, format: str, *args: object) -> None:
        """Disable logging of the thousands of requests per second."""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def call(host: str, body: bytes | None = None, patience: float = 300) -> bytes:
    """Send GET, or POST with ``body``. Retry until the server has started."""
    deadline = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(f"http://{host}/", body, timeout=30) as answer:
                return answer.read()
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
