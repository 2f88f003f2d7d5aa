"""Ends plugins of a killed ``pulumi``: they outlive it and never end by themselves.

A process belongs to a home if its environment names that ``VT_LOCAL_HOME``. A plugin of a home is
orphaned if its parent does not belong to the home (init or another reaper adopted it), or if its
parent is an orphaned plugin itself. Processes whose environment is not readable, such as those of
other users, are skipped.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Final

from localgcp.home import Home
from localgcp.system.processes import start_time

if TYPE_CHECKING:
    import psutil

_PLUGINS: Final = (
    "pulumi.dynamic",
    "pulumi-resource-",
    "localgcp.gcp",
    "language_host",
)
_GRACE_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.02


def end_orphaned_plugins(home: Home) -> list[int]:
    """End the orphaned plugins of this home. Returns their process ids."""
    import psutil

    plugins = _orphaned_plugins(home)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for plugin in plugins:
            try:
                plugin.send_signal(number)
            except psutil.NoSuchProcess:
                continue
        deadline = time.monotonic() + _GRACE_SECONDS
        while any(start_time(each.pid) for each in plugins) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    return [plugin.pid for plugin in plugins]


def _orphaned_plugins(home: Home) -> list[psutil.Process]:
    processes = _processes_of(home)

    def is_orphaned(pid: int) -> bool:
        _, parent, command = processes[pid]
        is_plugin = any(plugin in command for plugin in _PLUGINS)
        return is_plugin and (parent not in processes or is_orphaned(parent))

    return [processes[pid][0] for pid in sorted(processes) if is_orphaned(pid)]


def _processes_of(home: Home) -> dict[int, tuple[psutil.Process, int, str]]:
    """Each process of the home by its id, with its parent's id and its command line."""
    import psutil

    found: dict[int, tuple[psutil.Process, int, str]] = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get("VT_LOCAL_HOME") == str(home.root):
                found[process.pid] = process, process.ppid(), "\0".join(process.cmdline())
        except (psutil.Error, OSError):
            continue  # it ended meanwhile, or belongs to another user
    return found
