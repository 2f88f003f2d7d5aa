"""HTTP servers that refuse other users' processes and web pages with 403."""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from localgcp.access.callers import REFUSAL, RefusalLog, caller
from localgcp.errors import ExchangeEndedError, RefusedRequestError
from localgcp.system.processes import make_thread

#: Maximum bytes and seconds to read from a refused request, so that the client gets the answer.
_DRAIN_BYTES: Final = 64 << 20
_DRAIN_SECONDS: Final = 10.0
_BLOCK: Final = 1 << 20
#: Maximum bytes of a line between chunks; lines of the head have the same limit.
_LONGEST_LINE: Final = 1 << 16
#: Headers for one connection only (RFC 9110, 7.6.1), and headers that the proxy itself sets.
_NOT_FORWARDED: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "expect", "host"}
)
#: Prefixes of headers of web pages and proxies. The servers behind would trust proxy headers.
_NEVER: Final = ("access-control-", "x-forwarded-")


def is_forwarded(name: str) -> bool:
    """Return whether a proxy forwards the header unchanged."""
    return name.lower() not in _NOT_FORWARDED and not name.lower().startswith(_NEVER)


def check_page(headers: Mapping[str, list[str]], port: int) -> None:
    """Raise RefusedRequestError for a request from a web page; ``headers`` have lower-case names.

    A page in a browser reaches ports of this machine, with ``Origin`` where it may write. A page
    whose name was pointed at 127.0.0.1 sends that name as ``Host``.
    """
    if "origin" in headers or headers.get("sec-fetch-site", ["none"]) != ["none"]:
        raise RefusedRequestError(403, "requests from web pages are refused.")
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    sent = headers.get("host", [])
    if len(sent) != 1 or sent[0].lower() not in hosts:
        raise RefusedRequestError(
            403, f"the Host header of a request must be one of {', '.join(hosts)}."
        )


def refuse(connection: socket.socket, text: str) -> None:
    """Answer 403 to any request and end the connection."""
    body = json.dumps({"error": {"code": 403, "message": f"local cloud: {text}"}}).encode()
    head = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\n"
    deadline, left = time.monotonic() + _DRAIN_SECONDS, _DRAIN_BYTES
    with suppress(OSError):
        connection.settimeout(_DRAIN_SECONDS)
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        # Closed with bytes unread, a connection is reset, and the answer is lost.
        while left > 0 and time.monotonic() < deadline and (sent := connection.recv(1 << 16)):
            left -= len(sent)


class LocalServer(ThreadingHTTPServer):
    """Listens on 127.0.0.1:``port``."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type[LocalHandler], front: Any = None) -> None:
        """Create a server; ``front`` is the object that its handlers serve."""
        self.front = front
        super().__init__(("127.0.0.1", port), handler)
        # `shutdown` waits for the end of an interval: half a second, unless it is told otherwise.
        make_thread(self.serve_forever, 0.05).start()

    def stop(self) -> None:
        """Stop listening."""
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log an error of this server; ignore a client that disconnected."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class LocalHandler(BaseHTTPRequestHandler):
    """A handler that serves connections of this user's processes only.

    ``refusals`` is the log of its service. Each request is still to be checked by ``check_page``.
    """

    protocol_version = "HTTP/1.1"
    # An answer in two small packets waits 40 ms for the acknowledgement of the first.
    wbufsize = -1
    refusals = RefusalLog("http")
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing: the servers behind this server write logs."""

    def handle(self) -> None:
        """Serve the connection, or refuse it."""
        connection: Any = self.connection
        who = caller(connection)
        if who.allowed:
            super().handle()
        else:
            self.refusals.refused(who)
            refuse(connection, REFUSAL)

    def exchange(self) -> None:
        """Answer one request. Raises ExchangeEndedError to end the connection."""
        raise NotImplementedError

    def _exchange(self) -> None:
        try:
            self.exchange()
        except ExchangeEndedError:
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _exchange

    def sent_headers(self) -> dict[str, list[str]]:
        """Return all values of each request header, by lower-case name."""
        return {name.lower(): self.headers.get_all(name, []) for name in self.headers}

    def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a complete answer."""
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:  # unsaid, a client may send its next request into a closed one
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body_blocks(self) -> Iterator[bytes]:
        """Yield the request's body as it arrives. Raises ExchangeEndedError if the client
        disconnected.
        """
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            if "Content-Length" in self.headers:  # whoever comes next could believe the other one
                raise ExchangeEndedError
            while size := self._chunk_size():
                yield from self._blocks(size)
                self.rfile.readline(_LONGEST_LINE)
            while self.rfile.readline(_LONGEST_LINE).strip():
                pass  # trailers
        else:
            text = self.headers.get("Content-Length") or "0"
            if not re.fullmatch(r"[0-9]{1,18}", text):
                raise ExchangeEndedError
            yield from self._blocks(int(text))

    def _blocks(self, left: int) -> Iterator[bytes]:
        """Yield ``left`` bytes in blocks. No buffer has this size, because the client chose it."""
        while left:
            block = self.rfile.read(min(left, _BLOCK))
            if not block:
                raise ExchangeEndedError
            left -= len(block)
            yield block

    def _chunk_size(self) -> int:
        """Return the size of the next chunk; 0 for the last. Raises ExchangeEndedError for a bad
        number.
        """
        text = self.rfile.readline(_LONGEST_LINE).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", text):
            raise ExchangeEndedError
        return int(text, 16)
