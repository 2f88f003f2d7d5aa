"""`vt local down`: nothing of the local cloud is left running, with `--clean` nothing at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from localcloud import lifecycle
from localcloud.home import Home
from localcloud.vertex.records import LIVE, JobRecord, JobTable, State

_CANCELLED = (1, "The job was cancelled: the local cloud was taken down.")
"""google.rpc.Code.CANCELLED"""


def down(home: Home, *, clean: bool, say: Callable[[str], None]) -> None:
    """Cancel all jobs, stop the server, and remove the files with `clean`. Repeatable.

    Raises LocalError if the files are not ours, or pulumi is at work on them.
    """
    if clean:
        lifecycle.check_removable(home)  # before anything is stopped that pulumi works with
    jobs = JobTable(home.database)
    live: list[JobRecord] = []
    with _records_if_possible(say):
        if home.database.exists():
            live = [job for job in jobs.list() if not job.state.terminal]
        for job in live:
            # The server ends a CANCELLING job as CANCELLED when it stops.
            jobs.move(job.job_id, State.CANCELLING, only_from=LIVE)
    stopped = lifecycle.stop(home)
    with _records_if_possible(say):
        for job in live:
            if jobs.move(job.job_id, State.CANCELLED, error=_CANCELLED):
                say(f"job {job.display_name} ({job.job_id}) was cancelled")
    say("stopped" if stopped else "nothing was running")
    if clean and lifecycle.remove(home):
        say(f"removed {home.root}")


@contextmanager
def _records_if_possible(say: Callable[[str], None]) -> Iterator[None]:
    """With a full disk or a damaged file no record can be changed; the rest must end all the same.

    A job left as it was is settled by the next server.
    """
    try:
        yield
    except sqlite3.Error as error:
        say(f"the records of the jobs cannot be changed: {error}")
