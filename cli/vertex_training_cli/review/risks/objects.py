"""Objects that the stack keeps in its buckets: what a plan adds, changes and removes, by folder.

A folder of the stack file is a resource for each file. A reviewer reads a line a folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.catalog.resource_types import OBJECT
from vertex_training.plan.objects import prefix_of
from vertex_training_cli.engine.plan import Plan, Step

#: The config of the stack file's section, as the engine shows it: JSON.
BUCKETS: Final = "vertex-training:buckets"
#: How the component for buckets names its resources.
PREFIX: Final = "storage-"
#: Objects of one folder from which on they are one line.
FEW: Final = 2


@dataclass(slots=True)
class FolderChange:
    """What changes of the objects below one prefix of a bucket."""

    name: str
    """``BUCKET/PREFIX``, by the bucket's key in the stack file."""
    added: list[str] = field(default_factory=list)
    """Names of resources."""
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def counts(self) -> str:
        """``3 added, 1 changed, 2 removed``; what there is none of is left out."""
        lists = {"added": self.added, "changed": self.changed, "removed": self.removed}
        return ", ".join(f"{len(names)} {word}" for word, names in lists.items() if names)

    @property
    def names(self) -> set[str]:
        """All of them."""
        return {*self.added, *self.changed, *self.removed}


def folder_changes(plan: Plan) -> tuple[FolderChange, ...]:
    """Folders of which several objects change, by name."""
    prefixes, found = _prefixes(plan), dict[str, FolderChange]()
    for step in plan.changed:
        if step.type == OBJECT and step.name.startswith(PREFIX):
            name = _folder(step.name.removeprefix(PREFIX), prefixes)
            _add(found.setdefault(name, FolderChange(name)), step)
    return tuple(found[name] for name in sorted(found) if len(found[name].names) >= FEW)


def _add(folder: FolderChange, step: Step) -> None:
    lists = {"create": folder.added, "delete": folder.removed}
    lists.get(step.op, folder.changed).append(step.name)


def _folder(name: str, prefixes: list[str]) -> str:
    """The folder of the stack file that an object is of; one that was removed is guessed."""
    known = next((prefix for prefix in prefixes if name.startswith(f"{prefix}/")), "")
    bucket, _, path = name.partition("/")
    return known or (f"{bucket}/{path.partition('/')[0]}" if "/" in path else bucket)


def _prefixes(plan: Plan) -> list[str]:
    """``BUCKET/PREFIX`` of what the stack file keeps, the longest first."""
    try:
        buckets: Any = json.loads(plan.config.get(BUCKETS) or "{}")
    except json.JSONDecodeError:
        return []
    found = [
        f"{key}/{prefix_of(str(name))}".rstrip("/")
        for key, bucket in (buckets.items() if isinstance(buckets, Mapping) else ())
        for name in (bucket.get("objects") or () if isinstance(bucket, Mapping) else ())
    ]
    return sorted(found, key=len, reverse=True)
