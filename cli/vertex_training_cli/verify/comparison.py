"""Where a run differs from its rehearsal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training_cli.verify.observations import Aspects, Observations

#: A duration is told if it is longer than this many times the rehearsed one, and so many seconds.
TIMES: Final = 3
SPARE: Final = 30.0
#: How subjects begin that depend on the stack file, or on how far a run came: both must have them.
OPTIONAL: Final = ("resource ", "call ", "job ", "asked ")
#: What no wait is sure to see: a poll comes too late, or the service skips it.
_PASSING: Final = frozenset({"QUEUED", "PENDING", "RUNNING", "CANCELLING"})


@dataclass(frozen=True, slots=True)
class Difference:
    """One subject that did not behave as it was rehearsed."""

    step: str
    subject: str
    details: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All differences, and what could not be compared."""

    differences: tuple[Difference, ...]
    not_compared: tuple[str, ...]
    """``STEP: SUBJECT`` of what only one of both has."""


def compare(rehearsed: Observations, observed: Observations) -> Comparison:
    """Compare a run with its rehearsal, subject by subject."""
    differences: list[Difference] = []
    alone: list[str] = []
    for step in dict.fromkeys((*rehearsed, *observed)):
        if step not in observed or step not in rehearsed:
            why = "not reached" if step in rehearsed else "not rehearsed"
            alone.append(f"{step}: {why}")
            continue
        before, now = rehearsed[step], observed[step]
        found: list[Difference] = []
        for subject in dict.fromkeys((*before, *now)):
            if subject.startswith(OPTIONAL) and not (subject in before and subject in now):
                alone.append(f"{step}: {subject}")
            elif details := tuple(_details(before.get(subject, {}), now.get(subject, {}))):
                found.append(Difference(step, subject, details))
        differences += [_failure(step, found, now)] if "failed" in now["result"] else found
    return Comparison(tuple(differences), tuple(alone))


def _failure(step: str, found: Sequence[Difference], now: Mapping[str, Aspects]) -> Difference:
    """A step that failed is one difference: what it did not come to follows from that."""
    errors = tuple(now["result"]["errors"])
    beside = (each for each in found if each.subject != "result")
    return Difference(
        step, "failed", errors + tuple(f"{e.subject}: {d}" for e in beside for d in e.details)
    )


def _details(before: Aspects, now: Aspects) -> Iterator[str]:
    for aspect in dict.fromkeys((*before, *now)):
        old, new = before.get(aspect), now.get(aspect)
        if aspect.startswith("seconds"):
            if old is not None and new is not None and new > TIMES * old + SPARE:
                yield f"{aspect}: {new:.0f} s, rehearsed {old:.0f} s"
        elif aspect == "states":
            if not follows(new or [], old or []):
                yield f"states: {' → '.join(new or [])}, rehearsed {' → '.join(old or [])}"
        elif aspect == "fields" and not (old and new):
            continue  # one of both was refused
        elif isinstance(old or new, list):
            yield from _set_details(aspect, old or [], new or [])
        elif old != new:
            yield f"{aspect}: {_shown(new)}, rehearsed {_shown(old)}"


def _set_details(aspect: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for sign, found in (("not rehearsed", set(new) - set(old)), ("missing", set(old) - set(new))):
        if found and not (sign == "missing" and aspect == "refused"):  # it was better here
            yield f"{aspect}, {sign}: {'; '.join(sorted(found))}"


def follows(states: Sequence[str], rehearsed: Sequence[str]) -> bool:
    """Whether ``states`` come in the rehearsed order; those that pass by may be left out.

    >>> follows(["PENDING", "SUCCEEDED"], ["PENDING", "RUNNING", "SUCCEEDED"])
    True
    >>> follows(["PENDING", "FAILED"], ["PENDING", "RUNNING", "SUCCEEDED"])
    False
    """
    left = iter(states)
    wanted = next(left, None)
    for state in rehearsed:
        if state == wanted:
            wanted = next(left, None)
        elif state not in _PASSING:
            return False
    return wanted is None


def _shown(value: Any) -> str:
    return "none" if value in (None, "") else str(value)


def read(document: Mapping[str, Any]) -> Observations:
    """The observations in an ``observations.json``.

    Raises:
        ValueError: it is none.
    """
    steps = document.get("steps")
    if document.get("version") != VERSION or not isinstance(steps, dict):
        raise ValueError("it has no steps of this version")
    return steps


#: Raised when a step or an aspect changes its meaning.
VERSION: Final = 1
