"""Locks of the state backend: a dead one is cleared, a live one is respected.

With a file backend `pulumi` writes `locks/organization/PROJECT/STACK/UUID.json` and removes it at
its end. After a SIGKILL it stays, and every later run refuses to start.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vt.local import processes
from vt.local.errors import LocalError
from vt.local.home import Home
from vt.local.orphans import end_orphans


@dataclass(frozen=True)
class StackLock:
    """One lock file."""

    path: Path
    project: str
    stack: str
    pid: int
    host: str

    @property
    def alive(self) -> bool:
        """Is its holder alive? On another host that cannot be known, so: yes.

        Its process id may be another program's by now, at the latest after a restart.
        """
        return not self.here or processes.program(self.pid) == "pulumi"

    @property
    def here(self) -> bool:
        return self.host == socket.gethostname()

    def refusal(self) -> LocalError:
        hint = "wait for it to end."
        if not self.here:
            cancel = f"vt local shell -c 'pulumi cancel --yes -s {self.stack}'"
            hint = f"wait for it to end; if {self.host} is gone: {cancel}."
        return LocalError(
            f"stack {self.stack} is in use: pulumi runs as process {self.pid} on {self.host}.", hint
        )


def find(home: Home) -> list[StackLock]:
    """All locks of all stacks."""
    found: list[StackLock] = []
    folder = home.pulumi / ".pulumi" / "locks"
    for path in sorted(folder.glob("organization/*/*/*.json")):
        try:
            data = json.loads(path.read_text())
        except FileNotFoundError:  # released meanwhile
            continue
        except ValueError:  # a crash while it was written
            data = {}
        found.append(
            StackLock(
                path,
                path.parent.parent.name,
                path.parent.name,
                int(data.get("pid", 0)),
                data.get("hostname", socket.gethostname()),
            )
        )
    return found


def clear_dead(home: Home, stack: str, env: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Run `pulumi cancel` if the stack's lock belongs to a process that is gone.

    Raises LocalError if a live process holds it.
    """
    locks = [lock for lock in find(home) if lock.stack == stack]
    for lock in locks:
        if lock.alive:
            raise lock.refusal()
    if locks:
        say(f"stack {stack} is locked by process {locks[0].pid}, which is gone: pulumi cancel")
        end_orphans(home)  # else a plugin of the killed run could go on beside the next one
        name = f"organization/{locks[0].project}/{stack}"
        command = ["pulumi", "cancel", "--yes", "--stack", name]
        done = subprocess.run(
            command, cwd=home.repo, env=dict(env), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LocalError(f"pulumi cancel failed: {done.stderr.strip()}")
