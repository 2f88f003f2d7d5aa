"""Connections of this process that are ended from outside of what uses them."""

import os
import socket

import pytest

from localcloud.faults.connection import reset_peer


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with client, server:
            yield client, server


def test_the_connection_of_a_peer_is_ended(pair):
    client, _server = pair
    host, port = client.getsockname()
    assert reset_peer(f"ipv4:{host}:{port}")
    client.settimeout(60)
    assert client.recv(1) == b""


def test_no_file_stays_open_that_was_looked_at(pair, tmp_path):
    with (tmp_path / "a file").open("w"):
        before = os.listdir("/dev/fd")
        assert not reset_peer("ipv4:127.0.0.1:1")
        assert len(os.listdir("/dev/fd")) == len(before)
