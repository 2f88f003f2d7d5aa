"""Whether a caller is a job."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from localgcp.access import gate, guests

ROOT = Path(__file__).parents[4] / "localcloud"
PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
from localgcp.access import guests
before = "psutil" in sys.modules
print(before, guests.holds(("127.0.0.1", 1), ("127.0.0.1", 2)), "psutil" in sys.modules)
"""


def test_while_no_job_runs_nobody_is_one_and_no_process_is_looked_at() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "False"]


def test_whose_a_connection_is_is_looked_up_again_only_when_a_replica_begins_or_ends(
    monkeypatch,
) -> None:
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
