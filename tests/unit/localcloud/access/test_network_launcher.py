"""What a process asks of Linux for a network of its own, and what it tells who started it."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from localgcp.access import network_launcher

NETWORK, USER_AND_NETWORK = 0x40000000, 0x50000000  # include/uapi/linux/sched.h


class System:
    """What was asked of the system; the network may need a user namespace."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_right: bool) -> None:
        self.has_right, self.asked = has_right, list[Any]()
        monkeypatch.setattr(network_launcher, "_unshare", self._unshare)
        monkeypatch.setattr(network_launcher.fcntl, "ioctl", self._ioctl)
        monkeypatch.setattr(Path, "write_text", lambda path, text: self.asked.append((path, text)))
        monkeypatch.setattr(os, "geteuid", lambda: 7)
        monkeypatch.setattr(os, "getegid", lambda: 8)

    def _unshare(self, flags: int) -> None:
        self.asked.append(flags)
        if flags == NETWORK and not self.has_right:
            raise PermissionError(1, "Operation not permitted")

    def _ioctl(self, _socket: socket.socket, request: int, given: bytes) -> None:
        self.asked.append((request, given))


#: SIOCSIFFLAGS with IFF_UP and IFF_RUNNING (include/uapi/linux/sockios.h and if.h).
UP = (0x8914, struct.pack("16sH14x", b"lo", 0x41))


def test_a_process_with_the_right_gets_a_network_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch, has_right=True)
    network_launcher.enter_network()
    assert system.asked == [NETWORK, UP]


def test_process_without_right_keeps_user_and_group(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch, has_right=False)
    network_launcher.enter_network()
    own = Path("/proc/self")
    ids = [(own / "setgroups", "deny"), (own / "uid_map", "7 7 1"), (own / "gid_map", "8 8 1")]
    assert system.asked == [NETWORK, USER_AND_NETWORK, *ids, UP]


@pytest.mark.parametrize(
    ("status", "number", "error"),
    [(0, 1, None), (-1, 1, PermissionError(1, "Operation not permitted")),
     (-1, 22, OSError(22, "Invalid argument"))],
)  # fmt: skip
def test_what_the_system_answers_is_an_error_of_its_own_kind(
    monkeypatch: pytest.MonkeyPatch, status: int, number: int, error: OSError | None
) -> None:
    asked: list[Any] = []

    def library(name: None, *, use_errno: bool = False) -> Any:
        assert (name, use_errno) == (None, True)
        return SimpleNamespace(unshare=lambda flags: asked.append(flags) or status)

    monkeypatch.setattr(network_launcher.ctypes, "CDLL", library)
    monkeypatch.setattr(network_launcher.ctypes, "get_errno", lambda: number)
    found: OSError | None = None
    try:
        network_launcher._unshare(NETWORK)
    except OSError as raised:
        found = raised
    assert asked == [NETWORK]
    assert (type(found), str(found)) == (type(error), str(error))


@pytest.mark.parametrize("error", [OSError("no room"), AttributeError("no room")])
def test_missing_network_is_reported(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def enter_network() -> NoReturn:
        raise error

    ours, theirs = socket.socketpair()
    argv = ["network_launcher.py", str(theirs.detach()), "/bin/program"]
    monkeypatch.setattr(network_launcher.sys, "argv", argv)
    monkeypatch.setattr(network_launcher, "enter_network", enter_network)
    assert network_launcher.main() == 1
    with ours:
        assert ours.recv(100) == b"nno room"
