"""Which replica this is, from CLUSTER_SPEC: primary, worker or parameter server."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass

ROLES = {"workerpool0": "primary", "workerpool1": "worker", "workerpool2": "server"}


@dataclass(frozen=True)
class Place:
    """A replica's role, its number among those of the role, and where the servers are."""

    role: str
    index: int
    servers: tuple[str, ...]

    @property
    def port(self) -> int:
        """Port of this replica, if it is a server."""
        return int(self.servers[self.index].rsplit(":", 1)[1])


def here() -> Place:
    """This replica's place.

    Raises:
        SystemExit: there is no such role, or no parameter server.
    """
    spec = json.loads(os.environ["CLUSTER_SPEC"])
    role = ROLES.get(spec["task"]["type"])
    servers = tuple(spec["cluster"].get("workerpool2", []))
    if role is None or not servers:
        raise SystemExit("needs a primary, workers, and parameter servers as the third worker pool")
    return Place(role, int(spec["task"]["index"]), servers)
