"""Runs another project's server program as a child process of the local cloud's server."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from localgcp.errors import LocalCloudError
from localgcp.home.layout import PRIVATE_UMASK, open_private
from localgcp.system import processes

_START_SECONDS: Final = 15.0
_STOP_SECONDS: Final = 5.0


class ChildServer:
    """One server process, which writes to ``log``; ``notes`` stores its record for the
    next server.
    """

    #: Name of the server in errors and records.
    name = role = "server"
    #: The server's working folder and variables; None to inherit those of this process.
    cwd: Path | None = None
    env: Mapping[str, str] | None = None

    def __init__(self, log: Path, notes: Path) -> None:
        self.log, self.notes = log, notes
        self._process: subprocess.Popen[bytes] | None = None
        self._child: processes.ChildProcess | None = None

    def command(self) -> list[str]:
        """Return the process's command line."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return whether the server answers a request."""
        raise NotImplementedError

    def launch(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the process in a session of its own."""
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
        """Start the process and wait for its first answer. Raises LocalCloudError after a time
        limit.
        """
        with open_private(self.log, "ab") as log:
            self._process = self.launch(log)
        self._child = processes.register_child(self.notes, self._process.pid, self.role)
        processes.wait_until(lambda: self.answers() or not self.alive(), _START_SECONDS)
        if not self.alive() or not self.answers():
            self.stop()
            raise LocalCloudError(f"the {self.name} did not start.", f"see {self.log}.")

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
