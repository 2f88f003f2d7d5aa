"""Which calls a gRPC server refuses by itself, and where its sockets lie."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any, NoReturn

import grpc
import pytest

from localgcp.access import gate, grpc_server


class RefusedError(Exception):
    """The status and the text that a caller gets."""


class Context:
    """A call whose refusal is an exception."""

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise RefusedError(code.name, details)


def refusal(handler: Any) -> tuple[str, str]:
    with pytest.raises(RefusedError) as refused:
        handler.stream_stream(iter([b"request"]), Context())
    return refused.value.args  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("metadata", "of_a_page"),
    [
        (None, False),
        ((), False),
        ((("user-agent", "grpc-python"), ("x-origin", "http://a")), False),
        ((("origin", "http://a"),), True),
        ((("user-agent", "a browser"), ("origin", "http://a"), ("x-grpc-web", "1")), True),
        ((("origin", ""),), True),
    ],
)
def test_calls_of_web_pages_are_refused_and_others_go_on(metadata: Any, of_a_page: bool) -> None:
    details: Any = SimpleNamespace(method="/a.B/C", invocation_metadata=metadata)
    passed: list[Any] = []
    interceptor = grpc_server.PageInterceptor()
    handler = interceptor.intercept_service(lambda given: passed.append(given), details)
    if of_a_page:
        text = "local cloud: calls of web pages are refused."
        assert (refusal(handler), passed) == (("PERMISSION_DENIED", text), [])
    else:
        assert (handler, passed) == (None, [details])


def test_a_connection_has_its_name_for_a_while_and_each_time_another() -> None:
    left, right = socket.socketpair()
    with left, right:
        with gate.known_by_name(left) as name, gate.known_by_name(right) as other:
            assert (gate.named_connection(name), gate.named_connection(other)) == (left, right)
            assert len({name, other}) == 2
            assert len(bytes.fromhex(name)) >= 16  # no caller guesses it
        assert gate.named_connection(name) is None
        assert gate.named_connection("") is None
