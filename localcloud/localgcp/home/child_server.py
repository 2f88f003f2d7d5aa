"""A server of another project as a child process of the local cloud's server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from localgcp.errors import LocalCloudError
from localgcp.home.layout import PRIVATE_UMASK, open_private
from localgcp.system import processes

_START_SECONDS: Final = 15.0
_STOP_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.02


class ChildServer:
    """One process, which writes to ``log``; ``notes`` has its record for the next server."""

    #: What errors and records call it.
    name = role = "server"
    #: Its folder and variables; None: those of this process.
    cwd: Path | None = None
    env: Mapping[str, str] | None = None

    def __init__(self, log: Path, notes: Path) -> None:
        self.log, self.notes = log, notes
        self._process: subprocess.Popen[bytes] | None = None
        self._child: processes.ChildProcess | None = None

    def command(self) -> list[str]:
        """Return its command line."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return whether it answers a request."""
        raise NotImplementedError

    def launch(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the process as the leader of a session."""
        return subprocess.Popen(
            self.command(),
            cwd=self.cwd,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=PRIVATE_UMASK,
        )

    def run(self) -> None:
        """Start the process, and return when it answers. Raises LocalCloudError if it does not."""
        with open_private(self.log, "ab") as log:
            self._process = self.launch(log)
        self._child = processes.register_child(self.notes, self._process.pid, self.role)
        deadline = time.monotonic() + _START_SECONDS
        while not self.answers():
            if not self.alive() or time.monotonic() > deadline:
                self.stop()
                raise LocalCloudError(f"the {self.name} did not start.", f"see {self.log}.")
            time.sleep(_POLL_SECONDS)

    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process. Repeatable."""
        if self._process is None or self._child is None:
            return
        self._child.end(_STOP_SECONDS)
        self._process.wait()
        processes.unregister_child(self.notes, self._child)
        self._process = None
