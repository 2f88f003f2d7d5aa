"""Accepts the connections of a gRPC server, and forwards those of allowed callers.

gRPC reports only the peer's address, and only with a call, when another process may already have
the address. So the gate accepts a connection, looks up its owner and copies bytes to a server at a
Unix socket in a private folder.
"""

from __future__ import annotations

import itertools
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import grpc

from localgcp.access import callers
from localgcp.access.callers import REFUSAL, Guest, RefusalLog, caller, plain_address
from localgcp.access.web import refuse
from localgcp.errors import ApiError, LocalCloudError
from localgcp.system.processes import make_thread
from localgcp.system.root_directory import delete_folder

#: First bytes of an HTTP/2 client (RFC 9113, 3.4), which no page in a browser can send.
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_BLOCK: Final = 1 << 16
#: Maximum bytes of a Unix socket's path on all systems (macOS: 104 with the final NUL).
_LONGEST_PATH: Final = 100
#: Limits for connections of other users: number at once, and seconds without data.
_REFUSED_AT_ONCE: Final = 16
_REFUSED_SECONDS: Final = 5.0
#: Value of SO_LINGER with which a closed connection discards unsent data and sends RST.
_NO_LINGER: Final = struct.pack("ii", 1, 0)

#: Function that serves a connection until it ends; its first bytes and name are arguments.
HttpServer = Callable[[socket.socket, bytes, str], None]

#: Connections by name, which is the address of the peer in gRPC. Names can be guessed, so callers
#: must not send a name.
_OPEN: Final[dict[str, socket.socket]] = {}
#: Number of replica changes at the last lookup, and the owner, by connection. Cached, because a
#: lookup takes up to 0.1 s and one connection may send many predictions a second.
_GUESTS: Final[WeakKeyDictionary[socket.socket, tuple[int, Guest | None]]] = WeakKeyDictionary()


def guest_behind(context: grpc.ServicerContext) -> Guest | None:
    """Return the job that called this method; None if the caller is not a job."""
    connection = connection_of(context.peer())
    if connection is None:
        raise ApiError(grpc.StatusCode.UNAVAILABLE, "the connection has ended.")
    return guest_at(connection)


def guest_at(connection: socket.socket) -> Guest | None:
    """Return the job at the client's end of a connection; None if the client is not a job."""
    changes = callers.guest_changes()
    known = _GUESTS.get(connection)
    if known is None or known[0] != changes:
        client = plain_address(connection.getpeername())
        guest = callers.find_guest(client, plain_address(connection.getsockname()))
        known = _GUESTS[connection] = changes, guest
    return known[1]


def connection_of(peer: str) -> socket.socket | None:
    """Return the client's connection for ``ServicerContext.peer()``; None if it has ended."""
    return _OPEN.get(peer.removeprefix("unix:"))


class PageInterceptor(grpc.ServerInterceptor):
    """Refuses calls with ``origin`` metadata: only gRPC-Web clients send it."""

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        metadata = handler_call_details.invocation_metadata or ()
        if any(key == "origin" for key, _ in metadata):
            return _refusal("local cloud: calls from web pages are refused.")
        return continuation(handler_call_details)


class _RefusingHandler(grpc.GenericRpcHandler):
    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any]:
        return _refusal(f"local cloud: {REFUSAL}")


