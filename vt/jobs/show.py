"""``vt jobs list`` and ``show``: a table on a terminal and off it, or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from infra.errors import CommandError, did_you_mean
from vt.console import console, show_facts, table
from vt.engine.stacks import StackRef
from vt.jobs import view

if TYPE_CHECKING:
    from infra.customjob.google.vertex_api import CustomJob


def known_state(text: str) -> str:
    """A state as the API names it, without its prefix.

    Raises:
        CommandError: there is no such state.
    """
    from infra.customjob.google.vertex_api import JobState

    word = text.upper().removeprefix("JOB_STATE_")
    known = [state.name.removeprefix("JOB_STATE_") for state in JobState]
    if word not in known:
        hint = did_you_mean(word.lower(), [name.lower() for name in known])
        raise CommandError(f"there is no state {text!r}.", hint)
    return word


def table_of(
    jobs: Sequence[CustomJob], limit: int, *, as_json: bool, log: Callable[[str], None]
) -> None:
    """Print the newest ``limit`` jobs."""
    now = datetime.now(UTC)
    if as_json:
        print(json.dumps([view.list_entry(job, now) for job in jobs[:limit]], indent=2))
        return
    if not jobs:
        log("no such jobs")
        return
    rows = [tuple(view.row(job, now)[key] for key in view.COLUMNS) for job in jobs[:limit]]
    console().print(table(*(key.upper() for key in view.COLUMNS), rows=rows))
    if len(jobs) > limit:
        log(f"{len(jobs) - limit} older ones are not shown (--limit)")


def one(job: CustomJob, ref: StackRef, *, as_json: bool) -> None:
    """Print all that is known of a job."""
    if as_json:
        print(json.dumps(view.message(job), indent=2))
        return
    rows = view.facts(job, ref.project, ref.region, datetime.now(UTC))
    show_facts(console(), ("JOB", view.title(job)), rows)
