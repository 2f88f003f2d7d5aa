"""Find the owner of a connection, and refuse other users.

The owner is read from the system once for each connection: by netlink (Linux), else from this
user's processes. Without either, no caller is refused and ``can_check`` is False. A socket without
a process has no owner, although Linux reports root. Processes of jobs in containers may have the
user id of another person, so they must descend from a running replica.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

#: Error text for a refused caller, after the name of the service.
REFUSAL: Final = "only processes of the user who started the local cloud may connect."
#: Seconds between two lines of the log, so that refused callers cannot fill the disk.
_LOG_SECONDS: Final = 1.0
#: Host and port.
Address = tuple[str, int]
#: Function that returns the uid of the client's socket (client, server); None if unknown.
Lookup = Callable[[Address, Address], int | None]

#: States of a connected client's socket: ESTABLISHED, FIN_WAIT1, FIN_WAIT2
#: (include/net/tcp_states.h).
_CONNECTED: Final = (1, 4, 5)

_NETLINK_SOCK_DIAG: Final = 4
_SOCK_DIAG_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_NLMSG_ERROR: Final = 2
_ENOENT: Final = -2
_ANSWER_SECONDS: Final = 2.0
_HEADER: Final = struct.Struct("=IHHII")
#: ``inet_diag_req_v2`` without the addresses: family, protocol, extensions, padding, states.
_QUESTION: Final = struct.Struct("=BBBBI")
_PORTS: Final = struct.Struct("!HH")
#: Any interface, without a cookie.
_ANY_SOCKET: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
#: ``inet_diag_msg``: family and state; expiry, two queues, uid and inode.
_STATE: Final = struct.Struct("=BB")
_OWNER: Final = struct.Struct("=IIIII")
_OWNER_OFFSET: Final = 4 + 48


@dataclass(frozen=True)
class Guest:
    """A caller that is a process of a job."""

    account: str
    """Address of the job's service account; empty for Google's service agent."""


_REPLICAS_LOCK: Final = threading.Lock()
_REPLICAS: Final[dict[int, Guest]] = {}
_changes = 0


@dataclass(frozen=True)
class Caller:
    """The process at the client's end of a connection."""

    allowed: bool
    """True if the process may call."""
    uid: int | None
    """User id of the process; None if unknown, or if this system cannot report it."""

    def __str__(self) -> str:
        return f"user {self.uid}" if self.uid is not None else "an unknown user"


def caller(connection: socket.socket) -> Caller:
    """Return the process at the client's end; refuse it if the connection has ended."""
    lookup = _lookup()
    if lookup is None:
        return Caller(allowed=True, uid=None)
    try:
        client = plain_address(connection.getpeername())
        server = plain_address(connection.getsockname())
        uid = lookup(client, server)
        is_owner = uid in (0, os.geteuid())  # 0 is root
        allowed = is_owner or (uid is not None and find_guest(client, server) is not None)
        # The connection still exists, so no other process had these addresses during the lookup.
        connection.getpeername()
    except (OSError, ValueError):
        return Caller(allowed=False, uid=None)
    return Caller(allowed, uid)


def can_check() -> bool:
    """Return whether this system reports the owner of a connection."""
    return _lookup() is not None


@cache
def _lookup() -> Lookup | None:
    """Return the first lookup that works for a test connection of this process, or None."""
    if _is_ambiguous(os.geteuid()):
        return None
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ends: tuple[Address, Address] = client.getsockname(), server.getsockname()
        for lookup in (ask_kernel, search_processes):
            try:
                if lookup(*ends) == os.geteuid():
                    return lookup
            except OSError:
                continue
    return None


def _is_ambiguous(uid: int) -> bool:
    """Return whether the kernel shows users of other user namespaces as ``uid``, too."""
    try:
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
        mapped = Path("/proc/self/uid_map").read_text().split()
    except (OSError, ValueError):
        return False
    return uid == overflow and mapped != ["0", "0", str(2**32 - 1)]


