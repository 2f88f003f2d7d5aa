"""``formerly`` with a name that nothing ever had: what is meant to be renamed is made anew."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training_cli.engine.plan import Diagnostic, Plan

#: Section of the stack file -> name of an entry's resource in the program.
RESOURCES: Final[Mapping[str, str]] = {
    "buckets": "storage-{}",
    "secrets": "secrets-{}",
    "serviceAccounts": "{}-account",
    "reservations": "capacity-{}",
    "jobs": "training-{}",
}


def unknown_first_names(plan: Plan) -> tuple[Diagnostic, ...]:
    """A warning for each. None of a stack that is all new: it has the names of its first day."""
    created = {step.name for step in plan.steps if step.op == "create"}
    if not any(step.old is not None for step in plan.steps if step.custom):
        return ()
    return tuple(
        Diagnostic(
            "warning",
            f"{section}.{key}: formerly: {former} names nothing that is deployed, so it is made "
            f"anew. Was it {key} already, or another name? Read what is destroyed below.",
        )
        for section, name in RESOURCES.items()
        for key, former in _given(plan, section)
        if name.format(former) in created
    )


def _given(plan: Plan, section: str) -> Iterator[tuple[str, str]]:
    """(key, ``formerly``) of the entries that have one."""
    try:
        entries: Any = json.loads(plan.config.get(f"vertex-training:{section}") or "{}")
    except json.JSONDecodeError:
        return
    for key, entry in entries.items() if isinstance(entries, Mapping) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("formerly"), str):
            yield str(key), entry["formerly"]
