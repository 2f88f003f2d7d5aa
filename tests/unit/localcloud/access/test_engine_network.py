"""What is passed on between the engine's network and the machine's ports ends as it ended there."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import threading

import pytest

from localgcp.access import engine_network

RESET = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("by", ["client", "server"])
def test_both_sides_of_a_connection_end_in_the_same_manner(resets: bool, by: str) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as outside,
        socket.create_server(("127.0.0.1", 0)) as inside,
    ):
        client = socket.create_connection(inside.getsockname(), timeout=20)
        inner, _ = inside.accept()
        open_ones = [inner]
        arguments = (inner, outside.getsockname()[1], open_ones)
        passing = threading.Thread(target=engine_network._connect, args=arguments, daemon=True)
        passing.start()
        server, _ = outside.accept()
        server.settimeout(120)
    for sender, receiver in ((client, server), (server, client)):
        sender.sendall(b"text")
        assert receiver.recv(100) == b"text"
    first, second = (client, server) if by == "client" else (server, client)
    if resets:
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    first.close()
    if resets:
        with pytest.raises(ConnectionResetError):
            second.recv(100)
    else:
        assert second.recv(100) == b""
    second.close()
    passing.join(20)
    assert not passing.is_alive()
    assert not open_ones


def test_a_process_is_alive_until_it_was_waited_for() -> None:
    assert engine_network._is_alive(os.getpid())
    with subprocess.Popen(["true"]) as process:
        pass
    assert not engine_network._is_alive(process.pid)
