"""Serve REST requests through the handlers of the gRPC server, except requests of web pages."""

from __future__ import annotations

import io
import json
import socket
import threading
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl

import grpc
from google.api_core.exceptions import from_grpc_status
from google.protobuf.message import DecodeError

from localgcp.access.callers import RefusalLog
from localgcp.access.web import LocalHandler, check_page
from localgcp.apis import transcoding
from localgcp.apis.client import HttpRule, Method, find_rule
from localgcp.errors import (
    ApiError,
    ExchangeEndedError,
    InvalidRequestError,
    RefusedRequestError,
)

#: Seconds after which a call that a fault does not answer ends.
_CALL_SECONDS: Final = 300.0
#: Maximum bytes of a request's body, as for a gRPC call.
_MAX_BYTES: Final = 32 << 20
#: gRPC code -> HTTP status, except codes with the status 500 (google/rpc/code.proto).
_STATUS: Final = {
    code: int(number)
    for code in grpc.StatusCode
    if (number := from_grpc_status(code, "").code) not in (None, 500)
}
#: HTTP status -> the first gRPC code in ``_STATUS``.
CODES: Final = {number: code for code, number in reversed(_STATUS.items())}
#: Function (HTTP method, target, body, connection name) -> answer; None for an unknown request.
Also = Callable[[str, str, bytes, str], bytes | None]
#: HTTP status -> name of the code in errors.
_NAMES: Final = {number: code.name for code, number in _STATUS.items()} | {
    400: "INVALID_ARGUMENT",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    500: "INTERNAL",
}


class _Context:
    """The methods of ``grpc.ServicerContext`` that hooks and services use."""

    def __init__(self, connection: str) -> None:
        self._connection = connection

    def peer(self) -> str:
        return self._connection

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise ApiError(code, details)

    def add_callback(self, callback: Callable[[], None]) -> bool:
        timer = threading.Timer(_CALL_SECONDS, callback)
        timer.daemon = True
        timer.start()
        return True


class RestFront:
    """Serves methods over REST with their gRPC handlers."""

    def __init__(self, handlers: Mapping[Method, Any], also: Also, *, takes_beta: bool) -> None:
        # ``also`` answers other requests; ``takes_beta`` serves v1beta1 like v1.
        self._handlers, self._also, self._takes_beta = handlers, also, takes_beta

    @cached_property
    def _rules(self) -> list[HttpRule]:
        return [rule for method in self._handlers for rule in method.rules()]

    def serve(self, connection: socket.socket, begin: bytes, name: str) -> None:
        """Answer all requests of a connection. ``begin`` has the bytes that were already read."""
        _Exchange(connection, begin, name, self)

    def answer(self, verb: str, target: str, body: bytes, connection: str = "") -> bytes:
        """Return the answer as JSON. Raises RefusedRequestError, ApiError or DecodeError."""
        path, _, query = target.partition("?")
        if self._takes_beta and path.startswith("/v1beta1/"):
            path = path.replace("/v1beta1/", "/v1/", 1)
        matching_rule = find_rule(self._rules, verb, path)
        if matching_rule is None:
            if (answer := self._also(verb, target, body, connection)) is not None:
                return answer
            raise RefusedRequestError(404, unserved(f"{verb} {path[:300]}"))
        rule, fields = matching_rule
        pairs = parse_qsl(query, keep_blank_values=True)
        request: Any = rule.method.plain_request()
        request = transcoding.request_message(rule, fields, pairs, body, request)
        handler = self._handlers[rule.method]
        message = handler.request_deserializer(request.SerializeToString())
        result = handler.unary_unary(message, _Context(connection))
        response: Any = rule.method.plain_response()
        response.ParseFromString(handler.response_serializer(result))
        return transcoding.response_body(response)


class _Exchange(LocalHandler):
    refusals = RefusalLog("vertex")

    def __init__(
        self, connection: socket.socket, begin: bytes, name: str, front: RestFront
    ) -> None:
        self._begin, self._name, self._front = begin, name, front
        super().__init__(connection, connection.getpeername(), None)  # pyright: ignore[reportArgumentType]

    def setup(self) -> None:
        """Prepend the bytes that were already read."""
        super().setup()
        self.rfile = io.BufferedReader(_Rest(self._begin, self.connection))

    def exchange(self) -> None:
        try:
            body = self._content()
            check_page(self.sent_headers(), self.connection.getsockname()[1])
            answer = self._front.answer(self.command, self.path, body, self._name)
            self._answer(200, answer)
        except RefusedRequestError as error:
            self.close_connection = True
            name = error.name or _NAMES.get(error.status, "UNKNOWN")
            if isinstance(error, InvalidRequestError):
                detail = {"@type": "type.googleapis.com/google.rpc.BadRequest"}
                detail |= {"fieldViolations": error.violations}
                body = _error(error.status, name, str(error), detail)
            else:
                body = _error(error.status, name, f"local cloud: {error}", reason=error.reason)
            self._answer(error.status, body)
        except ApiError as error:
            number = _STATUS.get(error.code, 500)
            self._answer(number, _error(number, error.code.name, error.message))
        except DecodeError:
            raise ExchangeEndedError from None  # a fault truncated the answer
        except (ExchangeEndedError, OSError):
            raise
        except Exception as error:
            traceback.print_exc()  # writes to server.log
            text = f"Internal error encountered: {type(error).__name__}."
            self._answer(500, _error(500, "INTERNAL", text))

    def _content(self) -> bytes:
        body = bytearray()
        for block in self.body_blocks():
            body += block
            if len(body) > _MAX_BYTES:
                raise RefusedRequestError(413, "the request is larger than 32 MiB.")
        return bytes(body)

    def _answer(self, status: int, body: bytes) -> None:
        headers = {
            "Content-Type": "application/json; charset=UTF-8",
            "Date": self.date_time_string(),
        }
        headers |= {"Cache-Control": "private", "X-Content-Type-Options": "nosniff"}
        self.answer(status, headers, body)


class _Rest(io.RawIOBase):
    def __init__(self, begin: bytes, connection: socket.socket) -> None:
        self._begin, self._connection = begin, connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._begin:
            return self._connection.recv_into(buffer)
        size = min(len(buffer), len(self._begin))
        buffer[:size], self._begin = self._begin[:size], self._begin[size:]
        return size


def unserved(call: str) -> str:
    """Return the error for a call of a method that the local cloud does not serve."""
    text = f"the local cloud does not serve the method {call}."
    return f"{text} docs/local-stack.md lists the served methods."


def _error(
    code: int, status: str, message: str, detail: dict[str, Any] | None = None, reason: str = ""
) -> bytes:
    # The form is that of google.aip.dev/193; clients of older APIs read ``reason``.
    error: dict[str, Any] = {"code": code, "message": message, "status": status}
    if reason:
        error["errors"] = [{"message": message, "domain": "global", "reason": reason}]
    if detail is not None:
        error["details"] = [detail]
    return json.dumps({"error": error}, indent=2).encode() + b"\n"
