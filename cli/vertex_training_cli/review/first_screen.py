"""First screen of a report: readiness, the next commands, and a table of answers.

Markdown and the page show the same rows. The heads of rows are nouns; JSON has questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from vertex_training.catalog import resource_types
from vertex_training.errors import counted
from vertex_training_cli.review import grants
from vertex_training_cli.review.headline import (
    SHOWN,
    HeadlineAnswer,
    answers,
    failure,
    is_partial,
    unbuilt_images,
)
from vertex_training_cli.review.parts import HEADS, READABLE, RIGHTS, Danger, Quote
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

CREATED: Final = "Created"
PEOPLE: Final = "Grants to people"
MACHINES: Final = "Grants to machines"
#: Prefixes of members other than people: service accounts, and identities of other issuers.
_MACHINES: Final = ("serviceAccount:", "principal:", "principalSet:")


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """A row of the table: its heading, and lines with quoted names and values."""

    head: str
    lines: tuple[str, ...]
    danger: Danger = "plain"


def subject(report: ReviewReport, quote: Quote) -> str:
    """Return the title after "Review of stack": the name, and a note on a first deployment."""
    name = quote(report.stack)
    return f"{name}: first deployment" if report.is_first else name


def readiness(report: ReviewReport) -> tuple[str, str]:
    """Return whether the stack can be deployed, and the reason or the next step."""
    images = unbuilt_images(report)
    offline = "the preview started from an empty state, so every resource looks new"
    if report.outcome is not ReviewOutcome.CLEAN:
        return "Not ready", failure(report)
    if images:
        count = f"{counted(len(images), 'image')} not built"
        return "Not ready", f"{count}; {offline}" if report.is_offline else count
    if report.is_offline:
        return "Not compared with the cloud", offline
    if report.nothing:
        return "Ready", "nothing to deploy"
    return "Ready", "run the commands below, or merge if CI deploys"


def commands(report: ReviewReport) -> list[str]:
    """Return the commands that are still needed to deploy the stack."""
    stack = report.stack
    if report.outcome is not ReviewOutcome.CLEAN:
        return []
    if images := unbuilt_images(report):
        return [
            *(f"vt images build {name} --stack {stack}" for name in images),
            f"vt review --stack {stack}",
        ]
    if report.is_offline or report.nothing:
        return []
    preflight = [] if report.preflight else [f"vt preflight --stack {stack}"]
    return [*preflight, f"vt up --stack {stack}"]


def without_row(report: ReviewReport, quote: Quote) -> str:
    """Return a sentence with the headings of all rows that have no answer."""
    heads = [HEADS[answer.question] for answer in answers(report, quote) if not answer.phrases]
    partial = "Unknown, because the preview failed"
    words = partial if is_partial(report) else "Nothing to report under"
    return f"{words}: {', '.join(heads)}." if heads else ""


def rows(report: ReviewReport, quote: Quote) -> list[SummaryRow]:
    """Return the rows: created resources, then a row for each answer that is not empty."""
    summary = [SummaryRow(CREATED, (created,))] if (created := _created(report)) else []
    for answer in answers(report, quote):
        if answer.question == RIGHTS:
            summary += _grants(report, answer, quote)
        elif answer.question == READABLE and report.access_gained:
            summary.append(SummaryRow(HEADS[READABLE], _shown(_readable(report, answer, quote)),
                                    answer.danger))  # fmt: skip
        elif answer.phrases:
            summary.append(SummaryRow(HEADS[answer.question], (answer.text,), answer.danger))
    return summary


def _created(report: ReviewReport) -> str:
    """Return the number of created resources by type."""
    counts = Counter(_word(type_) for type_ in report.created)
    return ", ".join(f"{number} {_plural(word, number)}" for word, number in counts.items())


def _word(type_: str) -> str:
    if resource_types.iam_kind(type_):
        return "grant"
    name = type_.rpartition(":")[2]
    spaced = "".join(
        f" {character.lower()}" if character.isupper() else character for character in name
    ).strip()
    return resource_types.find(type_).word or ("API" if spaced == "service" else spaced)


def _plural(word: str, number: int) -> str:
    if number == 1:
        return word
    return f"{word[:-1]}ies" if word[-1:] == "y" else f"{word}s"


def _grants(report: ReviewReport, answer: HeadlineAnswer, quote: Quote) -> Iterator[SummaryRow]:
    """Yield grants to people, grants to machines, and other rights, one principal a line."""
    for head, of_machines in ((PEOPLE, False), (MACHINES, True)):
        lines = _by_principal(
            (quote(grants.short_member(grant)), grants.right(grant, quote))
            for grant in report.gained
            if grant.member.startswith(_MACHINES) is of_machines
        )
        if lines:
            yield SummaryRow(head, _shown(lines), answer.danger)
    if others := answer.phrases[len(report.gained) :]:
        yield SummaryRow("Other rights", _shown(others), answer.danger)


def _readable(report: ReviewReport, answer: HeadlineAnswer, quote: Quote) -> list[str]:
    reached = (
        (quote(grants.short_member(reader)), grants.reach(reader, quote))
        for reader in grants.people_first(report.access_gained)
    )
    return [*_by_principal(reached), *answer.phrases[len(report.access_gained) :]]


def _by_principal(pairs: Iterable[tuple[str, str]]) -> list[str]:
    by_principal: dict[str, list[str]] = {}
    for principal, what in pairs:
        by_principal.setdefault(principal, []).append(what)
    return [f"{principal}: {', '.join(what)}" for principal, what in by_principal.items()]


def _shown(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the first few lines, and how many more exist."""
    every = tuple(lines)
    left = len(every) - SHOWN
    return (*every[:SHOWN], *([f"and {left} more"] if left > 0 else []))
