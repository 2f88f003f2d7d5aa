"""The owner of a connection's other end, by each way to look it up, on real connections."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import pytest

from localgcp.access import callers
from localgcp.access.callers import Lookup, ask_kernel, caller, plain_address, search_processes

Pair = tuple[socket.socket, socket.socket]
linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's tables are Linux's")


def is_there(lookup: Lookup) -> bool:
    """Whether this system has what it asks: netlink is Linux's."""
    if lookup is search_processes:
        return True
    with suppress(OSError, AttributeError):
        socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, callers._NETLINK_SOCK_DIAG).close()
        return True
    return False


@pytest.fixture(params=[ask_kernel, search_processes])
def lookup(request: pytest.FixtureRequest) -> Lookup:
    if not is_there(request.param):
        pytest.skip(f"this system does not have the way {request.param.__name__}")
    return request.param


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


def connect(listener: socket.socket, host: str = "127.0.0.1") -> Pair:
    """A client, and the server's end of its connection."""
    client = socket.create_connection((host, listener.getsockname()[1]))
    return client, listener.accept()[0]


def ends(server: socket.socket) -> tuple[callers.Address, callers.Address]:
    return plain_address(server.getpeername()), plain_address(server.getsockname())


def test_a_client_on_ipv6_is_found(lookup: Lookup) -> None:
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
        except OSError:
            pytest.skip("this system has no IPv6")
        client, server = connect(listener, "::1")
        stack.enter_context(client)
        stack.enter_context(server)
        assert lookup(*ends(server)) == os.geteuid()


def test_client_that_ended_its_request_is_found(lookup: Lookup, listener: socket.socket) -> None:
    client, server = connect(listener)
    with client, server:
        client.shutdown(socket.SHUT_WR)
        assert lookup(*ends(server)) == os.geteuid()


def test_listening_server_is_not_the_owner(lookup: Lookup, listener: socket.socket) -> None:
    nobody = ("127.0.0.1", listener.getsockname()[1])
    assert lookup(nobody, ("127.0.0.1", 9)) is None


def test_another_server_is_another_connection(lookup: Lookup, listener: socket.socket) -> None:
    client, server = connect(listener)
    with client, server:
        peer, (host, port) = ends(server)
        assert lookup(peer, (host, port ^ 1)) is None


def test_a_caller_of_this_user_gets_in(listener: socket.socket) -> None:
    client, server = connect(listener)
    with client, server:
        who = caller(server)
        assert who.allowed
        assert who.uid == (os.geteuid() if callers.can_check() else None)


@linux
def test_a_connection_that_was_reset_while_it_was_looked_up_is_refused(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, server = connect(listener)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def another_user_takes_the_port(*_: callers.Address) -> int:
        client.close()
        return os.geteuid()

    monkeypatch.setattr(callers, "_lookup", lambda: another_user_takes_the_port)
    with server:
        assert not caller(server).allowed


@pytest.mark.parametrize(
    ("uid", "allowed"), [(0, True), (1000, True), (1001, False), (65534, False)]
)
def test_this_user_and_root_get_in_and_nobody_else(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, uid: int, allowed: bool
) -> None:
    monkeypatch.setattr(callers, "_lookup", lambda: lambda *_: uid)
    monkeypatch.setattr(callers, "os", SimpleNamespace(geteuid=lambda: 1000))
    client, server = connect(listener)
    with client, server:
        assert caller(server).allowed is allowed


def test_where_the_system_does_not_tell_callers_get_in_and_that_can_be_asked(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "_lookup", lambda: None)
    client, server = connect(listener)
    with client, server:
        assert caller(server) == callers.Caller(allowed=True, uid=None)
    assert not callers.can_check()
