"""``vt jobs logs``."""

from __future__ import annotations

import collections
import dataclasses
import functools
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from vertex_training.customjob.google import logs
from vertex_training.customjob.google.logs import JobLogs, LogLine
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.errors import CommandError
from vertex_training_cli.console import json_text, plain
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.engine.values import LineRedactor
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.service import Jobs

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

#: Seconds between two reads. Cloud Logging allows 60 reads a minute in a project.
CLOUD_PAUSE: Final = 5.0
LOCAL_PAUSE: Final = 0.5


def show(
    jobs: Jobs,
    job: AnyJob,
    *,
    replica: str | None,
    follow: bool,
    tail: int | None,
    as_json: bool,
    log: Callable[[str], None],
    trial: str | None = None,
) -> None:
    """Print a job's log, of one replica or of all; with several, each line names its replica.

    Of a tuning job: that of one trial, or of each in turn; then each line names its trial.

    Raises:
        CommandError: there is no such replica or trial, or no trial was chosen to follow.
    """
    if view.is_tuning(job):
        chosen = _chosen(job, trial, follow=follow)
    elif trial:
        raise CommandError(f"job {view.title(job)} has no trials.", "leave --trial out.")
    else:
        chosen = [("", jobs.log_id(job), job.name)]
    known = view.replicas(job)
    if replica and replica not in known:
        raise CommandError(
            f"job {view.title(job)} has no replica {replica!r}.", f"it has: {', '.join(known)}."
        )
    reader = logs.connect(jobs.ref.project)
    write = _writer(as_json=as_json, several=replica is None and len(known) > 1)
    empty = True
    for name, number, resource in chosen:
        ended = functools.partial(_has_ended, jobs, resource)
        for line in _lines(number, reader, replica, ended, jobs.ref, follow=follow, tail=tail):
            write(line, name if len(chosen) > 1 else "")
            empty = False
    if empty:
        log(f"nothing is in the log of job {view.title(job)}, which is {view.state(job)}")


def _chosen(job: AnyJob, trial: str | None, *, follow: bool) -> list[tuple[str, str, str]]:
    """Name, id and resource name of the trials whose logs are wanted, by their numbers."""
    message = view.message(job)
    every = view.trials_of(message)
    parent = job.name.rpartition(f"/{TUNING_JOB.collection}/")[0]
    if follow and trial is None:
        going = [each.id for each in every if each.state not in view.TRIAL_OVER]
        hint = f"choose one with --trial: {', '.join(sorted(going)) or 'none runs'}."
        raise CommandError("the logs of several trials cannot be followed at once.", hint)
    found = [view.find_trial(every, trial)] if trial else [each for each in every if each.job]
    return [
        (f"trial {each.id}", each.job, f"{parent}/{CUSTOM_JOB.collection}/{each.job}")
        for each in sorted(found, key=lambda each: each.number)
    ]


def _has_ended(jobs: Jobs, name: str) -> bool:
    found = jobs.get_if_exists(name)
    return found is None or view.has_ended(found)


def _lines(
    number: str,
    reader: JobLogs,
    replica: str | None,
    ended: Callable[[], bool],
    ref: StackRef,
    *,
    follow: bool,
    tail: int | None,
) -> Iterable[LogLine]:
    if tail:
        return reader.tail(number, tail, replica)
    if not follow:
        return reader.lines(number, replica)
    pause = LOCAL_PAUSE if ref.is_local else CLOUD_PAUSE
    return reader.follow(number, replica, ended=ended, pause=lambda: time.sleep(pause))


def _writer(*, as_json: bool, several: bool) -> Callable[[LogLine, str], None]:
    redactors = collections.defaultdict[tuple[str, str], LineRedactor](LineRedactor)

    def write(line: LogLine, trial: str) -> None:
        # Line by line for each replica, since a private key has several.
        whole = f"{line.text}\n".encode(errors="surrogateescape")
        shown = redactors[trial, line.replica].feed(whole).decode(errors="surrogateescape")
        if not shown:
            return
        line = dataclasses.replace(line, text=shown.removesuffix("\n"))
        if as_json:
            named = {"trial": trial.removeprefix("trial ")} if trial else {}
            print(json_text({**dataclasses.asdict(line), **named}), flush=True)
        else:
            parts = [trial, plain(line.replica) if several else ""]
            source = " ".join(part for part in parts if part)
            text = plain(line.text)
            print(f"{source} | {text}" if source else text, flush=True)

    return write
