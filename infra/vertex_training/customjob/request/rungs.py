"""Rungs of a job's ladder: overlays on the message of a job file. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Fields of a rung that are those of a machineSpec.
MACHINE: Final = ("machineType", "acceleratorType", "acceleratorCount")
#: Fields of a rung that are those of the scheduling.
SCHEDULING: Final = ("strategy", "maxWaitDuration")
#: Field of a rung and of a machineSpec.
RESERVATION, AFFINITY = "reservation", "reservationAffinity"


@dataclass(frozen=True, slots=True)
class RungOverrides:
    """Differences of a rung from the job file, by the names of a job file's fields."""

    fields: Mapping[str, Any]
    affinity: Mapping[str, Any] | None = None
    """The reservationAffinity of its reservation; None if it names none."""

    def __str__(self) -> str:
        """It in a few words: ``strategy SPOT, 1 x NVIDIA_L4``."""
        given, parts = self.fields, []
        if "strategy" in given:
            parts.append(f"strategy {given['strategy']}")
        if "maxWaitDuration" in given:
            parts.append(f"waits {given['maxWaitDuration']}")
        if "machineType" in given:
            parts.append(str(given["machineType"]))
        if "acceleratorType" in given or "acceleratorCount" in given:
            count = given.get("acceleratorCount", "")
            parts.append(f"{count} x {given.get('acceleratorType', 'accelerators')}".strip(" x"))
        if RESERVATION in given:
            parts.append(f"reservation {given[RESERVATION].rpartition('/')[2]}")
        return ", ".join(parts)

    def of(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The message of a CustomJob with the rung laid over it."""
        changed = copy.deepcopy(dict(message))
        spec = changed.get("jobSpec")
        if isinstance(spec, dict):
            self._lay_over_scheduling(spec)
            self._lay_over_machines([pool for pool in spec.get("workerPoolSpecs") or () if pool])
        return changed

    def _lay_over_scheduling(self, spec: dict[str, Any]) -> None:
        given = {key: self.fields[key] for key in SCHEDULING if key in self.fields}
        scheduling = dict(spec.get("scheduling") or {})
        if "strategy" in given or RESERVATION in self.fields:
            for key in SCHEDULING:
                scheduling.pop(key, None)
        scheduling |= given
        if scheduling:
            spec["scheduling"] = scheduling
        else:
            spec.pop("scheduling", None)

    def _lay_over_machines(self, pools: list[dict[str, Any]]) -> None:
        """The first pool and those of the same machine."""
        machines = [pool.get("machineSpec") for pool in pools]
        first = machines[:1]
        given = {key: self.fields[key] for key in MACHINE if key in self.fields}
        for pool, machine in zip(pools, machines, strict=True):
            if not isinstance(machine, dict) or _machine(machine) != _machine(first[0] or {}):
                continue
            kept = dict(machine)
            kept.pop(AFFINITY, None)
            if "machineType" in given:
                for key in MACHINE:
                    kept.pop(key, None)
            kept |= given
            if self.affinity is not None:
                kept[AFFINITY] = copy.deepcopy(dict(self.affinity))
            pool["machineSpec"] = kept


def _machine(machine: Mapping[str, Any]) -> list[Any]:
    return [machine.get(key) for key in MACHINE]
