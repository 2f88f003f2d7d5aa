"""For gRPC servers: calls of other users and of web pages end with PERMISSION_DENIED."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable
from concurrent import futures
from pathlib import Path
from typing import Any, Final

import grpc

from localgcp.access.callers import REFUSAL
from localgcp.access.gate import Gate, HttpServer
from localgcp.system.folders import delete_folder

_PAGE: Final = "local cloud: calls of web pages are refused."
#: Longest path of a Unix socket on every system (macOS: 104 bytes with the end).
_LONGEST_PATH: Final = 100


class PageInterceptor(grpc.ServerInterceptor):
    """Refuses calls with ``origin``: each call of gRPC-Web has it, and no other client."""

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        metadata = handler_call_details.invocation_metadata or ()
        if any(key == "origin" for key, _ in metadata):
            return _refusal(_PAGE)
        return continuation(handler_call_details)


class _RefusingHandler(grpc.GenericRpcHandler):
    """Answers every method with PERMISSION_DENIED."""

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any]:
        return _refusal(f"local cloud: {REFUSAL}")


class LocalServer:
    """A gRPC server at ``port``, behind a gate."""

    def __init__(self, server: grpc.Server, refusing: grpc.Server, gate: Gate, folder: Path):
        self._server, self._refusing, self._gate, self._folder = server, refusing, gate, folder
        self.port = gate.port

    def stop(self, grace: float | None) -> threading.Event:
        """Accept no more, end after ``grace`` seconds as ``grpc.Server.stop``; set when over."""
        self._gate.close()
        self._refusing.stop(0)  # None would wait, and gRPC rarely never tells of a server's end
        over = self._server.stop(grace)
        delete_folder(self._folder)
        return over


def start(
    server: grpc.Server,
    at: int | socket.socket,
    service: str,
    folder: Path | None = None,
    rest: Callable[[Path, int], HttpServer] | None = None,
) -> LocalServer:
    """Start ``server`` at 127.0.0.1 for processes of this user.

    ``at`` is a port (0: any free one) or a socket that listens.
    ``server`` has its handlers and no port; make it with ``interceptors=[PageInterceptor()]``.
    ``service`` is its name in the log. Its sockets lie in ``folder`` if their paths are short
    enough, else below the folder for temporary files. ``rest`` makes what answers HTTP/1 at this
    port, of the server's Unix socket and the port; without it such connections are refused.

    Raises LocalCloudError if the port is taken.
    """
    sockets = _private_folder(folder, service)
    inner, refusal = sockets / "server", sockets / "refusal"
    refusing = grpc.server(
        futures.ThreadPoolExecutor(1),
        handlers=[_RefusingHandler()],
    )
    try:
        gate = Gate(at, sockets, inner, refusal, service)
    except Exception:
        delete_folder(sockets)
        raise
    for each, path in ((server, inner), (refusing, refusal)):
        each.add_insecure_port(f"unix:{path}")
        each.start()
    if rest is not None:
        gate.serve_http = rest(inner, gate.port)
    gate.open()
    return LocalServer(server, refusing, gate, sockets)


def _private_folder(wanted: Path | None, service: str) -> Path:
    """A new folder that is 0700."""
    longest = len("/plugin-12345678/c1234567")
    if wanted is not None and wanted.is_dir() and len(bytes(wanted)) + longest < _LONGEST_PATH:
        return Path(tempfile.mkdtemp(prefix=f"{service}-", dir=wanted))
    return Path(tempfile.mkdtemp(prefix="vt-grpc-"))


def _refusal(text: str) -> grpc.RpcMethodHandler[Any, Any]:
    def refuse(_requests: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, text)

    return grpc.stream_stream_rpc_method_handler(refuse)
