"""``vt local down``: ends everything of the local cloud; ``--clean`` removes its files too."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from localgcp import lifecycle
from localgcp.batch.records import ACTIVE, BatchJob, BatchTable, State
from localgcp.errors import RpcCode
from localgcp.home import Home
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import LIVE_STATES, JobRecord, JobState, JobTable, RecordTable
from vertex_training_cli.engine import locks

_CANCELLED: Final = (
    RpcCode.CANCELLED,
    "The job was cancelled: the local cloud was taken down.",
)


def down(home: Home, *, clean: bool, report: Callable[[str], None]) -> None:
    """Cancel all jobs, stop the server, and remove the files with ``clean``. Repeatable.

    Raises LocalCloudError if the files are not ours, or pulumi is at work on them.
    """
    if clean:
        _check_removable(home)  # before anything is stopped that pulumi works with
    tables: tuple[RecordTable[Any], ...] = (TuningTable(home.database), JobTable(home.database))
    live: list[tuple[RecordTable[Any], JobRecord]] = []
    batch, of_batch = BatchTable(home), list[BatchJob]()
    with _records_if_possible(report):
        if home.database.exists():
            live = [(t, job) for t in tables for job in t.list() if not job.state.terminal]
            of_batch = batch.list(states=ACTIVE)
        for table, job in live:
            # The server ends a CANCELLING job as CANCELLED when it stops.
            table.move(job.job_id, JobState.CANCELLING, only_from=LIVE_STATES)
        for each in of_batch:
            batch.move(each.name, State.CANCELLING, ACTIVE)
    stopped = lifecycle.stop(home)
    with _records_if_possible(report):
        for table, job in live:
            if table.move(job.job_id, JobState.CANCELLED, error=_CANCELLED):
                report(f"job {job.display_name} ({job.job_id}) was cancelled")
        for each in of_batch:
            batch.move(each.name, State.CANCELLED, (State.CANCELLING,))
            report(f"job {each.job_id} of Batch was cancelled")
    report("stopped" if stopped else "nothing was running")
    if clean:
        _check_removable(home)
        if lifecycle.remove(home):
            report(f"removed {home.root}")


def _check_removable(home: Home) -> None:
    """Raises LocalCloudError or CommandError if there are files that are not ours, or in use."""
    lifecycle.check_removable(home)
    if live := [lock for lock in locks.in_folder(home.pulumi) if lock.alive]:
        raise live[0].refusal()


@contextmanager
def _records_if_possible(report: Callable[[str], None]) -> Iterator[None]:
    """With a full disk or a damaged file no record can be changed; the rest must end all the same.

    A job left as it was is settled by the next server.
    """
    try:
        yield
    except sqlite3.Error as error:
        report(f"the records of the jobs cannot be changed: {error}")