class RefusalLog:
    """Writes refused callers to the server's log."""

    def __init__(self, service: str) -> None:
        self._service, self._lock = service, threading.Lock()
        self._next, self._unwritten = 0.0, 0

    def refused(self, who: Caller) -> None:
        """Log a refused call, at most one line a second."""
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                self._unwritten += 1
                return
            others, self._unwritten = self._unwritten, 0
            self._next = now + _LOG_SECONDS
        more = f" (and {others} connections since the last line)" if others else ""
        print(f"{self._service}: refused a connection of {who}{more}")


def plain_address(address: tuple[object, ...]) -> Address:
    """Return host and port of a socket address; an IPv4-mapped IPv6 address becomes IPv4."""
    host, port = ipaddress.ip_address(str(address[0]).partition("%")[0]), address[1]
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return str(mapped or host), int(str(port))


def ask_kernel(client: Address, server: Address) -> int | None:
    """Return the owner's uid by netlink. Raises OSError if this system does not support netlink."""
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    hosts = b"".join(socket.inet_pton(family, end[0]).ljust(16, b"\0") for end in (client, server))
    asked = _PORTS.pack(client[1], server[1]) + hosts
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + asked + _ANY_SOCKET
    size = _HEADER.size + len(question)
    kind = socket.AF_NETLINK if hasattr(socket, "AF_NETLINK") else socket.AF_UNSPEC
    with socket.socket(kind, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_SECONDS)
        kernel.send(_HEADER.pack(size, _SOCK_DIAG_BY_FAMILY, _REQUEST, 1, 0) + question)
        answer = kernel.recv(8192)
    _, type_, *_ = _HEADER.unpack_from(answer)
    body = answer[_HEADER.size :]
    if type_ == _NLMSG_ERROR:
        (error,) = struct.unpack_from("=i", body)
        if error == _ENOENT:
            return None
        raise OSError(-error, os.strerror(-error))
    _, state = _STATE.unpack_from(body)
    *_, uid, inode = _OWNER.unpack_from(body, _OWNER_OFFSET)
    # Without a connection of that client, the kernel answers with a server at its address.
    return uid if state in _CONNECTED and inode else None


@contextmanager
def job_process(pid: int, account: str = "") -> Iterator[None]:
    """Register a process and its child processes as part of a job while the block runs."""
    global _changes
    with _REPLICAS_LOCK:
        _REPLICAS[pid] = Guest(account)
        _changes += 1
    try:
        yield
    finally:
        with _REPLICAS_LOCK:
            _REPLICAS.pop(pid, None)
            _changes += 1


def guest_changes() -> int:
    """Return how often replicas started or ended: each change may change a connection's owner."""
    return _changes


def find_guest(client: Address, server: Address) -> Guest | None:
    """Return the job whose process owns the client's end of this connection, or None."""
    with _REPLICAS_LOCK:
        replicas = dict(_REPLICAS)
    if not replicas:
        return None
    import psutil  # takes 30 ms, and most servers run no container

    for pid, guest in replicas.items():
        try:
            family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            continue
        if any(_holds(process, client, server) for process in family):
            return guest
    return None


def search_processes(client: Address, server: Address) -> int | None:
    """Return this user's uid if one of the user's processes owns the client's socket, else None."""
    import psutil  # takes 30 ms, and most systems have netlink

    own = os.geteuid()
    for process in psutil.process_iter():
        try:
            if process.uids().effective == own and _holds(process, client, server):
                return own
        except (psutil.Error, OSError):
            continue  # the process ended, or this user may not inspect it
    return None


def _holds(process: psutil.Process, client: Address, server: Address) -> bool:
    import psutil

    try:
        connections = process.net_connections("tcp")
    except (psutil.Error, OSError):
        return False
    return any(
        connection.raddr
        and connection.status in ("ESTABLISHED", "FIN_WAIT1", "FIN_WAIT2")
        and (plain_address(connection.laddr), plain_address(connection.raddr)) == (client, server)
        for connection in connections
    )
