"""Ports of servers, servers as child processes, and ``server.json`` of the local cloud."""

from __future__ import annotations

import http.client
import json
import secrets
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

from localgcp.errors import LocalCloudError
from localgcp.home import Ports
from localgcp.home.layout import PRIVATE_UMASK, open_private
from localgcp.system import processes
from localgcp.system.processes import is_process_id

#: Replicas use ports from 29500; the system uses ports from 32768 for outgoing connections.
_PORTS: Final = range(20_000, 29_000)


def listen(wanted: int, service: str) -> socket.socket:
    """Listen at the port ``wanted`` or at another free port. Raises LocalCloudError."""
    chosen = (secrets.choice(_PORTS) for _ in range(20))
    for port in (*((wanted,) if wanted else ()), *chosen, 0):
        try:
            return socket.create_server(("127.0.0.1", port))
        except OSError:
            if port == wanted:
                text = "is in use by another program; choosing another port"
                print(f"port {port} of {service} {text}")
    raise LocalCloudError(f"127.0.0.1 has no free port for {service}.")


def choose_port(wanted: int, service: str) -> int:
    """Return a port that ``listen`` chooses, for a server that opens the port immediately."""
    with listen(wanted, service) as listener:
        return listener.getsockname()[1]


def responds(connection: http.client.HTTPConnection, path: str) -> bool:
    """Return whether a server answers a GET request with 200; close the connection."""
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class ChildServer:
    """One server process, which writes to the file ``log``; ``notes`` is the folder of records."""

    #: Name of the server in errors and records.
    name = role = "server"
    #: Working folder and variables of the server; None for those of this process.
    cwd: Path | None = None
    env: Mapping[str, str] | None = None

    def __init__(self, log: Path, notes: Path) -> None:
        self.log, self.notes = log, notes
        self._process: subprocess.Popen[bytes] | None = None
        self._child: processes.ChildProcess | None = None

    def command(self) -> list[str]:
        """Return the server's command line."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Return whether the server answers a request."""
        raise NotImplementedError

    def launch(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the process in a new session."""
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
        """Start the process and wait for the first answer. Raises LocalCloudError."""
        with open_private(self.log, "ab") as log:
            self._process = self.launch(log)
        self._child = processes.register_child(self.notes, self._process.pid, self.role)
        processes.wait_until(lambda: self.answers() or not self.alive(), 15.0)
        if not self.alive() or not self.answers():
            self.stop()
            raise LocalCloudError(f"the {self.name} did not start.", f"see {self.log}.")

    def alive(self) -> bool:
        """Return whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """End the process, if it runs."""
        if self._process is None or self._child is None:
            return
        self._child.end(5.0)
        self._process.wait()
        processes.unregister_child(self.notes, self._child)
        self._process = None


@dataclass(frozen=True)
class ServerInfo:
    """The content of ``server.json``, with which commands find the running server."""

    pid: int
    vertex_port: int
    storage_port: int
    started: str
    registry_port: int = 0
    """Port of the container registry; 0 if this machine has no registry."""
    warnings: tuple[str, ...] = ()
    """Warnings about missing access control on this system, which commands print."""

    @classmethod
    def read(cls, path: Path) -> ServerInfo | None:
        """Return the file's content, or None for a missing or damaged file."""
        try:
            document = json.loads(path.read_text())
            vertex, storage = document["vertex_port"], document["storage_port"]
            pid, registry = document["pid"], document.get("registry_port", 0)
            warnings = tuple(map(str, document.get("warnings", ())))
            info = cls(pid, vertex, storage, str(document["started"]), registry, warnings)
        except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            return None
        ports = all(type(port) is int and 0 <= port <= 65_535 for port in info.ports)
        return info if ports and is_process_id(pid) else None

    def write(self, path: Path) -> None:
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n")
        partial.replace(path)

    @property
    def ports(self) -> Ports:
        """Return the ports of the services."""
        return Ports(self.vertex_port, self.storage_port, self.registry_port)
