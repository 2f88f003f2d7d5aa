"""Processes of jobs that run as another user: those of a container whose image has a USER.

A job may call the services of its local cloud whoever it runs as. Its user alone does not show it,
since another person of this machine may have the same number: the process that holds the connection
must descend from a replica that runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from localgcp.access.owners import Address, plain_address


@dataclass(frozen=True)
class Guest:
    """A job as a caller."""

    account: str
    """Address of its service account; empty if it runs as Google's own."""


_LOCK: Final = threading.Lock()
_REPLICAS: Final[dict[int, Guest]] = {}
_changes = 0


@contextmanager
def replica(pid: int, account: str = "") -> Iterator[None]:
    """While this lasts, the process and its descendants are a job's, which runs as ``account``."""
    global _changes
    with _LOCK:
        _REPLICAS[pid] = Guest(account)
        _changes += 1
    try:
        yield
    finally:
        with _LOCK:
            _REPLICAS.pop(pid, None)
            _changes += 1


def changes() -> int:
    """How often a replica began or ended: whose a connection is may change with each."""
    return _changes


def holds(client: Address, server: Address) -> bool:
    """Whether a process of a job has the client's end of this connection."""
    return holder(client, server) is not None


def holder(client: Address, server: Address) -> Guest | None:
    """The job whose process has the client's end of this connection."""
    with _LOCK:
        replicas = dict(_REPLICAS)
    if not replicas:
        return None
    import psutil  # 30 ms, and most servers run no container

    for pid, guest in replicas.items():
        try:
            family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
        except psutil.Error:
            continue
        if any(_has(process, client, server) for process in family):
            return guest
    return None


def _has(process: object, client: Address, server: Address) -> bool:
    import psutil

    assert isinstance(process, psutil.Process)
    try:
        connections = process.net_connections("tcp")
    except (psutil.Error, OSError):
        return False
    return any(
        each.raddr and (plain_address(each.laddr), plain_address(each.raddr)) == (client, server)
        for each in connections
    )
