"""One answer of a preflight, and all of them. Pure."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from vertex_training_cli.engine.values import redact
from vertex_training_cli.review.escaping import code, visible


class Verdict(StrEnum):
    """Meaning of an answer for a deployment."""

    OK = "ok"
    REFUSED = "refused"
    """A deployment would fail."""
    WARNING = "warning"
    """A deployment would pass, and something would not be as meant."""
    UNKNOWN = "unknown"
    """It could not be asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question about one subject, and its answer."""

    subject: str
    """A resource, as its service names it, or what else the question is about."""
    asked: str
    """The question in a few words."""
    answer: str
    """The answer in a few words."""
    verdict: Verdict = Verdict.OK
    meets: str = ""
    """Effect on a deployment; empty if there is none."""
    mend: str = ""
    """The command, or the step, that mends it."""
    permission: str = ""
    """The permission that was missing to ask."""
    part: str = ""
    """Part of the preflight that asked; see ``command.PARTS``."""

    def refused(self, answer: str, meets: str, mend: str) -> Answer:
        """Return an answer with which a deployment fails."""
        return Answer(self.subject, self.asked, answer, Verdict.REFUSED, meets, mend)

    def warning(self, answer: str, meets: str, mend: str) -> Answer:
        """Return an answer that is probably not intended."""
        return Answer(self.subject, self.asked, answer, Verdict.WARNING, meets, mend)

    def ok(self, answer: str) -> Answer:
        """Return an answer without a problem."""
        return Answer(self.subject, self.asked, answer)

    def unknown(self, answer: str, permission: str = "", mend: str = "") -> Answer:
        """Return the answer for a question that cannot be asked."""
        return Answer(
            self.subject, self.asked, answer, Verdict.UNKNOWN, mend=mend, permission=permission
        )


def question(subject: str, asked: str) -> Answer:
    """Return a question before it is answered: its methods make the answers."""
    return Answer(subject, asked, "")


@dataclass(frozen=True, slots=True)
class Preflight:
    """All answers about one stack."""

    stack: str
    project: str
    caller: str
    """In whose name it was asked."""
    answers: tuple[Answer, ...]
    calls: int = 0

    def of(self, verdict: Verdict) -> list[Answer]:
        """Return the answers with this verdict."""
        return [answer for answer in self.answers if answer.verdict is verdict]

    @property
    def summary(self) -> str:
        """``41 asked, 0 refused, 3 unknown``; warnings are told if there are any."""
        return summary(answer.verdict for answer in self.answers)


def summary(verdicts: Iterable[Verdict]) -> str:
    """Return the last line of a report.

    >>> summary([Verdict.OK, Verdict.REFUSED])
    '2 asked, 1 refused, 0 unknown'
    """
    counts = Counter(verdicts)
    summary_text = f"{counts.total()} asked, {counts[Verdict.REFUSED]} refused"
    warned = counts[Verdict.WARNING]
    summary_text += f", {warned} warned" if warned else ""
    return f"{summary_text}, {counts[Verdict.UNKNOWN]} unknown"


#: Raised when a key changes its meaning or goes away; new keys may come at any time.
VERSION: Final = 1
#: In the order in which they are shown.
HEADINGS: Final[Mapping[Verdict, str]] = {
    Verdict.REFUSED: "Would be refused",
    Verdict.WARNING: "Would pass, and is probably not meant",
    Verdict.UNKNOWN: "Could not be asked",
}
COLUMNS: Final = ("subject", "asked", "answer", "a deployment would meet", "what mends it")


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
        "meets": answer.meets,
        "mend": answer.mend,
        "missing": answer.permission,
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
    if fine := preflight.of(Verdict.OK):
        parts += [f"<details><summary>In order: {len(fine)}</summary>", "", *_table(fine), ""]
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
