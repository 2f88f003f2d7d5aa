"""What is passed on between the engine's network and the machine's ports ends as it ended there."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from localgcp.access import engine_network


def said_by_child(act: Callable[[], Any]) -> Any:
    """What a call returns in a process of its own, which is over then."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            theirs.sendall(f"{json.dumps(act())}\n".encode())
        finally:
            os._exit(0)
    theirs.close()
    with ours, ours.makefile() as lines:
        line = lines.readline()
        os.waitpid(child, 0)
        assert lines.readlines() == []  # once the process that stays behind has ended, too
    return json.loads(line)


def has_networks() -> bool:
    """Whether this system gives a process a network of its own."""
    try:
        engine_network.enter_network()
    except (OSError, AttributeError):
        return False
    return True


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_network, "_POLL_SECONDS", 0.01)


@pytest.fixture
def machine() -> Iterator[Callable[[bytes], int]]:
    """Starts servers that answer each connection; their ports."""
    servers: list[socket.socket] = []

    def serve(text: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(text + connection.recv(100))

        threading.Thread(target=answer, daemon=True).start()
        return server.getsockname()[1]

    yield serve
    for each in servers:
        each.shutdown(socket.SHUT_RDWR)
        each.close()


def ask(port: int) -> str:
    """What answers at a port of this process's network."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"?")
            return connection.recv(100).decode()
    except ConnectionRefusedError:
        return "nobody"


def test_only_the_given_ports_lead_to_the_machine(machine: Callable[[bytes], int]) -> None:
    if not said_by_child(has_networks):
        pytest.skip("this system gives processes no network of their own")
    assert engine_network._is_possible() is True
    first, second, other = (machine(text) for text in (b"first", b"second", b"other"))

    def act() -> Any:
        process = os.getpid()
        entered = engine_network.enter([first, second])
        with socket.create_server(("127.0.0.1", 0)) as own:
            answers = [ask(port) for port in (first, second, first, other)]
            return entered, os.getpid() == process, answers, own.getsockname()[1]

    entered, is_same, answers, own = said_by_child(act)
    assert (entered, is_same) == (True, True)
    assert answers == ["first?", "second?", "first?", "nobody"]
    assert ask(own) == "nobody"
    assert ask(other) == "other?"


@pytest.mark.parametrize("error", [OSError("no"), AttributeError("no")])
def test_where_there_is_no_such_network_nothing_is_changed(
    monkeypatch: pytest.MonkeyPatch, machine: Callable[[bytes], int], error: Exception
) -> None:
    def enter_network() -> NoReturn:
        raise error

    monkeypatch.setattr(engine_network, "enter_network", enter_network)
    port = machine(b"here")
    assert not engine_network._is_possible()
    assert said_by_child(lambda: [engine_network.enter([]), ask(port)]) == [False, "here?"]