class GatedServer:
    """A gRPC server at a port of 127.0.0.1, only for processes of this user."""

    def __init__(
        self,
        server: grpc.Server,
        at: int | socket.socket,
        service: str,
        folder: Path | None = None,
        rest: HttpServer | None = None,
    ) -> None:
        """Start ``server``, which needs handlers and a ``PageInterceptor`` but no port.

        ``at`` is a port (0: any free port) or a listening socket. ``service`` is a name for the
        log. ``folder`` is the folder of Unix sockets if its path is short enough. ``rest`` serves
        HTTP/1 connections. Raises LocalCloudError.
        """
        try:
            self._listener = socket.create_server(("127.0.0.1", at)) if isinstance(at, int) else at
        except OSError as error:
            raise LocalCloudError(f"port {at} is in use by another program.") from error
        self.port: int = self._listener.getsockname()[1]
        self._numbers, self._log = itertools.count(), RefusalLog(service)
        self._rest = rest
        #: Threads of HTTP connections.
        self._http: dict[socket.socket, threading.Thread] = {}
        self._stopped = False
        self._refused = threading.BoundedSemaphore(_REFUSED_AT_ONCE)
        self._server = server
        self._refusing = grpc.server(futures.ThreadPoolExecutor(1), handlers=[_RefusingHandler()])
        self._folder = _private_folder(folder, service)
        self._inner, self._refusal = self._folder / "server", self._folder / "refusal"
        for listener, path in ((server, self._inner), (self._refusing, self._refusal)):
            listener.add_insecure_port(f"unix:{path}")
            listener.start()
        make_thread(self._accept).start()

    def stop(self, grace: float | None) -> threading.Event:
        """Stop accepting calls. The returned event is set when the server has ended."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()
        self._refusing.stop(0)  # None would wait, and gRPC does not always report the end
        over = self._server.stop(grace)
        self._stopped = True
        self._end_http(grace or 0)
        delete_folder(self._folder)
        return over

    def _end_http(self, grace: float) -> None:
        """Read no more requests over HTTP, and wait up to ``grace`` seconds for answers."""
        threads = list(self._http.items())
        for connection, _ in threads:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        until = time.monotonic() + grace
        for _, thread in threads:
            thread.join(max(until - time.monotonic(), 0))

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except ConnectionError:
                continue  # the connection ended before this call
            except OSError:
                if self._listener.fileno() == -1:
                    return
                threading.Event().wait(0.1)  # too many open files: wait until some are closed
                continue
            make_thread(self._serve, connection).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            who = caller(connection)
            if who.allowed:
                self._pass_on(connection, self._inner, self._rest)
            elif self._refused.acquire(blocking=False):
                try:
                    self._log.refused(who)
                    connection.settimeout(_REFUSED_SECONDS)
                    self._pass_on(connection, self._refusal, None)
                finally:
                    self._refused.release()

    def _pass_on(self, connection: socket.socket, server: Path, http: HttpServer | None) -> None:
        """Copy bytes in both directions. Answer HTTP with 403 if ``http`` is None."""
        begin = b""
        while begin != _PREFACE and _PREFACE.startswith(begin):
            if not (more := connection.recv(_BLOCK)):
                return
            begin += more
        name = str(self._folder / f"c{next(self._numbers)}")
        _OPEN[name] = connection
        try:
            if begin.startswith(_PREFACE):
                _join(connection, begin, name, server)
            elif http is not None:
                self._http[connection] = threading.current_thread()
                if not self._stopped:
                    http(connection, begin, name)
            else:
                refuse(connection, "this is a gRPC server; requests from web pages are refused.")
        finally:
            self._http.pop(connection, None)
            del _OPEN[name]


def _private_folder(wanted: Path | None, service: str) -> Path:
    longest = len("/plugin-12345678/c1234567")
    if wanted is not None and wanted.is_dir() and len(bytes(wanted)) + longest < _LONGEST_PATH:
        return Path(tempfile.mkdtemp(prefix=f"{service}-", dir=wanted))
    return Path(tempfile.mkdtemp(prefix="vt-grpc-"))


def _refusal(text: str) -> grpc.RpcMethodHandler[Any, Any]:
    def refuse(_requests: Any, context: grpc.ServicerContext) -> Any:
        context.abort(grpc.StatusCode.PERMISSION_DENIED, text)

    return grpc.stream_stream_rpc_method_handler(refuse)


def _join(connection: socket.socket, begin: bytes, name: str, server: Path) -> None:
    with socket.socket(socket.AF_UNIX) as inner:
        inner.bind(name)  # gRPC reports this name as the peer's address
        try:
            inner.connect(str(server))
            inner.sendall(begin)
            back = make_thread(_copy, inner, connection)
            back.start()
            _copy(connection, inner)
            back.join()
        finally:
            os.unlink(name)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(_BLOCK):
            sink.sendall(data)
    except OSError:
        pass  # one side reset the connection
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def reset_peer(peer: str) -> bool:
    """Reset the connection of ``ServicerContext.peer()``; return False if it has ended."""
    connection = connection_of(peer)
    if connection is None:
        return False
    try:
        reset_connection(connection)
    except OSError:
        return False  # the connection has just ended
    return True


def reset_connection(connection: socket.socket) -> None:
    """End a connection in both directions at once."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    connection.shutdown(socket.SHUT_RDWR)
