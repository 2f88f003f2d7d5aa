"""Connections of this process that are ended from outside of what uses them."""

from localgcp.access.gate import reset_peer


def test_a_connection_that_is_over_is_not_reset() -> None:
    assert not reset_peer("unix:/home/sockets/grpc-1/c1")
    assert not reset_peer("ipv4:127.0.0.1:1")
