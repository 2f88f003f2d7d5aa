"""``vt jobs logs``."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from infra.customjob.google import logs
from infra.customjob.google.logs import JobLogs, Line
from infra.errors import CommandError
from vt.console import json_text, plain
from vt.jobs import view
from vt.jobs.service import Jobs

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob

#: Seconds between two reads. Cloud Logging allows 60 reads a minute in a project.
CLOUD_PAUSE: Final = 5.0
LOCAL_PAUSE: Final = 0.5


def show(
    jobs: Jobs,
    job: CustomJob,
    *,
    replica: str | None,
    follow: bool,
    tail: int | None,
    as_json: bool,
    log: Callable[[str], None],
) -> None:
    """Print a job's log, of one replica or of all; with several, each line names its replica.

    Raises:
        CommandError: there is no such replica.
    """
    known = view.replicas(job)
    if replica and replica not in known:
        raise CommandError(
            f"job {view.title(job)} has no replica {replica!r}.", f"it has: {', '.join(known)}."
        )
    reader = logs.connect(jobs.ref.project)
    write = _writer(as_json=as_json, several=replica is None and len(known) > 1)
    empty = True
    for line in _lines(jobs, job, reader, replica, follow=follow, tail=tail):
        write(line)
        empty = False
    if empty:
        log(f"nothing is in the log of job {view.title(job)}, which is {view.state(job)}")


def _lines(
    jobs: Jobs,
    job: CustomJob,
    reader: JobLogs,
    replica: str | None,
    *,
    follow: bool,
    tail: int | None,
) -> Iterable[Line]:
    number = view.job_id(job)
    if tail:
        return reader.tail(number, tail, replica)
    if not follow:
        return reader.lines(number, replica)
    pause = LOCAL_PAUSE if jobs.ref.is_local else CLOUD_PAUSE
    return reader.follow(
        number,
        replica,
        ended=lambda: view.has_ended(jobs.get(job.name)),
        pause=lambda: time.sleep(pause),
    )


def _writer(*, as_json: bool, several: bool) -> Callable[[Line], None]:
    def write(line: Line) -> None:
        if as_json:
            print(json_text(dataclasses.asdict(line)), flush=True)
        else:
            text = plain(line.text)
            print(f"{plain(line.replica)} | {text}" if several else text, flush=True)

    return write
