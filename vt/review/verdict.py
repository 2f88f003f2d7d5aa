"""The verdict: a report in one line, and the counts in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from infra.catalog.costs import usd
from infra.customjob.protocol.waiting import format_duration
from vt.engine.plan import JobObservation
from vt.review.escaping import cut
from vt.review.jobs import JobChange
from vt.review.report import ReviewOutcome, ReviewReport

#: Makes a name or a value harmless for where it is shown.
Quote = Callable[[str], str]
#: Names in one part of the line; more are counted.
NAMED: Final = 3


def verdict(report: ReviewReport, quote: Quote = cut) -> str:
    """The report in one line: what stops it, jobs, costs, what is destroyed, lost or opened.

    ``quote`` makes names and values harmless for where the line stands.
    """
    parts = [_failed(report)] if report.outcome is not ReviewOutcome.CLEAN else []
    if report.nothing:
        return f"{parts[0][0].upper()}{parts[0][1:]}." if parts else "Nothing changes."
    acts = (("submit", "submitted"), ("replace", "replaced"), ("cancel", "cancelled"))
    counts = [(report.count(action), word) for action, word in acts]
    phrases = [f"{_count(number, 'job')} {word}" for number, word in counts if number]
    parts.append(", ".join(phrases) or "no job is submitted")
    if report.submitted:
        parts.append(_cost(report))
    if thrown := [job.now for job in report.jobs if job.cancels and job.now and job.now.seconds]:
        parts.append(_thrown_away(thrown))
    if deferred := [job for job in report.jobs if job.action == "defer"]:
        parts.append(_deferred(deferred))
    if report.reservations:
        parts.append(_reserved(report))
    if report.gained or report.lost:
        parts.append(f"{_count(len(report.gained), 'right')} gained, {len(report.lost)} lost")
    destroyed = _count(len(report.destroyed), "resource") if report.destroyed else "nothing"
    parts.append(f"{destroyed} destroyed")
    parts += _risks(report, quote)
    if report.packs and not report.forbidding:
        parts.append(_count(len(report.violations), "policy warning"))
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _risks(report: ReviewReport, quote: Quote) -> list[str]:
    """What endangers data or opens something, each named; most changes have none."""
    lost = [
        f"{quote(each.name)} ({'made anew, empty' if each.replaced else 'destroyed'})"
        for each in report.destroyed
        if each.is_loss
    ]
    lost += [f"{quote(each.name)} ({each.what}: {each.old} → {each.new})" for each in report.losses]
    raised = [
        f"{quote(each.path)} {quote(each.old or '')} → {quote(each.new or '')}"
        for each in report.raised
    ]
    parts = {
        "data is lost": lost,
        "protection removed": [quote(name) for name in report.unprotected],
        "limits raised": raised,
        "opened to everybody": [quote(what) for what in report.public],
        "machines reach any address": [quote(name) for name in report.egress],
    }
    return [f"{what}: {_first(names)}" for what, names in parts.items() if names]


def _first(names: Sequence[str]) -> str:
    """The first of these, and how many more there are."""
    left = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {left} more" if left > 0 else "")


def _failed(report: ReviewReport) -> str:
    """Why nothing may be deployed."""
    violations = _count(len(report.forbidding), "policy violation")
    images = [problem for problem in report.problems if problem.rule.startswith("image-")]
    by_images = images and len(images) == len(report.problems) and not report.errors
    cannot_run = f"{_count(len(images), 'image')} cannot be run"
    return {
        ReviewOutcome.FAILED: cannot_run if by_images else "the preview failed",
        ReviewOutcome.FORBIDDEN: f"forbidden by {violations}",
        ReviewOutcome.OVER_LIMIT: "forbidden by the environment's limits",
        ReviewOutcome.DIFFERENT: "this is not the plan that was approved",
    }[report.outcome]


def _cost(report: ReviewReport) -> str:
    missing = report.unpriced
    if len(missing) == len(report.submitted):
        return "no price is known"
    more = f" and {_count(len(missing), 'job')} without a price" if missing else ""
    return f"at most {usd(report.worst_case)}{more}"


def _thrown_away(jobs: Sequence[JobObservation]) -> str:
    """What cancelled jobs have done so far."""
    longest = format_duration(max(job.seconds for job in jobs))
    cost = math.fsum(job.cost or 0 for job in jobs)
    how_long = longest if len(jobs) == 1 else f"up to {longest}"
    return f"{_count(len(jobs), 'running job')} cancelled after {how_long} ({usd(cost)} so far)"


def _deferred(jobs: Sequence[JobChange]) -> str:
    """Jobs that a later ``up`` submits, and what they can cost then."""
    prices = [job.cost.worst_case for job in jobs]
    known = math.fsum(price for price in prices if price is not None)
    cost = "at a price not known" if None in prices else f"at most {usd(known)}"
    return f"{_count(len(jobs), 'job')} submitted later, when the running one has ended ({cost})"


def _reserved(report: ReviewReport) -> str:
    """What is paid for machines that are kept, whether or not a job runs on them."""
    prices = [each.hourly for each in report.reservations if each.hourly is not None]
    missing = len(report.reservations) - len(prices)
    plus = "plus " if report.submitted else ""
    if not prices:
        return f"{plus}{_count(missing, 'reservation')} without a price, used or not"
    more = f", and {missing} without a price" if missing else ""
    hourly, what = usd(math.fsum(prices)), _count(len(prices), "reservation")
    return f"{plus}{hourly} an hour for {what}, used or not{more}"


def _count(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``, ``no jobs``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def totals(report: ReviewReport) -> str:
    """How many of everything else are created, updated, …"""
    counts = Counter(change.op for change in report.changes)
    words = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}
    order = [*words, *sorted(set(counts) - set(words))]
    parts = [f"{counts[op]} {words.get(op, op)}" for op in order if counts[op]]
    return ", ".join(parts) or "none"
