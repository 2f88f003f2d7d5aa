"""Serves Google's APIs by objects that have their methods, over gRPC and REST at one port.

``Hook`` is the one seam for what goes wrong on the way: a hook wraps every call, and may raise
before it (429, 503), after it (accepted, answer lost) or wait past the caller's deadline.
"""

from __future__ import annotations

import inspect
import socket
import traceback
from collections.abc import Callable, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
from google.protobuf.json_format import SerializeToJsonError

from localgcp.access import gate
from localgcp.apis.client import Implementation, Method
from localgcp.apis.rest import Also, RestFront
from localgcp.errors import ApiError

_WORKERS: Final = 16


@dataclass(frozen=True)
class Call:
    """One call on its way; ``method`` is the short name (``CreateCustomJob``)."""

    method: str
    request: Any
    context: grpc.ServicerContext


@dataclass(frozen=True)
class TruncatedResponse:
    """A response whose last byte never arrives; a hook returns it in place of the response."""

    response: Any


class Hook(Protocol):
    """Wraps a call: ``proceed()`` makes it.

    Returns the response or a TruncatedResponse. May raise ApiError.
    """

    def __call__(self, call: Call, proceed: Callable[[], Any]) -> Any: ...


def serve(
    implementations: Sequence[Implementation],
    at: int | socket.socket,
    hooks: Sequence[Hook] = (),
    folder: Path | None = None,
    also: Also = lambda *_: None,
    on_unserved: Callable[[str], None] = lambda _method: None,
    *,
    takes_beta: bool = False,
) -> gate.GatedServer:
    """Start a server on 127.0.0.1, at a port (0: any free one) or a socket that listens.

    Only processes of this user get in (``localgcp.access``); ``folder`` is for its sockets.
    ``also`` answers what is asked over REST alone, where ``takes_beta`` lets ``v1beta1`` in.
    ``on_unserved`` is called with each method that a client asks for over gRPC and nothing has.

    Raises LocalCloudError if the port is taken.
    """
    tables: dict[str, dict[str, grpc.RpcMethodHandler]] = {}
    methods: list[Method] = []
    for implementation in implementations:
        for method in implementation.api.methods(implementation):
            methods.append(method)
            table = tables.setdefault(method.path.partition("/")[0], {})
            table[method.name] = _handler(method, getattr(implementation, method.verb), hooks)
    server = grpc.server(
        futures.ThreadPoolExecutor(_WORKERS),
        handlers=[
            *(grpc.method_handlers_generic_handler(*each) for each in tables.items()),
            _Unserved(on_unserved),
        ],
        interceptors=[gate.PageInterceptor()],
        options=[("grpc.max_receive_message_length", 32 << 20)],
    )
    rest = RestFront(methods, also, takes_beta=takes_beta)
    return gate.GatedServer(server, at, "vertex", folder, rest.at)


class _Unserved(grpc.GenericRpcHandler):
    """Comes last: has no method, which gRPC answers with UNIMPLEMENTED, and reports the call."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> None:
        self._report(handler_call_details.method)


def _handler(
    method: Method, function: Callable[..., Any], hooks: Sequence[Hook]
) -> grpc.RpcMethodHandler:
    wants_context = "context" in inspect.signature(function).parameters

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        call = Call(method.name, request, context)

        def proceed(index: int) -> Any:
            if index < len(hooks):
                return hooks[index](call, lambda: proceed(index + 1))
            return function(request, context) if wants_context else function(request)

        try:
            return proceed(0)
        except ApiError as error:
            context.abort(error.code, error.message)
        except SerializeToJsonError as error:  # a time, or a number, that JSON cannot have
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"Invalid value: {error}")
        except Exception as error:
            traceback.print_exc()  # to server.log; the caller gets one line
            text = f"Internal error encountered: {type(error).__name__}."
            context.abort(grpc.StatusCode.INTERNAL, text)

    def write(response: Any) -> bytes:
        if isinstance(response, TruncatedResponse):
            return method.write(response.response)[:-1]
        return method.write(response)

    return grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=method.read, response_serializer=write
    )
