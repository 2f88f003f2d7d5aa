"""``vt jobs logs`` and ``vt jobs wait``: print logs, and wait for jobs to end."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from vertex_training.customjob.google import backends, logs
from vertex_training.customjob.google.backends import BackendJobs
from vertex_training.customjob.google.job_service import AnyJob
from vertex_training.customjob.google.logs import LogLine
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB
from vertex_training.customjob.protocol.waiting import Goal, Wait, WaitPorts, wait_for_job
from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.console import json_text, plain, print_status
from vertex_training_cli.engine.values import LineRedactor
from vertex_training_cli.jobs import deployed, view
from vertex_training_cli.jobs.service import Jobs, kind_of

#: Time between two reads in seconds. Cloud Logging allows 60 reads per minute and project.
CLOUD_PAUSE: Final = 5.0
LOCAL_PAUSE: Final = 0.25


def show(
    jobs: Jobs,
    job: AnyJob,
    *,
    replica: str | None,
    follow: bool,
    tail: int | None,
    as_json: bool,
    trial: str | None = None,
) -> None:
    """Print a job's log. Each line starts with its trial and replica if the log has several."""
    if view.is_tuning(job):
        chosen = _chosen(job, trial, follow=follow)
    elif trial:
        raise CommandError(f"job {view.title(job)} has no trials.", "remove the option --trial.")
    else:
        chosen = [("", jobs.log_id(job), job.name)]
    known = view.replicas(job)
    if replica and replica not in known:
        raise CommandError(
            f"job {view.title(job)} has no replica {replica!r}.",
            f"choose one of: {', '.join(known)}.",
        )
    reader = logs.connect(jobs.ref.project)
    write = _writer(as_json=as_json, several=replica is None and len(known) > 1)
    empty = True
    pause = LOCAL_PAUSE if jobs.ref.is_local else CLOUD_PAUSE

    def has_ended(resource: str) -> bool:
        current = jobs.get_if_exists(resource)
        return current is None or view.has_ended(current)

    for name, number, resource in chosen:
        lines: Iterable[LogLine] = reader.lines(number, replica)
        if tail:
            lines = reader.tail(number, tail, replica)
        elif follow:
            lines = reader.follow(
                number,
                replica,
                ended=functools.partial(has_ended, resource),
                pause=lambda: time.sleep(pause),
                report=lambda error: print_status(f"cannot read the log; trying again: {error}"),
            )
        for line in lines:
            write(line, name if len(chosen) > 1 else "")
            empty = False
    if empty:
        print_status(f"the log of job {view.title(job)} is empty; the job is {view.state(job)}")


def follow(jobs: Jobs, job: AnyJob) -> None:
    """Print a job's log until the job has ended. Errors while reading the log are reported."""
    try:
        show(jobs, job, replica=None, follow=True, tail=None, as_json=False)
    except OperatorError as error:
        print_status(f"cannot read the log; the job continues: {error}")


def _chosen(job: AnyJob, trial: str | None, *, follow: bool) -> list[tuple[str, str, str]]:
    message = view.message(job)
    every = view.trials_of(message)
    parent = job.name.rpartition(f"/{TUNING_JOB.collection}/")[0]
    if follow and trial is None:
        going = [item.id for item in every if item.state not in view.TRIAL_OVER]
        hint = f"choose a running trial with --trial: {', '.join(sorted(going)) or 'none'}."
        raise CommandError("--follow can print the log of only one trial.", hint)
    chosen = [item for item in every if (item.id == trial if trial else item.job)]
    if trial and not chosen:
        known = [item.id for item in sorted(every, key=lambda entry: entry.number)]
        hint = f"choose one of: {', '.join(known)}." if known else "wait for the first trial."
        raise CommandError(f"trial {trial!r} does not exist.", hint)
    if trial and not chosen[0].job:
        raise CommandError(f"trial {trial} has no job yet: its state is {chosen[0].state}.")
    return [
        (f"trial {item.id}", item.job, f"{parent}/{CUSTOM_JOB.collection}/{item.job}")
        for item in sorted(chosen, key=lambda entry: entry.number)
    ]


def _writer(*, as_json: bool, several: bool) -> Callable[[LogLine, str], None]:
    redactors = collections.defaultdict[tuple[str, str], LineRedactor](LineRedactor)

    def write(line: LogLine, trial: str) -> None:
        # A private key has several lines, which lines of other replicas may interrupt.
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


def wait_for(
    chosen: Sequence[AnyJob], jobs: Jobs, goal: Goal, deadline: float
) -> list[OperatorError]:
    """Wait for all jobs. Return the errors, which are WaitDeadlineErrors after the deadline."""

    def service(job: AnyJob) -> BackendJobs:
        ref = jobs.of(job).ref
        return backends.connect(ref.project, ref.region, kind_of(job))

    def tail(name: str, count: int) -> list[str]:
        job = jobs.get(name)
        reader, ids = logs.connect(jobs.of(job).ref.project), service(job).log_ids(name)
        return [line.text for id_ in ids for line in reader.tail(id_, count)]

    async def one(job: AnyJob) -> OperatorError | None:
        number = view.run(job)  # Labels of other programs' jobs may contain any text.
        run = int(number) if number.isdecimal() else 1
        try:
            ports = WaitPorts(
                service(job).get,
                tail,
                print_status,
                connect_ladder=lambda: deployed.ladder_of(job, jobs.of(job).ref),
                connect_idle_stop=lambda: deployed.idle_stop_of(job, jobs.of(job).ref),
            )
            await wait_for_job(Wait(view.title(job), run, goal, deadline), job.name, ports)
        except OperatorError as error:
            return error
        return None

    async def all_() -> list[OperatorError | None]:
        return await asyncio.gather(*(one(job) for job in chosen))

    return [error for error in asyncio.run(all_()) if error]
