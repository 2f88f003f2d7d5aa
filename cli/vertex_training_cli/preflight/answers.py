"""One answer of a preflight, and all of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What an answer means for a deployment."""

    OK = "ok"
    REFUSED = "refused"
    """A deployment would fail."""
    WARNING = "warning"
    """A deployment would pass, and something would not be as meant."""
    UNKNOWN = "unknown"
    """It could not be asked."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was asked about one subject, and what came of it."""

    subject: str
    """A resource, as its service names it, or what else the question is about."""
    asked: str
    """What was asked, in a few words."""
    answer: str
    """What was answered, in a few words."""
    verdict: Verdict = Verdict.OK
    meets: str = ""
    """What a deployment would meet; empty if that is nothing."""
    mend: str = ""
    """The command, or the step, that mends it."""
    permission: str = ""
    """The permission that was missing to ask."""
    part: str = ""
    """Which part of the preflight asked; see ``parts``."""

    def refused(self, answer: str, meets: str, mend: str) -> Answer:
        """The same question with an answer at which a deployment fails."""
        return Answer(self.subject, self.asked, answer, Verdict.REFUSED, meets, mend)

    def warning(self, answer: str, meets: str, mend: str) -> Answer:
        """The same question with an answer that is probably not meant."""
        return Answer(self.subject, self.asked, answer, Verdict.WARNING, meets, mend)

    def ok(self, answer: str) -> Answer:
        """The same question with an answer that stands against nothing."""
        return Answer(self.subject, self.asked, answer)

    def unknown(self, answer: str, permission: str = "", mend: str = "") -> Answer:
        """The same question, which could not be asked."""
        return Answer(
            self.subject, self.asked, answer, Verdict.UNKNOWN, mend=mend, permission=permission
        )


def question(subject: str, asked: str) -> Answer:
    """A question before it is answered: its methods make the answers."""
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
        """The answers with this verdict."""
        return [each for each in self.answers if each.verdict is verdict]

    @property
    def summary(self) -> str:
        """``41 asked, 0 refused, 3 unknown``; warnings are told if there are any."""
        return summary(each.verdict for each in self.answers)


def summary(verdicts: Iterable[Verdict]) -> str:
    """The last line of a report.

    >>> summary([Verdict.OK, Verdict.REFUSED])
    '2 asked, 1 refused, 0 unknown'
    """
    counts = Counter(verdicts)
    found = f"{counts.total()} asked, {counts[Verdict.REFUSED]} refused"
    warned = counts[Verdict.WARNING]
    found += f", {warned} warned" if warned else ""
    return f"{found}, {counts[Verdict.UNKNOWN]} unknown"
