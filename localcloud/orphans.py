"""Plugins of a `pulumi` that was killed: they outlive it, and would never end by themselves.

A process is ours if its environment names this VT_LOCAL_HOME; a plugin of ours is an orphan if its
parent is not ours (init or another reaper took it over) or is such an orphan itself. Other systems
than Linux do not show a process's environment: there, nothing is found.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from localcloud.home import Home
from localcloud.processes import start_time

_PLUGINS = (b"pulumi.dynamic", b"pulumi-resource-", b"localcloud.gcp", b"language_host")
_GRACE_SECONDS = 3.0


def end_orphans(home: Home) -> list[int]:
    """End the orphaned plugins of this home; returns their process ids."""
    found = _orphans(home)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in found:
            if start_time(pid) is not None:
                _signal(pid, number)
        deadline = time.monotonic() + _GRACE_SECONDS
        while any(start_time(pid) for pid in found) and time.monotonic() < deadline:
            time.sleep(0.02)
    return found


def _orphans(home: Home) -> list[int]:
    variable = f"VT_LOCAL_HOME={home.root}".encode()
    ours: dict[int, tuple[int, bytes]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if variable in (folder / "environ").read_bytes().split(b"\0"):
                status = (folder / "status").read_text()
                parent = int(status.partition("PPid:\t")[2].partition("\n")[0])
                ours[int(folder.name)] = parent, (folder / "cmdline").read_bytes()
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue  # it ended, or belongs to another user

    def orphan(pid: int) -> bool:
        parent, command = ours[pid]
        is_plugin = any(plugin in command for plugin in _PLUGINS)
        return is_plugin and (parent not in ours or orphan(parent))

    return sorted(pid for pid in ours if orphan(pid))


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
