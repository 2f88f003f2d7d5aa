"""The role of this replica, read from CLUSTER_SPEC: primary, worker or parameter server."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Final

#: Worker pool -> role.
ROLES: Final = {"workerpool0": "primary", "workerpool1": "worker", "workerpool2": "server"}


@dataclass(frozen=True)
class Replica:
    """Role of a replica, its index in the role, and the addresses of the servers."""

    role: str
    index: int
    servers: tuple[str, ...]

    @property
    def port(self) -> int:
        """Return the port of this replica, which must be a server."""
        return int(self.servers[self.index].rsplit(":", 1)[1])


def this_replica() -> Replica:
    """Return the replica of this process.

    Raises:
        SystemExit: the worker pool has no role here, or there is no parameter server.
    """
    spec = json.loads(os.environ["CLUSTER_SPEC"])
    role = ROLES.get(spec["task"]["type"])
    servers = tuple(spec["cluster"].get("workerpool2", []))
    if role is None or not servers:
        raise SystemExit(
            "worker pools must be a primary, workers, and parameter servers, in this order"
        )
    return Replica(role, int(spec["task"]["index"]), servers)
