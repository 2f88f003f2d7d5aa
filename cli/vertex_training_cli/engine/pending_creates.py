"""Pending creations: what a killed run began to create, as the state notes it.

The engine calls ``create`` again and keeps the note for ever. The second ``create`` of a
``CustomJob`` or a ``HyperparameterTuningJob`` adopts the job of the first, that of a
``ModelVersion`` its version, and that of an ``EndpointTraffic`` goes on where the first one died.
All other resources have explicit names, and a second one of the same name is refused. So after the
next ``up`` that ends well with the resource in the state, the note means nothing any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_training.catalog.resource_types import ENDPOINT_TRAFFIC


@dataclass(frozen=True)
class PendingCreates:
    """URNs of pending creations."""

    settled: tuple[str, ...]
    """Their resources are in the state now."""
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
    return PendingCreates(
        tuple(urn for urn in unique if urn in there),
        tuple(urn for urn in unique if urn not in there),
    )


def explanation(pending: PendingCreates, stack: str) -> str:
    """Why pending creations stay, and what to do."""
    names = ", ".join(urn.rpartition("::")[2] for urn in pending.open)
    told = (
        f"a killed run was about to create {names}, which this stack does not have now: it may "
        "exist all the same, so the note of it stays. Look (`vt jobs list --stack "
        f"{stack}`, `vt models list`), remove what is there, then: "
        f"pulumi refresh --stack {stack} --clear-pending-creates"
    )
    return f"{told}. {hint}" if (hint := traffic_hint(pending, stack)) else told


def traffic_hint(pending: PendingCreates, stack: str) -> str:
    """How to empty endpoints of traffic that no state has; empty without any.

    The state has the endpoint alone then: to delete it is refused as long as models are deployed.
    """
    found = [urn for urn in pending.open if f"{ENDPOINT_TRAFFIC}::" in urn]
    if not found:
        return ""
    return (
        f"A killed run was about to create {', '.join(urn.rpartition('::')[2] for urn in found)}: "
        "what it deployed is paid for, and while it is there its endpoint cannot be deleted. Run "
        "`vt up` with the endpoint in the stack file as it was, which goes on with it, and take it "
        f"out then. Or empty it: `vt endpoints list --stack {stack}` has its id, `gcloud ai "
        "endpoints describe ENDPOINT --region=REGION` its deployed models, and `gcloud ai "
        "endpoints undeploy-model ENDPOINT --deployed-model-id=ID --region=REGION` takes one away."
    )
