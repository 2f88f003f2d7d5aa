"""Whether a caller is a job."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from localgcp.access import gate, guests


def test_owner_of_connection_is_looked_up_again_when_replicas_change(monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    looks: list[object] = []
    holder = guests.holder
    monkeypatch.setattr(guests, "holder", lambda *ends: (looks.append(ends), holder(*ends))[1])
    monkeypatch.setitem(gate._OPEN, "c7", accepted)
    context: Any = SimpleNamespace(invocation_metadata=lambda: (), peer=lambda: "unix:c7")
    with client, accepted:
        assert [gate.guest_behind(context) for _ in range(3)] == [None] * 3
        assert len(looks) == 1
        with guests.replica(os.getpid(), "a@b"):
            assert [gate.guest_behind(context) for _ in range(3)] == [guests.Guest("a@b")] * 3
            assert len(looks) == 2
        assert gate.guest_behind(context) is None


#: Gives a socket to a program below it, and has it no more.
ABOVE = """\
import os, subprocess, sys
below = subprocess.Popen(["sleep", "600"], pass_fds=[int(sys.argv[1])])
os.close(int(sys.argv[1]))
print(flush=True)
sys.stdin.read()
below.kill()
"""


def test_a_connection_is_of_the_replica_whose_process_or_descendant_holds_it() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", ABOVE, str(client.fileno())],
            pass_fds=[client.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as above,
        subprocess.Popen(["sleep", "600"]) as other,
    ):  # fmt: skip
        assert above.stdout is not None
        above.stdout.readline()
        ends = client.getsockname(), server.getsockname()
        begun = guests.changes()
        with guests.replica(1 << 22, "gone@x"), guests.replica(other.pid, "other@x"):
            assert guests.holder(*ends) is None
            assert not guests.holds(*ends)
            with guests.replica(os.getpid()):
                assert guests.holder(*ends) == guests.Guest("")
                assert guests.holds(*ends)
                assert not guests.holds(ends[0], ends[0])
                assert not guests.holds(ends[1], ends[0])
            with guests.replica(above.pid, "above@x"):
                assert guests.holder(*ends) == guests.Guest("above@x")
            assert guests.changes() == begun + 6
            assert not guests.holds(*ends)
        assert guests.changes() == begun + 8
        other.kill()
