"""Stand-in for Artifact Registry: the registry ``distribution`` as a child process.

It listens on a Unix socket in the home folder, which no other user can open.
"""

from __future__ import annotations

import http.client
import os
import secrets
import shutil
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

import yaml

from localgcp.home import open_private
from localgcp.home.servers import ChildServer, responds
from localgcp.system.root_directory import make_folder

#: The program's names: Debian's package docker-registry, and distribution's own releases.
PROGRAMS: Final = ("docker-registry", "registry")

_SOCKET: Final = "registry.sock"
_DATA: Final = "data"
#: Free bytes below which a disk counts as full.
_MIN_FREE: Final = 16 * 1024 * 1024
#: Maximum bytes of a Unix socket's path (macOS: 104 with the final NUL).
_MAX_PATH: Final = 103


def find_program() -> str | None:
    """Return the path of the registry program, or None if it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class RegistryConnection(http.client.HTTPConnection):
    """An HTTP connection to the registry's Unix socket, also with a very long path."""

    def __init__(self, folder: Path, timeout: float = 300.0) -> None:
        super().__init__("registry", timeout=timeout)
        self.folder = folder

    def connect(self) -> None:
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


class Registry(ChildServer):
    name = "container registry"
    role = "registry"

    def __init__(self, program: str, folder: Path, log: Path, notes: Path) -> None:
        super().__init__(log, notes)
        self.program, self.folder = program, folder
        self.cwd = folder  # keeps the path of the socket short
        self.env = {"PATH": os.defpath, "OTEL_TRACES_EXPORTER": "none"}

    def start(self) -> None:
        """Start the registry and wait for its first answer. Raises LocalCloudError."""
        make_folder(self.folder, 0o700)
        self._write_settings()
        (self.folder / _SOCKET).unlink(missing_ok=True)  # left by a killed registry
        self.run()

    def command(self) -> list[str]:
        return [self.program, "serve", "config.yml"]

    def answers(self) -> bool:
        return responds(RegistryConnection(self.folder, timeout=2), "/v2/")

    def is_full(self) -> bool:
        try:
            return shutil.disk_usage(self.folder / _DATA).free < _MIN_FREE
        except OSError:
            return False

    def stop(self) -> None:
        super().stop()
        with suppress(OSError):
            (self.folder / _SOCKET).unlink()

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
                "relativeurls": True,  # clients use another address
                "secret": secrets.token_hex(16),
            },
        }
        with open_private(self.folder / "config.yml", "w") as file:
            yaml.safe_dump(settings, file)
