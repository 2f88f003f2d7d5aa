"""A stack under neutral names, so that two stacks can be compared by what they are. Pure.

Names of resources carry the project and the stack. To compare jobs, both stacks are given the same
project, number and stack: each reference then means the same text in both, every rule still holds,
and what is left different is a difference. In what is shown, that text is the reference again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.settings.model import Section, Settings

#: The neutral names. No stack has this one; the project has the form of ids, and does not exist.
STACK: Final = "vtx"
PROJECT: Final = "vtx-neutral-project"
NUMBER: Final = "970097009700"
#: Stands for the id of a request.
REQUEST_ID: Final = "${job.requestId}"


def renamed(settings: Settings) -> Settings:
    """The stack under neutral names; its region is its own."""
    same = {"stack": STACK, "project": PROJECT, "project_number": NUMBER}
    return settings.model_copy(update=same)


def request(found: JobRequest, references: Mapping[str, Any]) -> dict[str, Any]:
    """A request as it is compared and shown: with references, and without its own id.

    ``references`` are those of the renamed stack.
    """
    texts = {
        text: _symbol(name, text)
        for name, text in references.items()
        # Only a text with a neutral name in it is sure to have come from a reference.
        if isinstance(text, str) and (PROJECT in text or NUMBER in text)
    }
    texts |= {found.request_id: REQUEST_ID, STACK: "${stack.name}"}
    longest_first = map(re.escape, sorted(texts, key=len, reverse=True))
    pattern = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(longest_first)})(?![a-z0-9])")
    return _replaced(found.message, lambda text: pattern.sub(lambda match: texts[match[0]], text))


def _symbol(name: str, text: str) -> str:
    """How a reference is shown: with its version where one name can stand for several things."""
    versioned = name.startswith(("images.", "packages."))
    return f"${{{name}}} ({text.rpartition('/')[2]})" if versioned else f"${{{name}}}"


def settings(own: Settings, other: Settings) -> dict[str, Any]:
    """The settings in a stack file, defaults included, without the stack's own names.

    A named part that the ``other`` stack does not have is one text, without its defaults. Jobs that
    it does not have are left out: they are compared as jobs.
    """
    content: dict[str, Any] = {}
    for field, info in type(own).model_fields.items():
        if field in ("stack", "project", "project_number"):
            continue
        value, beside = getattr(own, field), getattr(other, field)
        content[info.alias or field] = _dumped(field, value, beside)
    tokens = {own.project: "${stack.project}", own.project_number: "${stack.projectNumber}"}
    pattern = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, tokens))})(?![\w-])")
    return _replaced(content, lambda text: pattern.sub(lambda match: tokens[match[0]], text))


def _dumped(field: str, value: Any, beside: Any) -> Any:
    if isinstance(value, Section):
        return value.model_dump(mode="json", by_alias=True)
    if not isinstance(value, dict):
        return value
    written: dict[str, Any] = {}
    for key, part in value.items():
        if not isinstance(part, Section):
            written[key] = part
        elif key in beside:
            written[key] = part.model_dump(mode="json", by_alias=True)
        elif field not in ("jobs", "tuning"):
            given = part.model_dump(mode="json", by_alias=True, exclude_unset=True)
            written[key] = json.dumps(given, sort_keys=True)
    return written


def _replaced(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_replaced(key, change): _replaced(item, change) for key, item in value.items()}
    return [_replaced(item, change) for item in value] if isinstance(value, list) else value
