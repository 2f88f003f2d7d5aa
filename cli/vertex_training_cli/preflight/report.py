"""The answers as text, as Markdown and as JSON. Pure.

What stands against a deployment comes first; what is in order is counted in text, and folded in
Markdown.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from vertex_training_cli.engine.values import redact
from vertex_training_cli.preflight.answers import Answer, Preflight, Verdict
from vertex_training_cli.review.escaping import code, visible

#: Raised when a key changes its meaning or goes away; new keys may come at any time.
VERSION: Final = 1
#: In the order in which they are shown.
HEADINGS: Final[Mapping[Verdict, str]] = {
    Verdict.REFUSED: "Would be refused",
    Verdict.WARNING: "Would pass, and is probably not meant",
    Verdict.UNKNOWN: "Could not be asked",
}
COLUMNS: Final = ("subject", "asked", "answer", "a deployment would meet", "what mends it")


def text(found: Preflight) -> str:
    """For a terminal: each answer that is not in order, with what mends it; the summary."""
    lines = list[str]()
    for verdict, heading in HEADINGS.items():
        if answers := found.of(verdict):
            lines += [f"{heading}:", *(line for each in answers for line in _lines(each)), ""]
    return "\n".join([*lines, found.summary, ""])


def _lines(answer: Answer) -> list[str]:
    shown = {
        "": f"{answer.subject}: {answer.asked}: {answer.answer}",
        "meets": answer.meets,
        "mend": answer.mend,
        "missing": answer.permission,
    }
    return [
        f"  {visible(redact(value))}" if not key else f"    {key}: {visible(redact(value))}"
        for key, value in shown.items()
        if value
    ]


def markdown(found: Preflight) -> str:
    """For a summary or a comment."""
    parts = [f"## Preflight of stack {code(found.stack)}", "", f"**{found.summary}**", ""]
    for verdict, heading in HEADINGS.items():
        if answers := found.of(verdict):
            parts += [f"### {heading}", "", *_table(answers), ""]
    if fine := found.of(Verdict.OK):
        parts += [f"<details><summary>In order: {len(fine)}</summary>", "", *_table(fine), ""]
        parts += ["</details>", ""]
    caller = f" as {code(found.caller)}" if found.caller else ""
    parts += [f"<sub>project {code(found.project)}{caller}; {found.calls} calls</sub>", ""]
    return "\n".join(parts)


def _table(answers: Sequence[Answer]) -> list[str]:
    rows = [(a.subject, a.asked, a.answer, a.meets, a.mend or a.permission) for a in answers]
    used = [n for n in range(len(COLUMNS)) if any(row[n] for row in rows)]
    lines = [tuple(COLUMNS[n] for n in used), tuple("---" for _ in used)]
    lines += [tuple(_cell(row[n]) for n in used) for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(value: str) -> str:
    return code(redact(value), len(value)).replace("|", "\\|") if value else ""


def as_json(found: Preflight) -> str:
    """For programs."""
    document = {"version": VERSION, "summary": found.summary, **dataclasses.asdict(found)}
    return json.dumps(redact(document), indent=2) + "\n"


WRITERS: Final[Mapping[str, Callable[[Preflight], str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}
