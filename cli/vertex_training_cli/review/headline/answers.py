"""Twelve questions that an approver asks of every change, and what a report says to each.

A question without an answer is a question whose answer is "nothing": it is listed as such, never
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from vertex_training.catalog.costs import usd
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training_cli.review import cells
from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport
from vertex_training_cli.review.verdict import (
    NAMED,
    Quote,
    cost,
    limit,
    locked,
    lost_data,
    reservations,
    returned,
)

#: Phrases of one answer; more are counted.
SHOWN: Final = 12
#: What an answer means for who approves it; the page colours it.
Risk = Literal["plain", "opens", "destroys"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and its answer, in phrases whose names and values are quoted."""

    question: str
    phrases: tuple[str, ...]
    """Empty: nothing."""
    risk: Risk = "plain"

    @property
    def text(self) -> str:
        """The first phrases, and how many more there are."""
        left = len(self.phrases) - SHOWN
        return "; ".join(self.phrases[:SHOWN]) + (f"; and {left} more" if left > 0 else "")


def answers(report: ReviewReport, quote: Quote) -> list[Answer]:
    """All twelve, in the order of asking."""
    return [
        Answer(question, tuple(phrases(report, quote)), risk)
        for question, phrases, risk in _QUESTIONS
    ]


def _runs(report: ReviewReport, quote: Quote) -> Iterator[str]:
    for job in report.jobs:
        if job.submits or job.action == "defer":
            machines = " and ".join(quote(each) for each in job.machines)
            later = ", when the running one has ended" if job.action == "defer" else ""
            yield f"{quote(job.name)} on {machines}{later}"


def _costs(report: ReviewReport, quote: Quote) -> Iterator[str]:
    if report.submitted:
        yield cost(report)
    if deferred := [job for job in report.jobs if job.action == "defer"]:
        yield f"later: {', '.join(usd(job.cost.worst_case) for job in deferred[:NAMED])}"
    if report.reservations:
        yield f"reservations, used or not: {reservations(report, quote)}"


def _gains(report: ReviewReport, quote: Quote) -> Iterator[str]:
    for each in report.gained:
        target = (
            f"{each.kind if each.kind.isalpha() else quote(each.kind)} {quote(cells.target(each))}"
        )
        yield f"{quote(cells.member(each))}: {quote(each.role)} on {target}"


def _lost(report: ReviewReport, quote: Quote) -> Iterator[str]:
    yield from lost_data(report, quote)
    yield from (f"locked for good: {each}" for each in locked(report, quote))
    for machines in returned(report, quote):
        yield f"given back, and may not be had again: {machines}"
    for folder in report.folders:
        if folder.removed:
            yield f"{len(folder.removed)} objects below {quote(folder.name)}, files of the stack"
    for name in report.unprotected:
        yield f"{quote(name)} loses its protection"
    for change in report.destroyed:
        if change.refused:
            yield f"refused, it is protected: {quote(change.name)}"
        elif not change.is_loss:
            yield f"{quote(change.name)} ({cells.destruction(change)[0]})"


def _public(report: ReviewReport, quote: Quote) -> Iterator[str]:
    yield from (quote(what) for what in report.public)
    yield from (f"machines reach any address: {quote(name)}" for name in report.egress)


def _stops(report: ReviewReport, quote: Quote) -> Iterator[str]:
    for job in report.jobs:
        if job.cancels:
            yield f"{quote(job.name)}{_so_far(job)}"


def _so_far(job: JobChange) -> str:
    """How long a job that is cancelled has run, if it was looked at."""
    if not (job.now and job.now.seconds):
        return " (state not known now)" if job.now is None else ""
    return f" after {format_duration(job.now.seconds)}, {usd(job.now.cost)} so far"


def _replaced(report: ReviewReport, quote: Quote) -> Iterator[str]:
    yield from (f"job {quote(job.name)}" for job in report.jobs if job.action == "replace")
    yield from (quote(change.name) for change in report.destroyed if change.replaced)


def _limits(report: ReviewReport, quote: Quote) -> Iterator[str]:
    yield from (limit(each, quote) for each in report.raised)


def _policies(report: ReviewReport, quote: Quote) -> Iterator[str]:
    if not report.packs:
        yield "no policy pack checked this"
    for each in report.violations:
        word = "forbidden by" if each.is_mandatory else "warning of"
        yield f"{word} {quote(each.policy)} for {quote(each.urn.rpartition('::')[2])}"
    yield from (f"lowered: {limit(each, quote)}" for each in report.lowered)


def _readable(report: ReviewReport, quote: Quote) -> Iterator[str]:
    for verb, who, may, kind, name, account in cells.accesses(report):
        if verb == "gained":
            yield f"{quote(who)} {may} {kind} {quote(name)} as {quote(account)}"


def _unseen(report: ReviewReport, quote: Quote) -> Iterator[str]:
    if report.outcome in (ReviewOutcome.FAILED, ReviewOutcome.OVER_LIMIT):
        yield "what comes after the point where the preview failed"
    if report.not_observed:
        yield f"jobs as they are now: {quote(report.not_observed)}"
    if report.source.startswith("Previewed offline"):
        yield "what is deployed: the preview began with an empty state"


def _binds(report: ReviewReport, quote: Quote) -> Iterator[str]:
    what = "resources before and after, protection, limits, policies and levels, the outcome"
    yield f"{quote(report.digest[:12])}: {what}"


Phrases = Callable[[ReviewReport, Quote], Iterator[str]]
_QUESTIONS: Final[Sequence[tuple[str, Phrases, Risk]]] = (
    ("what runs", _runs, "plain"),
    ("what it can cost", _costs, "plain"),
    ("who gains a right", _gains, "opens"),
    ("what is lost", _lost, "destroys"),
    ("what becomes public", _public, "destroys"),
    ("what stops", _stops, "destroys"),
    ("what is replaced", _replaced, "destroys"),
    ("which limits are raised", _limits, "opens"),
    ("what policies say", _policies, "opens"),
    ("whose data becomes readable", _readable, "opens"),
    ("what was not looked at", _unseen, "opens"),
    ("what the digest binds", _binds, "plain"),
)
