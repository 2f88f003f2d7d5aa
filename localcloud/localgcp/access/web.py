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
#: Prefixes of headers of web pages and proxies. The child servers would trust proxy headers.
_NEVER: Final = ("access-control-", "x-forwarded-")


def is_forwarded(name: str) -> bool:
    """Return whether a proxy forwards the header unchanged."""
    return name.lower() not in _NOT_FORWARDED and not name.lower().startswith(_NEVER)


def check_page(headers: Mapping[str, list[str]], port: int) -> None:
    """Raise RefusedRequestError for a request from a web page; ``headers`` have lower-case names.

    Browsers send ``Origin`` with writing requests. After DNS rebinding, a page's host is in
    ``Host``.
    """
    if "origin" in headers or headers.get("sec-fetch-site", ["none"]) != ["none"]:
        raise RefusedRequestError(403, "requests from web pages are refused.")
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    sent = headers.get("host", [])
    if len(sent) != 1 or sent[0].lower() not in hosts:
        text = f"the Host header of a request must be one of {', '.join(hosts)}."
        raise RefusedRequestError(403, text)


def refuse(connection: socket.socket, text: str) -> None:
    """Answer 403 to any request and end the connection."""
    body = json.dumps({"error": {"code": 403, "message": f"local cloud: {text}"}}).encode()
    head = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close\r\n"
    deadline, left = time.monotonic() + _DRAIN_SECONDS, _DRAIN_BYTES
    with suppress(OSError):
        connection.settimeout(_DRAIN_SECONDS)
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        connection.shutdown(socket.SHUT_WR)
        # A connection that is closed with unread bytes is reset, and the answer is lost.
        while left > 0 and time.monotonic() < deadline and (sent := connection.recv(1 << 16)):
            left -= len(sent)


class LocalServer(ThreadingHTTPServer):
    """An HTTP server on 127.0.0.1:``port``."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type[LocalHandler], front: Any = None) -> None:
        """``front`` is the object that the request handlers serve."""
        self.front = front
        super().__init__(("127.0.0.1", port), handler)
        # `shutdown` waits for the end of an interval, which is half a second by default.
        make_thread(self.serve_forever, 0.05).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log an error of this server; ignore a client that disconnected."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class LocalHandler(BaseHTTPRequestHandler):
    """Serves connections of this user's processes only.

    ``refusals`` is the service's log. Subclasses check each request with ``check_page``.
    """

    protocol_version = "HTTP/1.1"
    # An answer in two small packets waits 40 ms for the acknowledgement of the first.
    wbufsize = -1
    refusals = RefusalLog("http")
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Do nothing, because the child servers write logs."""

    def handle(self) -> None:
        """Serve the connection of an allowed caller; refuse other callers."""
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
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:  # The client must not reuse the connection.
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def body_blocks(self) -> Iterator[bytes]:
        """Yield the request's body. Raises ExchangeEndedError if the client disconnected."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            if "Content-Length" in self.headers:  # two servers could read different lengths
                raise ExchangeEndedError
            while size := self._chunk_size():
                yield from self._blocks(size)
                self.rfile.readline(_LONGEST_LINE)
            while self.rfile.readline(_LONGEST_LINE).strip():
                pass  # Trailers are ignored.
        else:
            text = self.headers.get("Content-Length") or "0"
            if not re.fullmatch(r"[0-9]{1,18}", text):
                raise ExchangeEndedError
            yield from self._blocks(int(text))

    def _blocks(self, left: int) -> Iterator[bytes]:
        """Yield ``left`` bytes in blocks of limited size; the client chose ``left``."""
        while left:
            block = self.rfile.read(min(left, _BLOCK))
            if not block:
                raise ExchangeEndedError
            left -= len(block)
            yield block

    def _chunk_size(self) -> int:
        text = self.rfile.readline(_LONGEST_LINE).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,15}", text):
            raise ExchangeEndedError
        return int(text, 16)
