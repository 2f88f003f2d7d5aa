"""Pending creations: what a killed run began to create, as the state notes it.

The engine calls ``create`` again and keeps the note for ever. The second ``create`` of a
``CustomJob`` or a ``HyperparameterTuningJob`` adopts the job of the first, that of a
``ModelVersion`` its version, and that of an ``EndpointTraffic`` goes on where the first one died.
All other resources have explicit names, and a second one of the same name is refused. So after the
next ``up`` that ends well with the resource in the state, the note means nothing any more. That of
an ``EndpointTraffic`` means nothing without it either: ``EndpointCleanup`` empties the endpoint;
nor does that of a ``JobSchedule``, which makes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_training.catalog.resource_types import ENDPOINT_TRAFFIC, SCHEDULE

#: Types of which a creation that was killed left nothing that is not deleted otherwise.
_LEAVE_NOTHING = (f"{ENDPOINT_TRAFFIC}::", f"{SCHEDULE}::")


@dataclass(frozen=True)
class PendingCreates:
    """URNs of pending creations."""

    settled: tuple[str, ...]
    """Their resources are in the state now, or what they made has another resource to delete it."""
    targets: tuple[str, ...]
    """What a refresh that clears them reads: the state has it."""
    open: tuple[str, ...]
    """``up`` did not create them again: they may exist or not."""

    @property
    def clearable(self) -> bool:
        """Whether they can be cleared: the engine clears all or none, whatever is targeted."""
        return bool(self.settled) and not self.open


def find(deployment: Mapping[str, Any]) -> PendingCreates:
    """The pending creations in a stack's deployment, as ``pulumi stack export`` prints it."""
    resources = deployment.get("resources") or []
    there = {resource["urn"] for resource in resources if not resource.get("delete")}
    noted = [
        operation["resource"]["urn"]
        for operation in deployment.get("pending_operations") or []
        if operation.get("type") == "creating"
    ]
    unique = tuple(dict.fromkeys(noted))
    settled = tuple(
        urn for urn in unique if urn in there or any(type_ in urn for type_ in _LEAVE_NOTHING)
    )
    targets = tuple(urn for urn in settled if urn in there) or tuple(sorted(there)[:1])
    return PendingCreates(settled, targets, tuple(urn for urn in unique if urn not in settled))


def explanation(pending: PendingCreates, stack: str) -> str:
    """Why pending creations stay, and what to do."""
    names = ", ".join(urn.rpartition("::")[2] for urn in pending.open)
    return (
        f"a killed run was about to create {names}, which this stack does not have now: it may "
        "exist all the same, so the note of it stays. Look (`vt jobs list --stack "
        f"{stack}`, `vt models list`), remove what is there, then: "
        f"pulumi refresh --stack {stack} --clear-pending-creates"
    )
