"""The verdict: a report in one line, and the counts in it."""

from __future__ import annotations

import math
from collections import Counter

from infra.catalog.costs import usd
from vt.review.report import Outcome, Report


def verdict(report: Report) -> str:
    """The first line: what stops it, what happens to jobs, what it can cost, what is lost."""
    parts = [_failed(report)] if report.outcome is not Outcome.CLEAN else []
    if report.nothing:
        return f"{parts[0][0].upper()}{parts[0][1:]}." if parts else "Nothing changes."
    acts = (("submit", "submitted"), ("replace", "replaced"), ("cancel", "cancelled"))
    counts = [(report.count(action), word) for action, word in acts]
    told = [f"{_count(number, 'job')} {word}" for number, word in counts if number]
    parts.append(", ".join(told) or "no job is submitted")
    if report.submitted:
        parts.append(_cost(report))
    if report.reserved:
        parts.append(_reserved(report))
    if report.gained or report.lost:
        parts.append(f"{_count(len(report.gained), 'right')} gained, {len(report.lost)} lost")
    lost = _count(len(report.losses), "resource") if report.losses else "nothing"
    parts.append(f"{lost} destroyed")
    if report.packs and not report.forbidding:
        parts.append(_count(len(report.violations), "policy warning"))
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def _failed(report: Report) -> str:
    """Why nothing may be deployed."""
    return {
        Outcome.FAILED: "the preview failed",
        Outcome.FORBIDDEN: f"forbidden by {_count(len(report.forbidding), 'policy violation')}",
        Outcome.OVER_LIMIT: "forbidden by the environment's limits",
        Outcome.DIFFERENT: "this is not the plan that was approved",
    }[report.outcome]


def _cost(report: Report) -> str:
    missing = report.unpriced
    if len(missing) == len(report.submitted):
        return "no price is known"
    more = f" and {_count(len(missing), 'job')} without a price" if missing else ""
    return f"at most {usd(report.worst_case)}{more}"


def _reserved(report: Report) -> str:
    """What is paid for machines that are kept, whether or not a job runs on them."""
    prices = [each.hourly for each in report.reserved if each.hourly is not None]
    missing = len(report.reserved) - len(prices)
    plus = "plus " if report.submitted else ""
    if not prices:
        return f"{plus}{_count(missing, 'reservation')} without a price, used or not"
    more = f", and {missing} without a price" if missing else ""
    hourly, what = usd(math.fsum(prices)), _count(len(prices), "reservation")
    return f"{plus}{hourly} an hour for {what}, used or not{more}"


def _count(number: int, noun: str) -> str:
    """``1 job``, ``2 jobs``, ``no jobs``."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def totals(report: Report) -> str:
    """How many of everything else are created, updated, …"""
    counts = Counter(change.op for change in report.changes)
    words = {"create": "created", "update": "updated", "replace": "replaced", "delete": "deleted"}
    order = [*words, *sorted(set(counts) - set(words))]
    parts = [f"{counts[op]} {words.get(op, op)}" for op in order if counts[op]]
    return ", ".join(parts) or "none"
