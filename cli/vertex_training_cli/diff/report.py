"""A comparison as text for people and JSON for programs. Pure."""

from __future__ import annotations

import dataclasses
import json
from typing import Final

from vertex_training_cli.diff.comparing import Comparison
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.values import redact

#: Raised when a key changes its meaning or goes away; new keys may come at any time.
VERSION: Final = 1
#: Stands for a side that has no such field.
ABSENT: Final = "(none)"


def as_text(found: Comparison) -> str:
    """Lines like ``buckets.data.keepNoncurrentDays: 7 -> 30``, settings first."""
    if found.same:
        return f"{found.one} and {found.other} are the same, but for their names.\n"
    lines = [f"{found.one} -> {found.other}", ""]
    if found.settings:
        lines += ["settings:", *(_line(field) for field in found.settings), ""]
    for job in found.jobs:
        if job.only_in:
            lines += [f"job {job.name}: only in {job.only_in}", ""]
        else:
            lines += [f"job {job.name}:", *(_line(field) for field in job.fields), ""]
    if found.same_jobs:
        lines += [f"the same request in both: {', '.join(found.same_jobs)}", ""]
    return "\n".join(lines)


def _line(field: FieldDifference) -> str:
    old, new = (ABSENT if side is None else side for side in (field.old, field.new))
    return f"  {redact(field.path)}: {redact(old)} -> {redact(new)}"


def as_json(found: Comparison) -> str:
    """The comparison for programs; null stands for a side that does not have it."""
    content = {"version": VERSION, "same": found.same, **redact(dataclasses.asdict(found))}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
