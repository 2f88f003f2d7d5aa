"""``server.json``: the file in which commands find the running server."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from localgcp.home import Ports
from localgcp.system.processes import is_process_id

_MAX_PORT: Final = 65_535


@dataclass(frozen=True)
class ServerInfo:
    """Contents of ``server.json``."""

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
        """Read the file; None if it is missing or damaged (by a power failure, for example)."""
        try:
            document = json.loads(path.read_text())
            vertex, storage = document["vertex_port"], document["storage_port"]
            pid, registry = document["pid"], document.get("registry_port", 0)
            warnings = tuple(map(str, document.get("warnings", ())))
            info = cls(pid, vertex, storage, str(document["started"]), registry, warnings)
        except (FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            return None
        ports = all(type(port) is int and 0 <= port <= _MAX_PORT for port in info.ports)
        return info if ports and is_process_id(pid) else None

    def write(self, path: Path) -> None:
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n")
        partial.replace(path)

    @property
    def ports(self) -> Ports:
        """Ports of the services."""
        return Ports(self.vertex_port, self.storage_port, self.registry_port)
