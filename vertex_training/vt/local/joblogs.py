"""``vt local logs``: find a job the way people name it, and print or follow a replica's log."""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from vertex_training.infra.errors import LocalCloudError
from vertex_training.localcloud.home import Home
from vertex_training.localcloud.vertex.records import JobRecord, JobTable
from vertex_training.vt.console import plain_lines
from vertex_training.vt.engine.stack_state import job_ids_named

_POLL_SECONDS: Final = 0.2


def find_job(jobs: list[JobRecord], wanted: str | None, in_stack: Collection[str]) -> JobRecord:
    """The newest job with this id, name or display name, or with an id of ``in_stack``.

    ``jobs`` are newest first; ``wanted`` None takes the first. Raises LocalCloudError if there is
    none.
    """
    for job in jobs:
        names = (job.job_id, job.name, job.display_name)
        if wanted is None or wanted in names or job.job_id in in_stack:
            return job
    if not jobs:
        raise LocalCloudError(
            "the local cloud has no job yet.", "`vt local up` submits the stack's."
        )
    known = ", ".join(sorted({job.display_name for job in jobs}))
    raise LocalCloudError(f"there is no job {wanted!r}.", f"there are: {known}.")


def log_file(home: Home, job: JobRecord, replica: str) -> Path:
    """Path of a replica's log, which may not exist yet."""
    return home.jobs / job.job_id / "logs" / f"{replica}.log"


def show(home: Home, wanted: str | None, replica: str, *, follow: bool) -> None:
    """Print the log to stdout; with ``follow`` until the job has ended.

    Raises LocalCloudError if there is no such job or no such log.
    """
    table = JobTable(home.database)
    in_stack = job_ids_named(home, wanted) if wanted else []
    job = find_job(table.list() if home.database.exists() else [], wanted, in_stack)
    path = log_file(home, job, replica)
    offset = 0
    # A look may end in the middle of a character; the next one brings the rest.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        current = table.get(job.job_id)
        ended = current is None or current.state.terminal
        offset = _print_from(path, offset, decoder, final=ended or not follow)
        if ended or not follow:
            break
        time.sleep(_POLL_SECONDS)
    if not path.exists():
        written = ", ".join(sorted(file.stem for file in path.parent.glob("*.log")))
        state = current.state.word if current else "deleted"
        raise LocalCloudError(
            f"job {job.display_name} ({state}) has no log of {replica}"
            + (f"; there is: {written}." if written else " yet.")
        )


def _print_from(path: Path, offset: int, decoder: codecs.IncrementalDecoder, *, final: bool) -> int:
    try:
        with path.open("rb") as log:
            log.seek(offset)
            data = log.read()
    except FileNotFoundError:
        return offset
    sys.stdout.write(plain_lines(decoder.decode(data, final)))
    sys.stdout.flush()
    return offset + len(data)
