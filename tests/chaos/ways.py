"""The ways to kill a command, and the processes to kill."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from localgcp.home import Home
from tests.chaos.arena import Arena, kill, wait_for

#: GitHub's cancellation: SIGINT, 7.5 s, SIGTERM, 2.5 s, SIGKILL (docs.github.com/actions).
INTERRUPT_SECONDS, TERMINATE_SECONDS = 7.5, 2.5

Way = Callable[[Arena, subprocess.Popen[str]], None]


def provider_of(home: Home) -> int | None:
    """Return the process id of the dynamic provider of a cloud's engine, or None."""
    variable = f"VT_LOCAL_HOME={home.root}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"pulumi.dynamic" in (folder / "cmdline").read_bytes().split(b"\0") and (
                variable in (folder / "environ").read_bytes().split(b"\0")
            ):
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended while we looked
    return None


def kill_cli(arena: Arena, process: subprocess.Popen[str]) -> None:
    """Send SIGKILL to the CLI; its provider survives."""
    kill(process)
    process.wait(60)


def kill_provider(arena: Arena, process: subprocess.Popen[str]) -> None:
    """Send SIGKILL to the provider; the CLI reports it and ends."""
    pid = provider_of(arena.home)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)


def interrupt_twice(arena: Arena, process: subprocess.Popen[str]) -> None:
    """Send Ctrl-C, and again after the engine reported it."""
    kill(process, signal.SIGINT)
    wait_for(lambda: "ancel" in arena.said() or process.poll() is not None, "an answer to SIGINT")
    kill(process, signal.SIGINT)


def as_ci_cancels(arena: Arena, process: subprocess.Popen[str]) -> None:
    """End a command like a cancelled workflow step."""
    for number, seconds in (
        (signal.SIGINT, INTERRUPT_SECONDS),
        (signal.SIGTERM, TERMINATE_SECONDS),
    ):
        kill(process, number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
        return
    kill(process)
    process.wait(60)


WAYS: Final[dict[str, Way]] = {
    "kill CLI": kill_cli,
    "kill provider": kill_provider,
    "interrupt twice": interrupt_twice,
    "cancelled by CI": as_ci_cancels,
}


def answered(process: subprocess.Popen[str]) -> bool:
    """Return whether a stopped process has unread bytes on a connection."""
    fds = Path(f"/proc/{process.pid}/fd")
    inodes = set()
    for entry in fds.iterdir():
        target = os.readlink(entry)
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process.pid}/net/{name}").read_text().splitlines()[1:]:
            fields = line.split()
            state, queues, inode = fields[3], fields[4], fields[9]
            if state == "01" and inode in inodes and int(queues.partition(":")[2], 16):
                return True
    return False
