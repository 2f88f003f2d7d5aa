"""`vt local down`: nothing of the local cloud is left running, with `--clean` nothing at all."""

from __future__ import annotations

from collections.abc import Callable

from vt.local import lifecycle
from vt.local.home import Home
from vt.local.vertex.records import LIVE, JobTable, State

_CANCELLED = (1, "The job was cancelled: the local cloud was taken down.")
"""google.rpc.Code.CANCELLED"""


def down(home: Home, *, clean: bool, say: Callable[[str], None]) -> None:
    """Cancel all jobs, stop the server, and remove the files with `clean`. Repeatable.

    Raises LocalError if the files are not ours, or pulumi is at work on them.
    """
    jobs = JobTable(home.database)
    live = [job for job in jobs.list() if not job.state.terminal] if home.database.exists() else []
    for job in live:
        # The server ends a CANCELLING job as CANCELLED when it stops.
        jobs.move(job.job_id, State.CANCELLING, only_from=LIVE)
    stopped = lifecycle.stop(home)
    for job in live:
        if jobs.move(job.job_id, State.CANCELLED, error=_CANCELLED):
            say(f"job {job.display_name} ({job.job_id}) was cancelled")
    say("stopped" if stopped else "nothing was running")
    if clean:
        lifecycle.remove(home)
        say(f"removed {home.root}")
