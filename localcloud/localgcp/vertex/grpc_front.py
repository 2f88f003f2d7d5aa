"""The job service on gRPC: generic handlers, because the library brings client stubs only.

``Hook`` is the one seam for what goes wrong on the way: a hook wraps every call, and may raise
before it (429, 503), after it (accepted, answer lost) or wait past the caller's deadline.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

import grpc
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localgcp.access import grpc_server
from localgcp.access.gate import HttpServer
from localgcp.access.grpc_server import answer
from localgcp.vertex.service import JobService
from vertex_training.customjob.google import vertex_api

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
    service: JobService,
    port: int,
    hooks: Sequence[Hook] = (),
    also: Sequence[grpc.GenericRpcHandler] = (),
    folder: Path | None = None,
    rest: Callable[[Path, int], HttpServer] | None = None,
    more: Mapping[str, Parts] = MappingProxyType({}),
) -> tuple[grpc_server.LocalServer, int]:
    """Start a server on 127.0.0.1 (port 0: any free one); returns it and its port.

    ``also`` are handlers of further services at the same address, ``more`` further methods of the
    job service. Only processes of this user get
    in (``localgcp.access``); ``folder`` is for its sockets. ``rest`` answers REST
    at this port.

    Raises LocalCloudError if the port is taken.
    """
    server = grpc.server(
        futures.ThreadPoolExecutor(_WORKERS, thread_name_prefix="vertex"),
        handlers=[*_handlers(service, more, tuple(hooks)), *also],
        interceptors=[grpc_server.PageInterceptor()],
        options=[("grpc.max_receive_message_length", 32 << 20)],
    )
    started = grpc_server.start(server, port, "vertex", folder, rest)
    return started, started.port


#: What answers a method, how its request is read and how its response is written.
Parts = tuple[Callable[[Any], Any], Callable[..., Any], Callable[..., bytes]]


def _handlers(
    service: JobService, more: Mapping[str, Parts], hooks: tuple[Hook, ...]
) -> list[grpc.GenericRpcHandler]:
    def unary(
        name: str, method: Callable[[Any], Any], read: Callable[..., Any], write: Callable[..., Any]
    ) -> grpc.RpcMethodHandler:
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: _answer(Call(name, request, context), method, hooks),
            request_deserializer=read,
            response_serializer=lambda made: (
                write(made.response)[:-1] if isinstance(made, TruncatedResponse) else write(made)
            ),
        )

    return [
        grpc.method_handlers_generic_handler(
            package, {name: unary(name, *parts) for name, parts in table.items()}
        )
        for package, table in (
            ("google.cloud.aiplatform.v1.JobService", {**_jobs(service), **more}),
            ("google.longrunning.Operations", _operations(service)),
        )
    ]


def _jobs(service: JobService) -> dict[str, Parts]:
    return {
        "CreateCustomJob": (
            service.create_custom_job,
            vertex_api.CreateCustomJobRequest.deserialize,
            vertex_api.CustomJob.serialize,
        ),
        "GetCustomJob": (
            service.get_custom_job,
            vertex_api.GetCustomJobRequest.deserialize,
            vertex_api.CustomJob.serialize,
        ),
        "ListCustomJobs": (
            service.list_custom_jobs,
            vertex_api.ListCustomJobsRequest.deserialize,
            vertex_api.ListCustomJobsResponse.serialize,
        ),
        "CancelCustomJob": (
            service.cancel_custom_job,
            vertex_api.CancelCustomJobRequest.deserialize,
            empty_pb2.Empty.SerializeToString,
        ),
        "DeleteCustomJob": (
            service.delete_custom_job,
            vertex_api.DeleteCustomJobRequest.deserialize,
            operations_pb2.Operation.SerializeToString,
        ),
    }


def _operations(service: JobService) -> dict[str, Parts]:
    return {
        "GetOperation": (
            service.get_operation,
            operations_pb2.GetOperationRequest.FromString,
            operations_pb2.Operation.SerializeToString,
        ),
        "WaitOperation": (
            service.get_operation,
            operations_pb2.WaitOperationRequest.FromString,
            operations_pb2.Operation.SerializeToString,
        ),
    }


def _answer(call: Call, method: Callable[[Any], Any], hooks: tuple[Hook, ...]) -> Any:
    def proceed(index: int) -> Any:
        if index == len(hooks):
            return method(call.request)
        return hooks[index](call, lambda: proceed(index + 1))

    return answer(lambda: proceed(0), call.context)
