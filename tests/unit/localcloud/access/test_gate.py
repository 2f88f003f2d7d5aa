"""The gate in front of a gRPC server, over real sockets."""

from __future__ import annotations

import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from localgcp.access import gate
from localgcp.access.callers import Caller
from localgcp.access.gate import reset_peer
from localgcp.errors import ApiError, LocalCloudError
from tests.unit.localcloud.conftest import wait_until

METHOD = "/test.Service/Method"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Service(grpc.GenericRpcHandler):
    """Answers with the request, and records the peers of calls."""

    def __init__(self) -> None:
        self.peers: list[str] = []
        self.held = threading.Event()
        self.held.set()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            self.peers.append(context.peer())
            self.held.wait(120)
            return request

        return grpc.unary_unary_rpc_method_handler(answer)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def server(service: Service) -> Iterator[gate.GatedServer]:
    made = grpc.server(
        futures.ThreadPoolExecutor(4),
        handlers=[service],
        interceptors=[gate.PageInterceptor()],
        options=[("grpc.max_receive_message_length", 32 << 20)],
    )
    started = gate.GatedServer(made, 0, "test")
    yield started
    service.held.set()
    started.stop(None).wait()


def call(port: int, data: bytes = b"text", **options: Any) -> bytes:
    # Channels to one address share a connection, unless they are told not to.
    own = ("grpc.use_local_subchannel_pool", 1)
    settings = [("grpc.max_receive_message_length", 32 << 20), own]
    with grpc.insecure_channel(f"127.0.0.1:{port}", settings) as channel:
        method: Any = channel.unary_unary(METHOD)
        return method(data, timeout=60, **options)


def code(error: pytest.ExceptionInfo[grpc.RpcError]) -> grpc.StatusCode:
    return error.value.code()  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("size", [0, 1, 65536, 16 << 20])
def test_calls_of_any_size_pass_both_ways(server: gate.GatedServer, size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert call(server.port, data) == data


def test_connection_of_peer_is_reset(server: gate.GatedServer, service: Service) -> None:
    service.held.clear()
    own = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", own) as channel:
        running: Any = channel.unary_unary(METHOD)
        answer = running.future(b"text", timeout=60)
        wait_until(lambda: service.peers)
        # No connection keeps the process from its end.
        for name in ("(_accept)", "(_serve)", "(_copy)"):
            found = [each for each in threading.enumerate() if each.name.endswith(name)]
            assert {each.daemon for each in found} == {True}
        assert reset_peer(service.peers[0])
        assert answer.exception(20).code() is grpc.StatusCode.UNAVAILABLE
    for over in ("unix:/no/such/connection", "ipv4:127.0.0.1:1"):
        assert not reset_peer(over)


REQUESTS = {
    "GET": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a name that points here": b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "POST of gRPC-Web": b"POST /test.Service/Method HTTP/1.1\r\n"
    b"Content-Type: application/grpc-web\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0",
    "WebSocket": b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "upgrade to HTTP/2": b"GET / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "a method that begins like HTTP/2": b"PRI / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + PREFACE,
    "bytes": bytes(64),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_what_is_not_http_2_from_the_first_byte_is_answered_403(
    server: gate.GatedServer, service: Service, request_: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(request_)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"requests from web pages are refused" in answer
    assert service.peers == []


def test_wrong_preface_is_answered_though_nothing_follows(server: gate.GatedServer) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"PRO")
        assert connection.recv(65536).startswith(b"HTTP/1.1 403 Forbidden\r\n")


def test_a_call_whose_connection_is_over_has_nobody_behind_it() -> None:
    """None stands for the owner of the local cloud, who may do everything."""
    context: Any = SimpleNamespace(invocation_metadata=lambda: (), peer=lambda: "unix:/gone")
    with pytest.raises(ApiError, match="the connection has ended"):
        gate.guest_behind(context)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", ""])
def test_a_call_with_an_origin_is_refused(
    server: gate.GatedServer, service: Service, origin: str
) -> None:
    for metadata in ([("origin", origin)], [("x-grpc-web", "1"), ("origin", origin)]):
        with pytest.raises(grpc.RpcError, match="calls from web pages are refused") as error:
            call(server.port, metadata=metadata)
        assert code(error) is grpc.StatusCode.PERMISSION_DENIED
    assert service.peers == []
    assert call(server.port, metadata=[("x-origin", origin)]) == b"text"


def test_a_refused_caller_gets_permission_denied_and_one_line_is_logged(
    server: gate.GatedServer, service: Service,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(gate, "caller", lambda _: Caller(allowed=False, uid=1001))
    with pytest.raises(grpc.RpcError, match="only processes of the user who started") as error:
        call(server.port)
    assert code(error) is grpc.StatusCode.PERMISSION_DENIED
    assert service.peers == []
    assert capsys.readouterr().out == "test: refused a connection of user 1001\n"


def test_refused_callers_hold_few_connections_and_not_for_long(
    server: gate.GatedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "caller", lambda _: Caller(allowed=False, uid=1001))
    monkeypatch.setattr(gate, "_REFUSED_SECONDS", 0.2)
    held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(60)]
    for each in held:
        each.settimeout(120)
        assert each.recv(1) == b""  # ended by the server, though nothing was sent
        each.close()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder in which a socket's path is short enough, wherever pytest has its own."""
    with tempfile.TemporaryDirectory(prefix="g") as folder:
        yield Path(folder)


def test_taken_port_is_an_error(short_path: Path, server: gate.GatedServer) -> None:
    other = grpc.server(futures.ThreadPoolExecutor(1))
    with pytest.raises(LocalCloudError, match=f"port {server.port} is in use"):
        gate.GatedServer(other, server.port, "test", short_path)
    assert list(short_path.iterdir()) == []


@pytest.mark.parametrize("deep", [False, True])
def test_the_sockets_lie_where_only_this_user_finds_them_and_are_removed(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, deep: bool
) -> None:
    temporary = short_path / "t"
    temporary.mkdir()
    monkeypatch.setattr(gate.tempfile, "tempdir", str(temporary))
    wanted = short_path / ("d" * (100 if deep else 1))
    wanted.mkdir()
    monkeypatch.setattr(gate, "_LONGEST_PATH", len(str(short_path)) + 60)
    server = grpc.server(futures.ThreadPoolExecutor(1), handlers=[Service()])
    started = gate.GatedServer(server, 0, "test", wanted)
    (folder,) = (temporary if deep else wanted).iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.name.startswith("vt-grpc-" if deep else "test-")
    assert call(started.port) == b"text"
    started.stop(None).wait()
    assert list(temporary.iterdir()) == list(wanted.iterdir()) == []
