"""Artifact Registry on this machine: distribution, the reference registry, as a child process.

It listens on a Unix socket in the home, which no other user can open; clients use the port of
``localgcp.containers.front``. Its files are those of the home.
"""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

import yaml

from localgcp.errors import LocalCloudError
from localgcp.home import PRIVATE_UMASK, open_private
from localgcp.system import processes
from localgcp.system.folders import make_folder

#: The program's names: Debian's package docker-registry, and distribution's own releases.
PROGRAMS: Final = ("docker-registry", "registry")

_SOCKET: Final = "registry.sock"
_DATA: Final = "data"
#: Bytes below which a disk counts as full.
_MIN_FREE: Final = 16 * 1024 * 1024
_START_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.02
_TIMEOUT_SECONDS: Final = 300.0
#: The path of a Unix socket has 104 bytes at most (macOS), 108 on Linux, with a NUL at its end.
_MAX_PATH: Final = 103


def find_program() -> str | None:
    """Path of the registry's program, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class RegistryConnection(http.client.HTTPConnection):
    """A connection to the registry of a folder, whose path may be too long for a socket."""

    def __init__(self, folder: Path, timeout: float = _TIMEOUT_SECONDS) -> None:
        super().__init__("registry", timeout=timeout)
        self.folder = folder

    def connect(self) -> None:
        """Open the socket. Raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        path = self.folder / _SOCKET
        if len(os.fsencode(path)) <= _MAX_PATH:
            self.sock.connect(str(path))
            return
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.sock.connect(f"/proc/self/fd/{folder}/{_SOCKET}")
        finally:
            os.close(folder)


class Registry:
    """One registry process over ``folder``."""

    def __init__(self, program: str, folder: Path, log: Path, notes: Path) -> None:
        self.program, self.folder, self.log, self.notes = program, folder, log, notes
        self._process: subprocess.Popen[bytes] | None = None
        self._child: processes.ChildProcess | None = None

    def start(self) -> None:
        """Start, and return when it answers. Raises LocalCloudError if it does not."""
        make_folder(self.folder, 0o700)
        self._write_settings()
        (self.folder / _SOCKET).unlink(missing_ok=True)  # of a registry that was killed
        with open_private(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [self.program, "serve", "config.yml"],
                cwd=self.folder,  # the path of a socket is short
                env={"PATH": os.defpath, "OTEL_TRACES_EXPORTER": "none"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=PRIVATE_UMASK,
            )
        self._child = processes.register_child(self.notes, self._process.pid, "registry")
        deadline = time.monotonic() + _START_SECONDS
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise LocalCloudError("the container registry did not start.", f"see {self.log}.")
            time.sleep(_POLL_SECONDS)

    def answers(self) -> bool:
        """Does it answer?"""
        connection = RegistryConnection(self.folder, timeout=2)
        try:
            connection.request("GET", "/v2/")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def is_full(self) -> bool:
        """Whether its disk has no space for a layer."""
        try:
            return shutil.disk_usage(self.folder / _DATA).free < _MIN_FREE
        except OSError:
            return False

    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process. Repeatable."""
        if self._process is None or self._child is None:
            return
        self._child.end(5)
        self._process.wait()
        processes.unregister_child(self.notes, self._child)
        with suppress(OSError):
            (self.folder / _SOCKET).unlink()
        self._process = None

    def _write_settings(self) -> None:
        settings = {
            "version": 0.1,
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {
                "filesystem": {"rootdirectory": str(self.folder / _DATA)},
                "delete": {"enabled": True},
                "maintenance": {"uploadpurging": {"enabled": False}},
            },
            "http": {
                "net": "unix",
                "addr": _SOCKET,
                "relativeurls": True,  # clients reach it at another address
                "secret": secrets.token_hex(16),
            },
        }
        with open_private(self.folder / "config.yml", "w") as file:
            yaml.safe_dump(settings, file)
