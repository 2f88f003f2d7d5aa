"""Whether a caller is a job."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from localgcp.access import callers, gate


def test_owner_of_connection_is_looked_up_again_when_replicas_change(monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    looks: list[object] = []
    holder = callers.find_guest
    monkeypatch.setattr(callers, "find_guest", lambda *ends: (looks.append(ends), holder(*ends))[1])
    monkeypatch.setitem(gate._OPEN, "c7", accepted)
    context: Any = SimpleNamespace(invocation_metadata=lambda: (), peer=lambda: "unix:c7")
    with client, accepted:
        assert [gate.guest_behind(context) for _ in range(3)] == [None] * 3
        assert len(looks) == 1
        with callers.job_process(os.getpid(), "a@b"):
            assert [gate.guest_behind(context) for _ in range(3)] == [callers.Guest("a@b")] * 3
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
        begun = callers.guest_changes()
        with callers.job_process(1 << 22, "gone@x"), callers.job_process(other.pid, "other@x"):
            assert callers.find_guest(*ends) is None
            assert callers.find_guest(*ends) is None
            with callers.job_process(os.getpid()):
                assert callers.find_guest(*ends) == callers.Guest("")
                assert callers.find_guest(*ends) is not None
                assert callers.find_guest(ends[0], ends[0]) is None
                assert callers.find_guest(ends[1], ends[0]) is None
            with callers.job_process(above.pid, "above@x"):
                assert callers.find_guest(*ends) == callers.Guest("above@x")
            assert callers.guest_changes() == begun + 6
            assert callers.find_guest(*ends) is None
        assert callers.guest_changes() == begun + 8
        other.kill()
