"""Ladders of jobs: rungs that name reservations, and as the requests of jobs need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vertex_training.customjob.request import rungs as requests
from vertex_training.customjob.rules.compute.capacity import KEY, RESERVATION
from vertex_training.errors import Problem, did_you_mean
from vertex_training.settings.ladder import Rung
from vertex_training.settings.model import Settings


def problems(settings: Settings) -> Iterator[Problem]:
    """Rungs of reservations that are not there, and ladders of what cannot have one."""
    for section, jobs in (("jobs", settings.jobs), ("tuning", settings.tuning)):
        for key, job in jobs.items():
            path = (section, key, "ladder")
            if job.ladder and section == "tuning":
                what = "a tuning job has no ladder: it goes on where a trial gets no machines"
                yield Problem(what, hint="remove it", path=path)
            for index, rung in enumerate(job.ladder):
                yield from unknown_reservation(rung, settings.reservations, (*path, index))


def unknown_reservation(
    rung: Rung, known: Mapping[str, object], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """The reservation of a rung, if it is neither a key nor a full name."""
    name = rung.reservation
    if name is not None and name not in known and not RESERVATION.match(name):
        hint = did_you_mean(name, known) or "projects/PROJECT/zones/ZONE/reservations/NAME"
        yield Problem("no such reservation", name, hint, (*path, "reservation"))


def rungs(
    given: Sequence[Rung], reservations: Mapping[str, object], table: Mapping[str, Any]
) -> tuple[requests.RungOverrides, ...]:
    """The rungs as a request takes them. ``table`` has what references stand for."""
    return tuple(
        requests.RungOverrides(
            rung.model_dump(by_alias=True, exclude_none=True),
            _affinity(rung.reservation, reservations, table),
        )
        for rung in given
    )


def _affinity(
    name: str | None, reservations: Mapping[str, object], table: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    if name is None:
        return None
    if name in reservations:
        return table[f"reservations.{name}"]
    return {
        "reservationAffinityType": "SPECIFIC_RESERVATION",
        "key": KEY,
        "values": [name],
    }
