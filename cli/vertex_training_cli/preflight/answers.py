"""Answers of a preflight, written as text, Markdown and JSON."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vertex_training_cli.engine.values import redact
from vertex_training_cli.review.parts import code, visible


class Verdict(StrEnum):
    """Effect of a check's result on a deployment."""

    OK = "ok"
    REFUSED = "refused"
    """A deployment would fail."""
    WARNING = "warning"
    """A deployment would succeed, but its result is probably not intended."""
    UNKNOWN = "unknown"
    """The check was not possible."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A check of one subject, and its result."""

    subject: str
    """Name of the checked resource in Google Cloud, or another subject."""
    asked: str
    """The check in a few words, such as ``permissions of the deploying account``."""
    answer: str
    verdict: Verdict = Verdict.OK
    meets: str = ""
    """Effect on a deployment; empty without an effect."""
    mend: str = ""
    """The command or step that fixes the problem."""
    permission: str = ""
    """The permission that the check needs and the caller lacks."""
    part: str = ""

    def refused(self, answer: str, meets: str, mend: str) -> Answer:
        """Return an answer: a deployment would fail."""
        return Answer(self.subject, self.asked, answer, Verdict.REFUSED, meets, mend)

    def warning(self, answer: str, meets: str, mend: str) -> Answer:
        """Return an answer: a deployment would have a result that is probably not intended."""
        return Answer(self.subject, self.asked, answer, Verdict.WARNING, meets, mend)

    def ok(self, answer: str) -> Answer:
        """Return an answer: the check passed."""
        return Answer(self.subject, self.asked, answer)

    def unknown(self, answer: str, permission: str = "", mend: str = "") -> Answer:
        """Return an answer: the check was not possible."""
        return Answer(
            self.subject, self.asked, answer, Verdict.UNKNOWN, mend=mend, permission=permission
        )


def question(subject: str, asked: str) -> Answer:
    """Return a check without a result. Its methods return answers."""
    return Answer(subject, asked, "")


@dataclass(frozen=True, slots=True)
class Preflight:
    """All answers about one stack."""

    stack: str
    project: str
    caller: str
    answers: tuple[Answer, ...]
    calls: int = 0

    def of(self, verdict: Verdict) -> list[Answer]:
        """Return the answers with this verdict."""
        return [answer for answer in self.answers if answer.verdict is verdict]

    @property
    def summary(self) -> str:
        """Return the number of checks by result, like ``41 checks, 0 refused, 3 unknown``."""
        counts = Counter(answer.verdict for answer in self.answers)
        text = f"{counts.total()} checks, {counts[Verdict.REFUSED]} refused"
        warnings = counts[Verdict.WARNING]
        text += f", {warnings} with a warning" if warnings else ""
        return f"{text}, {counts[Verdict.UNKNOWN]} unknown"


#: Version of the JSON format. It increases when a key changes its meaning or is removed.
VERSION: Final = 1
#: Headings in the order of a report.
HEADINGS: Final[Mapping[Verdict, str]] = {
    Verdict.REFUSED: "Refused by a deployment",
    Verdict.WARNING: "Warnings",
    Verdict.UNKNOWN: "Not checked",
}
COLUMNS: Final = ("subject", "check", "result", "effect on a deployment", "fix")


def text(preflight: Preflight) -> str:
    """Return text for a terminal: each problem with its fix, then the summary."""
    lines = list[str]()
    for verdict, heading in HEADINGS.items():
        if answers := preflight.of(verdict):
            lines += [f"{heading}:", *(line for answer in answers for line in _lines(answer)), ""]
    return "\n".join([*lines, preflight.summary, ""])


def _lines(answer: Answer) -> list[str]:
    shown = {
        "": f"{answer.subject}: {answer.asked}: {answer.answer}",
        "effect": answer.meets,
        "fix": answer.mend,
        "missing permission": answer.permission,
    }
    return [
        f"  {visible(redact(value))}" if not key else f"    {key}: {visible(redact(value))}"
        for key, value in shown.items()
        if value
    ]


def markdown(preflight: Preflight) -> str:
    """Return Markdown for a job summary or a comment."""
    parts = [f"## Preflight of stack {code(preflight.stack)}", "", f"**{preflight.summary}**", ""]
    for verdict, heading in HEADINGS.items():
        if answers := preflight.of(verdict):
            parts += [f"### {heading}", "", *_table(answers), ""]
    if passed := preflight.of(Verdict.OK):
        parts += [f"<details><summary>Passed: {len(passed)}</summary>", "", *_table(passed), ""]
        parts += ["</details>", ""]
    caller = f" as {code(preflight.caller)}" if preflight.caller else ""
    parts += [f"<sub>project {code(preflight.project)}{caller}; {preflight.calls} calls</sub>", ""]
    return "\n".join(parts)


def _table(answers: Sequence[Answer]) -> list[str]:
    rows = [(a.subject, a.asked, a.answer, a.meets, a.mend or a.permission) for a in answers]
    used = [n for n in range(len(COLUMNS)) if any(row[n] for row in rows)]
    lines = [tuple(COLUMNS[n] for n in used), tuple("---" for _ in used)]
    lines += [tuple(_cell(row[n]) for n in used) for row in rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(value: str) -> str:
    return code(redact(value), len(value)).replace("|", "\\|") if value else ""


def as_json(preflight: Preflight) -> str:
    """Return JSON for programs."""
    document = {"version": VERSION, "summary": preflight.summary, **dataclasses.asdict(preflight)}
    return json.dumps(redact(document), indent=2) + "\n"


WRITERS: Final[Mapping[str, Callable[[Preflight], str]]] = {
    "text": text,
    "markdown": markdown,
    "json": as_json,
}
