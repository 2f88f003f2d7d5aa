"""Accepts the connections of a gRPC server, and passes on those that get in.

gRPC's server in Python shows of a connection only the peer's address, and only with a call. By
then the peer may have hung up, and its address may be another's. So the gate accepts, asks for the
owner of the connection that it holds, and copies bytes to a server at a Unix socket in a folder of
this user alone. Connections of HTTP/1 are for ``Gate.serve_http``, if there is one. Connections of
other users are passed to a server that refuses every call.
"""

from __future__ import annotations

import itertools
import os
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import grpc

from localgcp.access import callers
from localgcp.access.callers import Caller, Guest, RefusalLog, caller, plain_address
from localgcp.access.web import refuse
from localgcp.errors import ApiError, LocalCloudError
from localgcp.system.threads import make_thread

#: Key of metadata: the name of the connection that a call came by.
CONNECTION: Final = "vt-connection"
#: What a client of HTTP/2 sends first (RFC 9113, 3.4); no page in a browser can.
_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_BLOCK: Final = 1 << 16
#: For connections of other users: how many at once, and how long one may be silent.
_REFUSED_AT_ONCE: Final = 16
_REFUSED_SECONDS: Final = 5.0
#: l_onoff, l_linger: closing throws away what was not sent, and the other side hears RST.
_NO_LINGER: Final = struct.pack("ii", 1, 0)

#: Answers a connection until it ends; its first bytes were read already.
HttpServer = Callable[[socket.socket, bytes], None]

#: By the peer's address, which can be guessed: no caller may say it.
_OPEN: Final[dict[str, socket.socket]] = {}
#: By a name that cannot be guessed, which calls over another connection say.
_NAMED: Final[dict[str, socket.socket]] = {}
#: Whose a connection is, and how many replicas had begun or ended when that was looked up: a
#: look takes up to 0.1 s, and predictions come many a second over one connection.
_GUESTS: Final[WeakKeyDictionary[socket.socket, tuple[int, Guest | None]]] = WeakKeyDictionary()


@contextmanager
def known_by_name(connection: socket.socket) -> Iterator[str]:
    """While this lasts, the connection has a name that ``guest_behind`` takes as metadata.

    For a connection whose calls reach the gRPC server over another one.
    """
    name = secrets.token_hex(16)
    _NAMED[name] = connection
    try:
        yield name
    finally:
        _NAMED.pop(name, None)


def guest_behind(context: grpc.ServicerContext) -> Guest | None:
    """The job whose process made this call; None for a program of the owner."""
    metadata = {key: value for key, value in context.invocation_metadata() or ()}
    named = metadata.get(CONNECTION)
    connection = connection_of(context.peer()) if named is None else named_connection(str(named))
    if connection is None:
        raise ApiError(grpc.StatusCode.UNAVAILABLE, "the connection is over.")
    return guest_at(connection)


def named_connection(name: str) -> socket.socket | None:
    """The connection that ``known_by_name`` named; None if it is over."""
    return _NAMED.get(name)


def guest_at(connection: socket.socket) -> Guest | None:
    """The job whose process has the other end of a connection; None for a program of the owner."""
    changes = callers.guest_changes()
    known = _GUESTS.get(connection)
    if known is None or known[0] != changes:
        client = plain_address(connection.getpeername())
        found = callers.find_guest(client, plain_address(connection.getsockname()))
        known = _GUESTS[connection] = changes, found
    return known[1]


def connection_of(peer: str) -> socket.socket | None:
    """The client's connection behind ``ServicerContext.peer()``; None if it is over."""
    return _OPEN.get(peer.removeprefix("unix:"))


class Gate:
    """Listens on 127.0.0.1. ``server`` and ``refusal`` are Unix sockets in ``folder``."""

    def __init__(
        self, at: int | socket.socket, folder: Path, server: Path, refusal: Path, service: str
    ) -> None:
        """Take a port (0: any free one) or a socket that listens; connections wait until ``open``.

        Raises LocalCloudError if the port is taken.
        """
        self.serve_http: HttpServer | None = None
        """Answers connections of HTTP/1 of this user; None: they are refused."""
        self._folder, self._server, self._refusal = folder, str(server), str(refusal)
        self._numbers = itertools.count()
        self._log = RefusalLog(service)
        self._refused = threading.BoundedSemaphore(_REFUSED_AT_ONCE)
        try:
            self._listener = socket.create_server(("127.0.0.1", at)) if isinstance(at, int) else at
        except OSError as error:
            raise LocalCloudError(f"port {at} is taken by another program.") from error
        self.port: int = self._listener.getsockname()[1]

    def open(self) -> None:
        """Begin to accept: both servers are there."""
        make_thread(self._accept).start()

    def close(self) -> None:
        """Listen no more; connections go on. Repeatable."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except ConnectionError:
                continue  # it was over before it was accepted
            except OSError:
                if self._listener.fileno() == -1:
                    return
                threading.Event().wait(0.1)  # no more files: some will be closed
                continue
            make_thread(self._serve, connection).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            who = caller(connection)
            if who.allowed:
                self._pass_on(connection, self._server, self.serve_http)
            elif self._refused.acquire(blocking=False):
                try:
                    self._turn_away(connection, who)
                finally:
                    self._refused.release()

    def _turn_away(self, connection: socket.socket, who: Caller) -> None:
        self._log.refused(who)
        connection.settimeout(_REFUSED_SECONDS)
        self._pass_on(connection, self._refusal, None)

    def _pass_on(self, connection: socket.socket, server: str, http: HttpServer | None) -> None:
        """Copy both ways until one side ends, or let ``http`` answer. Without it HTTP gets 403."""
        begin = b""
        while begin != _PREFACE and _PREFACE.startswith(begin):
            if not (more := connection.recv(_BLOCK)):
                return
            begin += more
        if not begin.startswith(_PREFACE) and http is not None:
            http(connection, begin)
            return
        if not begin.startswith(_PREFACE):
            refuse(connection, "this is a gRPC server; requests of web pages are refused.")
            return
        name = str(self._folder / f"c{next(self._numbers)}")
        with socket.socket(socket.AF_UNIX) as inner:
            inner.bind(name)  # what gRPC takes for the peer's address
            try:
                inner.connect(server)
                _OPEN[name] = connection
                inner.sendall(begin)
                back = make_thread(_copy, inner, connection)
                back.start()
                _copy(connection, inner)
                back.join()
            finally:
                _OPEN.pop(name, None)
                os.unlink(name)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """Copy until one of the two ends; then end both."""
    try:
        while data := source.recv(_BLOCK):
            sink.sendall(data)
    except OSError:
        pass  # reset by one side: the other one ends, too
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def reset_peer(peer: str) -> bool:
    """Close the connection of a gRPC peer (``ServicerContext.peer()``); False if it is over.

    gRPC has no call for it.
    """
    connection = connection_of(peer)
    if connection is None:
        return False
    try:
        reset_connection(connection)
    except OSError:
        return False  # it ended a moment ago
    return True


def reset_connection(connection: socket.socket) -> None:
    """End a connection at once, for both sides."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    connection.shutdown(socket.SHUT_RDWR)
