"""``server.json``: how commands find the server that runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from localgcp.home import Ports


@dataclass(frozen=True)
class ServerInfo:
    """Contents of ``server.json``."""

    pid: int
    vertex_port: int
    storage_port: int
    started: str
    registry_port: int = 0
    """Port of the container registry; 0 where this machine has none."""
    warnings: tuple[str, ...] = ()
    """Who gets in here that would be kept out elsewhere; for commands to report."""

    @classmethod
    def read(cls, path: Path) -> ServerInfo | None:
        """The file, or None if it is missing or broken (a machine that lost power)."""
        try:
            found = json.loads(path.read_text())
            pid, vertex, storage = (
                int(found[name]) for name in ("pid", "vertex_port", "storage_port")
            )
            registry = int(found.get("registry_port", 0))
            warnings = tuple(map(str, found.get("warnings", ())))
            return cls(pid, vertex, storage, str(found["started"]), registry, warnings)
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def write(self, path: Path) -> None:
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n")
        partial.replace(path)

    @property
    def ports(self) -> Ports:
        """Where the services listen."""
        return Ports(self.vertex_port, self.storage_port, self.registry_port)
