"""The verdict: a report in one line, and the counts in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from vertex_training.catalog.costs import usd
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import JobObservation
from vertex_training_cli.review.capacity import ReservationChange, ReservationCost
from vertex_training_cli.review.escaping import cut
from vertex_training_cli.review.jobs import JobChange
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

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
        parts.append(cost(report))
    if thrown := [job.now for job in report.jobs if job.cancels and job.now and job.now.seconds]:
        parts.append(_thrown_away(thrown))
    if deferred := [job for job in report.jobs if job.action == "defer"]:
        parts.append(_deferred(deferred))
    if report.reservations:
        parts.append(f"reservations, used or not: {reservations(report, quote)}")
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
    raised, lowered = (
        [limit(each, quote) for each in found] for found in (report.raised, report.lowered)
    )
    parts = {
        "data is lost": lost_data(report, quote),
        "machines given back, and may not be had again": returned(report, quote),
        "not possible like this": [quote(each.name) for each in report.refusals],
        "locked for good": locked(report, quote),
        "refused, it is protected": [quote(e.name) for e in report.destroyed if e.refused],
        "protection removed": [quote(name) for name in report.unprotected],
        "limits raised": raised,
        "policies lowered": lowered,
        "opened to everybody": [quote(what) for what in report.public],
        "machines reach any address": [quote(name) for name in report.egress],
    }
    return [f"{what}: {_first(names)}" for what, names in parts.items() if names]


def lost_data(report: ReviewReport, quote: Quote) -> list[str]:
    """Data that is lost, or kept less: with its resource, or though that stays."""
    found = [
        f"{quote(each.name)} ({'made anew, empty' if each.replaced else 'destroyed'})"
        for each in report.destroyed
        if each.is_loss
    ]
    kept = (f"{quote(each.name)} ({each.what}: {each.old} → {each.new})" for each in report.losses)
    return [*found, *kept]


def locked(report: ReviewReport, quote: Quote) -> list[str]:
    """Retentions that nothing ever shortens again."""
    return [
        f"{quote(each.name)} (nothing in it can be deleted for {each.days:g} days; never undone)"
        for each in report.locks
    ]


def returned(report: ReviewReport, quote: Quote) -> list[str]:
    """Machines of reservations that others may take."""
    return [
        f"{quote(each.name)} ({each.machines or 'an unknown number'} x {quote(each.machine_type)}"
        f" in {quote(each.zone)}{', made anew' if each.replaced else ''})"
        for each in report.returned
    ]


def limit(change: FieldDifference, quote: Quote) -> str:
    """A limit or a level, old and new."""
    return f"{quote(change.path)} {quote(change.old or '')} → {quote(change.new or '')}"


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


def cost(report: ReviewReport) -> str:
    """What the submitted jobs can cost together."""
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


def reservations(report: ReviewReport, quote: Quote) -> str:
    """What machines that are kept cost more or less a month, and which."""
    changes = [each.monthly for each in report.reservations]
    prices = [change for change in changes if change is not None]
    missing = len(changes) - len(prices)
    more = f"{_count(missing, 'reservation')} without a price" if missing else ""
    total = math.fsum(prices)
    price = f"{'-' if total < 0 else '+'}{usd(abs(total))} a month" if prices else ""
    what = " and ".join(part for part in (price, more) if part)
    named = _first([_machines(each, quote) for each in report.reservations])
    return f"{what} ({named})"


def _machines(change: ReservationChange, quote: Quote) -> str:
    """A reservation's machines and price an hour, before and after."""
    old, new, kind = change.old, change.new, quote(change.either.machine_type)
    if old and new and (old.machine_type, old.zone) != (new.machine_type, new.zone):
        before, after = (
            f"{_number(e)} x {quote(e.machine_type)} in {quote(e.zone)}" for e in (old, new)
        )
        numbers = f"{before} → {after}"
    else:
        numbers = f"{_number(old)} → {_number(new)} x {kind}"
    hourly = [usd(each.hourly) if each else usd(0) for each in (old, new)]
    return f"{quote(change.either.name)} {numbers}, {hourly[0]} → {hourly[1]} an hour"


def _number(reservation: ReservationCost | None) -> str:
    """How many machines a reservation keeps."""
    return "0" if reservation is None else str(reservation.machines or "an unknown number")


def _count(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``, ``no jobs``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def totals(report: ReviewReport) -> str:
    """How many of everything else are created, updated, …"""
    counts = Counter(change.op for change in report.changes)
    for folder in report.folders:
        for op, names in (("create", folder.added), ("replace", folder.changed)):
            counts.update({op: len(names)} if names else {})
        counts.update({"delete": len(folder.removed)} if folder.removed else {})
    words = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}
    order = [*words, *sorted(set(counts) - set(words))]
    parts = [f"{counts[op]} {words.get(op, op)}" for op in order if counts[op]]
    return ", ".join(parts) or "none"
