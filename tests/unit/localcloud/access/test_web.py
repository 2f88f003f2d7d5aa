"""Requests that web pages send, headers that a proxy forwards, and bodies as they come."""

from __future__ import annotations

import io
import json
import socket
import threading
from email.message import Message
from typing import Any

import pytest

from localgcp.access import web
from localgcp.access.web import LocalHandler, LocalServer
from localgcp.errors import ExchangeEndedError


def test_a_refusal_is_read_by_a_client_that_is_still_sending() -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(b"x" * 100_000)
    thread = threading.Thread(target=web.refuse, args=(ours, "no."))
    thread.start()
    answer = b""
    while block := theirs.recv(1 << 16):
        answer += block
    theirs.close()
    thread.join(10)
    ours.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.decode().split("\r\n") == [
        "HTTP/1.1 403 Forbidden", "Content-Type: application/json", "Connection: close",
        f"Content-Length: {len(body)}",
    ]  # fmt: skip
    assert json.loads(body) == {"error": {"code": 403, "message": "local cloud: no."}}


def blocks(sent: bytes, **headers: str) -> list[bytes]:
    """The blocks of a body."""
    handler: Any = LocalHandler.__new__(LocalHandler)
    handler.rfile, handler.headers = io.BytesIO(sent), Message()
    for name, value in headers.items():
        handler.headers[name.replace("_", "-")] = value
    found = list(handler.body_blocks())
    assert handler.rfile.read() == b"next"
    return found


@pytest.mark.parametrize(
    ("sent", "headers", "wanted"),
    [
        (b"next", {}, []),
        (b"next", {"Content_Length": "0"}, []),
        (b"abcnext", {"Content_Length": "3"}, [b"abc"]),
        (b"x" * ((1 << 20) + 1) + b"next", {"Content_Length": str((1 << 20) + 1)},
         [b"x" * (1 << 20), b"x"]),
        (b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\nnext", {"Transfer_Encoding": "Chunked"},
         [b"abc", b"0123456789"]),
        (b"0\r\nX-Sum: 1\r\n\r\nnext", {"Transfer_Encoding": "gzip, chunked"}, []),
        (b"00100001 ; x\r\n" + b"x" * ((1 << 20) + 1) + b"\r\n0\r\n\r\nnext",
         {"Transfer_Encoding": "chunked"}, [b"x" * (1 << 20), b"x"]),
    ],
)  # fmt: skip
def test_a_body_comes_in_blocks(sent: bytes, headers: dict[str, str], wanted: list[bytes]) -> None:
    assert blocks(sent, **headers) == wanted


@pytest.mark.parametrize(
    ("sent", "headers"),
    [
        (b"ab", {"Content_Length": "3"}),
        (b"abc", {"Content_Length": "-3"}),
        (b"abc", {"Content_Length": "3, 3"}),
        (b"", {"Transfer_Encoding": "chunked"}),
        (b"xyz\r\n", {"Transfer_Encoding": "chunked"}),
        *((size + b"\r\nabc\r\n0\r\n\r\n", {"Transfer_Encoding": "chunked"})
          for size in (b"-1", b"-3", b"+3", b"0x3", b"0_3", b"", b"F" * 15, b"0" * 15 + b"3")),
        (b"3\r\nabc\r\n0\r\n\r\n", {"Transfer_Encoding": "chunked", "Content_Length": "3"}),
        (b"abc", {"Content_Length": "9" * 18}),
        (b"abc", {"Content_Length": f"{3:019}"}),
        (b"abc", {"Content_Length": "9" * 5000}),
    ],
)  # fmt: skip
def test_a_body_that_ends_too_early_ends_the_exchange(sent: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(ExchangeEndedError):
        blocks(sent, **headers)


class Echo(LocalHandler):
    """Answers with the body."""

    def do_PUT(self) -> None:
        body = b"".join(self.body_blocks())
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_server_listens_for_this_user_until_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    server = LocalServer(0, Echo)
    host, port = server.server_address[:2]
    assert host == "127.0.0.1"
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"PUT / HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
        answer = b""
        while block := client.recv(1 << 16):
            answer += block
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nhi")
    server.stop()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 1).close()
    assert capsys.readouterr().err == ""
