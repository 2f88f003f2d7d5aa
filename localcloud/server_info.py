"""``server.json``: how commands find the server that runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class ServerInfo:
    """Contents of ``server.json``."""

    pid: int
    vertex_port: int
    storage_port: int
    started: str

    @classmethod
    def read(cls, path: Path) -> ServerInfo | None:
        """The file, or None if it is missing or broken (a machine that lost power)."""
        try:
            found = json.loads(path.read_text())
            numbers = [found["pid"], found["vertex_port"], found["storage_port"]]
            return cls(*map(int, numbers), started=str(found["started"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def write(self, path: Path) -> None:
        partial = path.with_suffix(".tmp")
        partial.write_text(json.dumps(asdict(self), indent=2) + "\n")
        partial.replace(path)

    @property
    def ports(self) -> tuple[int, int]:
        """(Vertex, storage)"""
        return self.vertex_port, self.storage_port
