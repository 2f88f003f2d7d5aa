"""Rules of ``jobDefaults``, ``rules`` and ladders of jobs: what they name exists."""

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
from vertex_training.stack_rules.registry import rule

#: References that only a job has; a default may use them.
OF_A_JOB = {"job.name": "name", "job.run": "1", "job.requestId": "id"}


@rule()
def levels_of_rules(settings: Settings) -> Iterator[Problem]:
    """Rules of job files exist, and a stack may set their level."""
    known = {each.id: each for each in rules.ALL}
    for name, level in settings.rules.items():
        known_rule = known.get(name)
        path = ("rules", name)
        if known_rule is None:
            yield Problem("no such rule", name, did_you_mean(name, list(known)), path)
        elif known_rule.level == "error" and level != "error":
            hint = "what Google documents stays an error; `# vt: ignore[rule] reason` is for a file"
            yield Problem("an error cannot become less", level, hint, path)


@rule()
def ladders(settings: Settings) -> Iterator[Problem]:
    """Rungs name known reservations, and no tuning job has a ladder."""
    for section, jobs in (("jobs", settings.jobs), ("tuning", settings.tuning)):
        for key, job in jobs.items():
            path = (section, key, "ladder")
            if job.ladder and section == "tuning":
                what = "a tuning job has no ladder: it goes on where a trial gets no machines"
                yield Problem(what, hint="remove it", path=path)
            for index, rung in enumerate(job.ladder):
                yield from unknown_reservation(rung, settings.reservations, (*path, index))


@rule()
def backends(settings: Settings) -> Iterator[Problem]:
    """Vertex AI alone runs tuning jobs."""
    for name, job in settings.tuning.items():
        if job.backend != "vertex":
            hint = "leave it out: only Vertex AI has trials"
            path = ("tuning", name, "backend")
            yield Problem("a tuning job runs on Vertex AI alone", job.backend, hint, path)


#: ``timeout-minutes`` of the workflow that deploys (``deploy.yml``).
DEPLOYMENT_MINUTES: Final = 60


@rule("deployment")
def deadlines(settings: Settings) -> Iterator[Problem]:
    """The workflow that deploys does not end before the deadline of a job that it waits for."""
    for section, jobs in (("jobs", settings.jobs), ("tuning", settings.tuning)):
        for key, job in jobs.items():
            if job.wait and job.deadline_seconds > DEPLOYMENT_MINUTES * 60:
                what = f"the workflow deploy.yml ends after {DEPLOYMENT_MINUTES} minutes"
                hint = f"{DEPLOYMENT_MINUTES}m, raise its timeout-minutes, or remove wait"
                yield Problem(what, str(job.deadline), hint, (section, key, "deadline"))


def unknown_references(settings: Settings, table: Mapping[str, Any]) -> Iterator[Problem]:
    """References of ``jobDefaults`` that this stack does not have."""
    defaults = settings.job_defaults
    texts = {
        "serviceAccount": defaults.service_account,
        "outputDirectory": defaults.output_directory,
    }
    for key, text in texts.items():
        try:
            references.resolve(text or "", {**table, **OF_A_JOB})
        except UnknownReferenceError as unknown:
            what, shown = "names what this stack does not have", "${" + unknown.name + "}"
            yield Problem(what, shown, unknown.hint, ("jobDefaults", key))


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
