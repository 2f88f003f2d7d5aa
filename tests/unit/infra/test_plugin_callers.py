"""Servers that ask for the user of each caller; ``tests/security`` has the plugins themselves."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio
import pytest

from vertex_training import plugin_callers

METHOD: Final = "/test.Service/Method"
OWN: Final = os.geteuid()

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the table is Linux's")


class Service(grpc.GenericRpcHandler):
    """Answers with the request."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if handler_call_details.method != METHOD:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)


class AsynchronousService(grpc.GenericRpcHandler):
    """The same, as a plugin serves it."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        if handler_call_details.method != METHOD:
            return None

        async def answer(request: bytes, _: grpc.aio.ServicerContext) -> bytes:
            return request

        return grpc.unary_unary_rpc_method_handler(answer)


class Recorder(grpc.ServerInterceptor):
    """An interceptor of the plugin's own."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any):
        self.methods.append(handler_call_details.method)
        return continuation(handler_call_details)


@contextmanager
def serving(**options: Any) -> Iterator[Callable[..., bytes]]:
    """A call to a guarded server."""
    make = plugin_callers._guarded(grpc.server, plugin_callers._Interceptor)
    server = make(futures.ThreadPoolExecutor(1), handlers=[Service()], **options)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield lambda method=METHOD: channel.unary_unary(method)(b"text", timeout=60)
    server.stop(None).wait()


def test_the_own_user_is_answered_and_the_plugins_own_interceptors_run() -> None:
    recorder = Recorder()
    with serving(interceptors=[recorder]) as call:
        assert call() == b"text"
        with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
            call("/test.Service/Other")
    assert recorder.methods == [METHOD, "/test.Service/Other"]


@pytest.mark.parametrize("uid", [OWN + 1, None])
def test_a_caller_of_another_user_or_of_nobody_is_refused(
    monkeypatch: pytest.MonkeyPatch, uid: int | None
) -> None:
    monkeypatch.setattr(plugin_callers, "owner", lambda *_: uid)
    with serving() as call, pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        call()


async def call_asynchronously() -> bytes:
    make = plugin_callers._guarded(grpc.aio.server, plugin_callers._AioInterceptor)
    server = make(handlers=[AsynchronousService()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
                await channel.unary_unary("/test.Service/Other")(b"text", timeout=60)
            return await channel.unary_unary(METHOD)(b"text", timeout=60)
    finally:
        await server.stop(None)


def test_a_server_of_coroutines_answers_the_own_user_and_refuses_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert asyncio.run(call_asynchronously()) == b"text"
    monkeypatch.setattr(plugin_callers, "owner", lambda *_: OWN + 1)
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        asyncio.run(call_asynchronously())


@pytest.mark.parametrize("peer", ["ipv6:[::1]:80", "unix:/x", "ipv4:127.0.0.1:", "127.0.0.1:80"])
def test_a_peer_whose_user_cannot_be_looked_up_is_refused(
    monkeypatch: pytest.MonkeyPatch, peer: str
) -> None:
    monkeypatch.setattr(plugin_callers, "owner", lambda *_: OWN)
    assert not plugin_callers._Guard().allows(peer)
    assert plugin_callers._Guard().allows("ipv4:127.0.0.1:80")


def test_where_the_system_has_no_table_of_connections_nobody_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plugin_callers, "_TABLE", tmp_path / "tcp")
    assert plugin_callers._Guard().allows("ipv4:127.0.0.1:80")


def test_the_user_of_a_connection_is_found_until_the_client_hangs_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            ours = client.getsockname()
            assert plugin_callers.owner(ours, port) == OWN
            assert plugin_callers.owner(ours, port ^ 1) is None
        assert plugin_callers.owner(ours, port) is None
