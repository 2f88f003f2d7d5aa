"""``vt jobs list`` and ``show``: a table on a terminal and off it, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vertex_training.errors import CommandError, did_you_mean
from vertex_training_cli.console import console, plain, show_facts, table
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import trials, view

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob


def known_state(text: str) -> str:
    """A state as the API names it, without its prefix.

    Raises:
        CommandError: there is no such state.
    """
    from vertex_training.customjob.google.vertex_api import JobState

    word = text.upper().removeprefix("JOB_STATE_")
    known = [state.name.removeprefix("JOB_STATE_") for state in JobState]
    if word not in known:
        hint = did_you_mean(word.lower(), [name.lower() for name in known])
        raise CommandError(f"there is no state {text!r}.", hint)
    return word


def table_of(
    jobs: Sequence[AnyJob], limit: int, *, as_json: bool, log: Callable[[str], None]
) -> None:
    """Print the newest ``limit`` jobs."""
    now = datetime.now(UTC)
    if as_json:
        print(json.dumps([view.list_entry(job, now) for job in jobs[:limit]], indent=2))
        return
    if not jobs:
        log("no such jobs")
        return
    runs = view.run_texts(jobs)
    rows = [_row(job, runs[job.name], now) for job in jobs[:limit]]
    console().print(table(*(key.upper() for key in view.COLUMNS), rows=rows))
    if len(jobs) > limit:
        log(f"{len(jobs) - limit} older ones are not shown (--limit)")


def one(job: AnyJob, ref: StackRef, *, as_json: bool) -> None:
    """Print all that is known of a job."""
    if as_json:
        print(json.dumps(view.message(job), indent=2))
        return
    rows = view.facts(job, ref.project, ref.region, datetime.now(UTC))
    head = "TUNING JOB" if view.is_tuning(job) else "JOB"
    show_facts(console(), (head, view.title(job)), rows)
    if view.is_tuning(job):
        heads, lines = trials.table(view.message(job))
        console().print()
        names = (*map(str.upper, heads[:2]), *map(plain, heads[2:]))
        console().print(table(*names, rows=lines))


def _row(job: AnyJob, run: str, now: datetime) -> tuple[str, ...]:
    """The cells of a job; a tuning job says that it is one."""
    cells = view.row(job, now) | {"run": run}
    cells["job"] += " (tuning)" if view.is_tuning(job) else ""
    return tuple(cells[key] for key in view.COLUMNS)
