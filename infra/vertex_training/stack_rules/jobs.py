"""Rules about ``jobDefaults``, ``rules`` and ladders of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from vertex_training.customjob import rules
from vertex_training.customjob.request import job_file as requests
from vertex_training.customjob.request import references
from vertex_training.customjob.rules.capacity import KEY, RESERVATION
from vertex_training.errors import Problem, UnknownReferenceError, did_you_mean
from vertex_training.settings.limits import Rung
from vertex_training.settings.model import Settings
from vertex_training.stack_rules import rule

#: References whose value differs for each job. ``jobDefaults`` may contain these references.
OF_A_JOB = {"job.name": "name", "job.run": "1", "job.requestId": "id"}


@rule()
def levels_of_rules(settings: Settings) -> Iterator[Problem]:
    """Check that section ``rules`` names existing rules of job files, and lowers no error."""
    known = {job_rule.id: job_rule for job_rule in rules.ALL}
    for name, level in settings.rules.items():
        known_rule = known.get(name)
        path = ("rules", name)
        if known_rule is None:
            yield Problem(
                "no rule of job files has this id", name, did_you_mean(name, list(known)), path
            )
        elif known_rule.level == "error" and level != "error":
            hint = "remove the entry, or write `# vt: ignore[rule] reason` in one job file"
            yield Problem(
                "the level of a rule that is an error cannot be lowered", level, hint, path
            )


@rule()
def ladders(settings: Settings) -> Iterator[Problem]:
    """Check that ladders name known reservations, and that tuning jobs have no ladder."""
    for section, jobs in (("jobs", settings.jobs), ("tuning", settings.tuning)):
        for key, job in jobs.items():
            path = (section, key, "ladder")
            if job.ladder and section == "tuning":
                what = "tuning jobs do not support ladder: they continue after a failed trial"
                yield Problem(what, hint="remove ladder", path=path)
            for index, rung in enumerate(job.ladder):
                yield from unknown_reservation(rung, settings.reservations, (*path, index))


@rule()
def backends(settings: Settings) -> Iterator[Problem]:
    """Check that tuning jobs run on Vertex AI."""
    for name, job in settings.tuning.items():
        if job.backend != "vertex":
            hint = "remove backend: only Vertex AI runs trials"
            path = ("tuning", name, "backend")
            yield Problem("tuning jobs run only on Vertex AI", job.backend, hint, path)


#: ``timeout-minutes`` of the workflow that deploys (``deploy.yml``).
DEPLOYMENT_MINUTES: Final = 60


@rule("deployment")
def deadlines(settings: Settings) -> Iterator[Problem]:
    """Warn if workflow ``deploy.yml`` ends before the deadline of a job with ``wait``."""
    for section, jobs in (("jobs", settings.jobs), ("tuning", settings.tuning)):
        for key, job in jobs.items():
            if job.wait and job.deadline_seconds > DEPLOYMENT_MINUTES * 60:
                what = (
                    f"workflow deploy.yml ends after {DEPLOYMENT_MINUTES} minutes, before this "
                    "deadline"
                )
                hint = (
                    f"write {DEPLOYMENT_MINUTES}m, raise timeout-minutes of the workflow, or "
                    "remove wait"
                )
                yield Problem(what, str(job.deadline), hint, (section, key, "deadline"))


def unknown_references(settings: Settings, table: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield references in ``jobDefaults`` that the stack does not define."""
    defaults = settings.job_defaults
    texts = {
        "serviceAccount": defaults.service_account,
        "outputDirectory": defaults.output_directory,
    }
    for key, text in texts.items():
        try:
            references.resolve(text or "", {**table, **OF_A_JOB})
        except UnknownReferenceError as unknown:
            what, shown = "this reference names no resource of the stack", "${" + unknown.name + "}"
            yield Problem(what, shown, unknown.hint, ("jobDefaults", key))


def unknown_reservation(
    rung: Rung, known: Mapping[str, object], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield a problem if the reservation in a ladder is neither a key nor a full name."""
    name = rung.reservation
    if name is not None and name not in known and not RESERVATION.match(name):
        hint = did_you_mean(name, known) or "projects/PROJECT/zones/ZONE/reservations/NAME"
        yield Problem("the stack declares no such reservation", name, hint, (*path, "reservation"))


def rungs(
    given: Sequence[Rung], reservations: Mapping[str, object], table: Mapping[str, Any]
) -> tuple[requests.RungOverrides, ...]:
    """Convert the rungs of a ladder for a request. ``table``: values of references."""
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
