"""May the process at the other end of a connection call?

Processes of this user, of root and of jobs may. The question is asked once for each connection, of
the system; nothing that the caller sends plays a part. Where the system does not answer, nobody is
refused, and ``can_check`` is False: commands then say so.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from localgcp.access.guests import holds
from localgcp.access.owners import LOOKUPS, Address, Lookup, plain_address

#: What a refused caller reads, after the name of the service.
REFUSAL: Final = "only processes of the user who started the local cloud get in."
#: One line of the log in so many seconds: refused callers must not fill the disk.
_LOG_SECONDS: Final = 1.0
_ROOT: Final = 0


@dataclass(frozen=True)
class Caller:
    """The process at the other end of a connection."""

    allowed: bool
    """Whether it may call."""
    uid: int | None
    """Its user; None if that was not found, or cannot be looked up here."""

    def __str__(self) -> str:
        return f"user {self.uid}" if self.uid is not None else "an unknown user"


def caller(connection: socket.socket) -> Caller:
    """The process at the other end of an accepted TCP connection; see the module.

    A connection that ended before its owner was looked up is refused.
    """
    lookup = _lookup()
    if lookup is None:
        return Caller(allowed=True, uid=None)
    try:
        client = plain_address(connection.getpeername())
        server = plain_address(connection.getsockname())
        uid = lookup(client, server)
        allowed = uid in (_ROOT, os.geteuid()) or (uid is not None and holds(client, server))
        # Still connected: so nobody else had these addresses when they were looked up.
        connection.getpeername()
    except (OSError, ValueError):
        return Caller(allowed=False, uid=None)
    return Caller(allowed, uid)


def can_check() -> bool:
    """Whether this system reports who owns a connection."""
    return _lookup() is not None


@cache
def _lookup() -> Lookup | None:
    """The first way to look up owners that finds this process at both ends of a connection."""
    if _is_ambiguous(os.geteuid()):
        return None
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ends: tuple[Address, Address] = client.getsockname(), server.getsockname()
        for lookup in LOOKUPS:
            try:
                if lookup(*ends) == os.geteuid():
                    return lookup
            except OSError:
                continue
    return None


def _is_ambiguous(uid: int, proc: Path = Path("/proc")) -> bool:
    """Whether the kernel shows users of other user namespaces as ``uid``: ``nobody`` in one."""
    try:
        overflow = int((proc / "sys/kernel/overflowuid").read_text())
        mapped = (proc / "self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return uid == overflow and mapped != ["0", "0", str(2**32 - 1)]


class RefusalLog:
    """Lines of the server's log about refused callers."""

    def __init__(self, service: str) -> None:
        self._service, self._lock = service, threading.Lock()
        self._next, self._unwritten = 0.0, 0

    def refused(self, who: Caller) -> None:
        """Write a line, unless one was written a moment ago."""
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                self._unwritten += 1
                return
            more = f" (and {self._unwritten} connections before)" if self._unwritten else ""
            self._next, self._unwritten = now + _LOG_SECONDS, 0
        print(f"{self._service}: refused a connection of {who}{more}")
