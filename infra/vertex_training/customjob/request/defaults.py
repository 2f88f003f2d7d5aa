"""Fill in what a job file leaves out and the stack gives: ``jobDefaults`` of the stack file."""

from __future__ import annotations

from typing import Any

from vertex_training.customjob.kinds import CUSTOM_JOB, JobKind
from vertex_training.customjob.request import references
from vertex_training.customjob.rules.context import FileDefaults
from vertex_training.errors import UnknownReferenceError


def fill_in(
    message: dict[str, Any],
    defaults: FileDefaults,
    table: references.Table,
    kind: JobKind = CUSTOM_JOB,
) -> dict[str, str]:
    """Add what ``message`` lacks; field -> the text of the stack file that gave it.

    A default with an unknown reference is left out: it is a mistake of the stack file.
    """
    spec, filled = message.get(kind.spec), dict[str, str]()
    if not isinstance(spec, dict):
        return filled
    for path, text in defaults.fields.items():
        *outer, last = path
        inside: Any = spec
        for key in outer:
            inside = inside.get(key, {})
        if last in inside:
            continue
        try:
            value = references.resolve(text, table)
        except UnknownReferenceError:
            continue
        inside = spec
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = value
        filled[".".join(path)] = text
    own = message.get("labels", {})
    if missing := {key: value for key, value in defaults.labels.items() if key not in own}:
        message["labels"] = {**missing, **own}
        filled |= {f"labels.{key}": value for key, value in missing.items()}
    return filled
