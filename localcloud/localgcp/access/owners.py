"""Which user has the other end of a loopback connection, as the system reports it.

A connection within this machine has two sockets: that of the server, and that of the client, whose
owner is looked up by its addresses. There are three ways to ask:

- ``ask_kernel``: netlink ``sock_diag(7)``, one question about one socket (0.02 ms);
- ``read_tables``: ``/proc/net/tcp`` and ``tcp6`` (``proc(5)``), where netlink is missing;
- ``search_processes``: the open sockets of this user's processes, elsewhere (macOS).

A socket that no process holds any more counts as not found: Linux reports it as one of root, so a
client that hangs up at once would pass for root.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: Host and port.
Address = tuple[str, int]
#: The uid of the client's socket, of a connection given by (client, server); None: not found.
Lookup = Callable[[Address, Address], int | None]

#: ESTABLISHED, FIN_WAIT1, FIN_WAIT2 (include/net/tcp_states.h): the client's end is connected, and
#: was so when it was accepted.
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
#: Interface (any) and cookie (none).
_ANY_SOCKET: Final = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
#: ``inet_diag_msg``: family and state; expiry, two queues, uid and inode.
_STATE: Final = struct.Struct("=BB")
_OWNER: Final = struct.Struct("=IIIII")
_OWNER_OFFSET: Final = 4 + 48


def plain_address(address: tuple[object, ...]) -> Address:
    """An address of a socket: IPv4 also where an IPv6 socket has it (``::ffff:127.0.0.1``)."""
    host, port = ipaddress.ip_address(str(address[0]).partition("%")[0]), address[1]
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return str(mapped or host), int(str(port))


def ask_kernel(client: Address, server: Address) -> int | None:
    """By netlink. Raises OSError if this system has no such question."""
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


def read_tables(client: Address, server: Address) -> int | None:
    """From the tables of ``/proc/net``. Raises OSError if they are not there."""
    ends = [_in_table(client), _in_table(server)]
    mapped = [_MAPPED + end if len(end) == _IPV4_LENGTH else end for end in ends]
    for name, wanted in (("tcp", ends), ("tcp6", mapped)):
        path = Path("/proc/net", name)
        if name == "tcp6" and not path.exists():
            continue  # a kernel without IPv6
        for line in path.read_text().splitlines()[1:]:
            row = line.split()
            if row[1:3] == wanted and int(row[3], 16) in _CONNECTED and row[9] != "0":
                return int(row[7])
    return None


#: ``0100007F:1F90``
_IPV4_LENGTH: Final = 13
#: The beginning of ``::ffff:a.b.c.d`` as the table shows it: words in the machine's order.
_MAPPED: Final = "".join(f"{word:08X}" for word in struct.unpack("=3I", b"\0" * 10 + b"\xff" * 2))


def _in_table(end: Address) -> str:
    """``0100007F:1F90``: words in the machine's order, the port in hexadecimal."""
    packed = ipaddress.ip_address(end[0]).packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words) + f":{end[1]:04X}"


def search_processes(client: Address, server: Address) -> int | None:
    """Among the sockets of this user's processes: this user's uid if one has the client's."""
    import psutil  # 30 ms, and most systems have another way

    own = os.geteuid()
    for process in psutil.process_iter():
        try:
            if process.uids().effective != own:
                continue
            for each in process.net_connections("tcp"):
                if not each.raddr or each.status not in ("ESTABLISHED", "FIN_WAIT1", "FIN_WAIT2"):
                    continue
                if (plain_address(each.laddr), plain_address(each.raddr)) == (client, server):
                    return own
        except (psutil.Error, OSError):
            continue  # it ended meanwhile, or is closed to us
    return None


LOOKUPS: Final[tuple[Lookup, ...]] = (ask_kernel, read_tables, search_processes)
