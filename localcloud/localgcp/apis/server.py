"""Serve Google's APIs at one port, over gRPC and REST; hooks around calls inject faults.

Methods refuse requests with errors in the wording of Google's job service.
"""

from __future__ import annotations

import inspect
import socket
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor

from localgcp.access import gate
from localgcp.apis import discovery, field_rules
from localgcp.apis.client import Implementation, Method
from localgcp.apis.field_rules import ROWS
from localgcp.apis.rest import Also, RestFront, unserved
from localgcp.errors import ApiError

#: Package of a message -> prefix of the message's name in the discovery documents.
PREFIXES: Final = {
    "google.cloud.aiplatform.v1.": "aiplatform.v1.GoogleCloudAiplatformV1",
    "google.cloud.batch.v1.": "batch.v1.",
    "google.cloud.secretmanager.v1.": "secretmanager.v1.",
    "google.devtools.cloudbuild.v1.": "cloudbuild.v1.",
}
#: Bodies whose fields appear in errors without the body's name.
_UNPREFIXED: Final = frozenset({"*", "custom_job", "hyperparameter_tuning_job"})


@dataclass(frozen=True)
class Call:
    """One call in progress; ``method`` is the short name (``CreateCustomJob``)."""

    method: str
    request: Any
    context: grpc.ServicerContext


@dataclass(frozen=True)
class TruncatedResponse:
    """A response that a hook truncates: the client receives all bytes except the last."""

    response: Any


class Hook(Protocol):
    """Executes a call with ``proceed()`` and returns the response. May raise ApiError."""

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
    """Start a server for processes of this user, at a port (0: a free one) or a listening socket.

    ``folder`` is for Unix sockets. ``also`` answers other REST requests. ``takes_beta`` serves
    v1beta1 over REST. ``on_unserved`` is called with each unknown gRPC method. Raises
    LocalCloudError if the port is in use.
    """
    handlers = {
        method: _handler(method, getattr(implementation, method.verb), hooks)
        for implementation in implementations
        for method in implementation.api.methods(implementation)
    }
    server = grpc.server(
        futures.ThreadPoolExecutor(16),
        handlers=[_Handlers(handlers, on_unserved)],
        interceptors=[gate.PageInterceptor()],
        options=[("grpc.max_receive_message_length", 32 << 20)],
    )
    rest = RestFront(handlers, also, takes_beta=takes_beta)
    return gate.GatedServer(server, at, "vertex", folder, rest.serve)


class _Handlers(grpc.GenericRpcHandler):
    """Calls the handler of a method's path; reports and refuses other methods."""

    def __init__(
        self, handlers: Mapping[Method, grpc.RpcMethodHandler], report: Callable[[str], None]
    ) -> None:
        self._handlers = {f"/{method.path}": handler for method, handler in handlers.items()}
        self._report = report

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        name = str(handler_call_details.method)
        if handler := self._handlers.get(name):
            return handler
        self._report(name)

        def refuse(_request: bytes, context: grpc.ServicerContext) -> bytes:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, unserved(name[:300]))
            raise AssertionError("abort returned")

        return grpc.unary_unary_rpc_method_handler(refuse)


def _handler(
    method: Method, function: Callable[..., Any], hooks: Sequence[Hook]
) -> grpc.RpcMethodHandler:
    has_context = "context" in inspect.signature(function).parameters
    check = checker(method)

    def answer(request: Any, context: grpc.ServicerContext) -> Any:
        call = Call(method.name, request, context)

        def proceed(index: int) -> Any:
            if index < len(hooks):
                return hooks[index](call, lambda: proceed(index + 1))
            check(request)
            return function(request, context) if has_context else function(request)

        try:
            return proceed(0)
        except ApiError as error:
            context.abort(error.code, error.message)
        except json_format.SerializeToJsonError as error:  # a time or a number without a JSON form
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"Invalid value: {error}")
        except Exception as error:
            traceback.print_exc()  # writes to server.log
            text = f"Internal error encountered: {type(error).__name__}."
            context.abort(grpc.StatusCode.INTERNAL, text)

    def write(response: Any) -> bytes:
        if isinstance(response, TruncatedResponse):
            return method.write(response.response)[:-1]
        return method.write(response)

    return grpc.unary_unary_rpc_method_handler(
        answer, request_deserializer=method.read, response_serializer=write
    )


def schema_of(descriptor: Descriptor) -> str:
    """Return the name of a message in the discovery documents, or "" for other messages."""
    for package, prefix in PREFIXES.items():
        if descriptor.full_name.startswith(package):
            return prefix + descriptor.full_name.removeprefix(package).replace(".", "")
    return ""


def checker(method: Method) -> Callable[[Any], None]:
    """Return a function that raises ApiError for a request with invalid fields."""
    body = next((rule.body for rule in method.rules() if rule.body), "")
    request: Any = method.plain_request().DESCRIPTOR
    field = request.fields_by_name.get(body)
    schema = schema_of(field.message_type if field is not None else request) if body else ""
    is_update = "update_mask" in request.fields_by_name
    if not (discovery.fields_of(schema) or schema in ROWS) or (is_update and body == "*"):
        return lambda _request: None
    at = "" if body in _UNPREFIXED else body

    def check(request: Any) -> None:
        plain = getattr(type(request), "pb", lambda message: message)(request)
        sent = plain if body == "*" else getattr(plain, body)
        paths = [*plain.update_mask.paths] if is_update else []
        named = {field_rules.json_name(path) for path in paths}
        only = named if paths and "*" not in paths else None
        errors = [*field_rules.errors(schema, json_format.MessageToDict(sent), at, only)]
        if errors:
            raise invalid_fields(errors)

    return check


def invalid_argument(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.INVALID_ARGUMENT, message)


def permission_denied(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.PERMISSION_DENIED, message)


def failed_precondition(message: str) -> ApiError:
    return ApiError(grpc.StatusCode.FAILED_PRECONDITION, message)


def not_found(name: str, kind: str = "CustomJob") -> ApiError:
    return ApiError(grpc.StatusCode.NOT_FOUND, f"The {kind} does not exist: {name}")


def invalid_fields(mistakes: list[tuple[str, str]]) -> ApiError:
    """Return one error for several fields, in the service's format (seen in public threads)."""
    listed = "\t ".join(
        f"{number}.Field: {field}; Message: {message}"
        for number, (field, message) in enumerate(mistakes, start=1)
    )
    return invalid_argument(f"List of found errors:\t{listed}\t")
