"""What is checked: every rule with its id, level, one line of documentation and source."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from vertex_training.customjob import rules


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """One rule, as it is shown."""

    id: str
    level: str
    summary: str
    source: str


def all_rules() -> list[RuleSummary]:
    """Every rule by its id."""
    found = [RuleSummary(r.id, r.level, r.summary, r.source) for r in rules.ALL]
    return sorted(found, key=lambda row: row.id)


def link(source: str) -> str | None:
    """Address of a rule's source if it is a page; None if it is a file of a package.

    >>> link("docs.cloud.google.com/x")
    'https://docs.cloud.google.com/x'
    """
    first = source.split()[0].rstrip(",;") if source.split() else ""
    if first.startswith(("https://", "http://")):
        return first
    host = first.partition("/")[0]
    is_page = "/" in first and host.endswith((".com", ".org", ".dev", ".io"))
    return f"https://{first}" if is_page else None


def as_text(rows: Sequence[RuleSummary]) -> Iterator[str]:
    """For people: the id and level, then the documentation and source below."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    for row in rows:
        yield f"{row.id} ({row.level})"
        yield from textwrap.wrap(
            row.summary, width, initial_indent="    ", subsequent_indent="    "
        )
        yield f"    {row.source}"
    yield f"{len(rows)} rules"


def as_json(rows: Sequence[RuleSummary]) -> str:
    """For programs."""
    table: list[dict[str, Any]] = [
        {
            "id": row.id,
            "level": row.level,
            "summary": row.summary,
            "source": row.source,
            "link": link(row.source),
        }
        for row in rows
    ]
    return json.dumps({"rules": table}, indent=2, ensure_ascii=False)
