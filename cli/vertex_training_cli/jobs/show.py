"""``vt jobs list`` and ``show``: a table on a terminal and off it, or JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import typer

from vertex_training.errors import OperatorError, did_you_mean
from vertex_training_cli.console import console, json_document, plain, show_facts, table
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.jobs import compare, ladders, trials, view
from vertex_training_cli.jobs.compare import Compared
from vertex_training_cli.jobs.metrics import MetricsReader

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob


#: Columns of metrics in a list.
MOST_METRICS: Final = 4
#: After the state of a job that ran on something else than it asked for.
MARK: Final = "*"


def known_state(text: str) -> str:
    """A state as the API names it, without its prefix.

    Raises:
        typer.BadParameter: there is no such state.
    """
    from vertex_training.customjob.google.vertex_api import JobState

    word = text.upper().removeprefix("JOB_STATE_")
    known = [state.name.removeprefix("JOB_STATE_") for state in JobState]
    if word not in known:
        hint = did_you_mean(word.lower(), [name.lower() for name in known])
        raise typer.BadParameter(f"there is no state {text!r}: {hint}", param_hint="--state")
    return word


def table_of(
    jobs: Sequence[AnyJob],
    ref: StackRef,
    limit: int,
    *,
    as_json: bool,
    log: Callable[[str], None],
    reader: MetricsReader | None = None,
) -> None:
    """Print the newest ``limit`` jobs; with ``reader``, also what they measured."""
    now = datetime.now(UTC)
    measured = reader.of_all(jobs[:limit]) if reader else {}
    if as_json:
        entries = [view.list_entry(job, now) for job in jobs[:limit]]
        for job, entry in zip(jobs, entries, strict=False):
            entry["substitutes"] = substitutes_of(job, ref)
            entry |= {"metrics": measured[job.name]} if reader else {}
        print(json_document(entries))
        return
    if not jobs:
        log("no such jobs")
        return
    runs = view.run_texts(jobs)
    marks = {job.name for job in jobs[:limit] if substitutes_of(job, ref)}
    names = list(dict.fromkeys(name for each in measured.values() for name in each))[:MOST_METRICS]
    cells = [(job, _row(job, runs[job.name], now, mark=job.name in marks)) for job in jobs[:limit]]
    if len({view.stack(job) for job, _ in cells}) > 1:
        cells = [(job, {**row, "stack": view.stack(job)}) for job, row in cells]
    used = [
        key
        for key in view.COLUMNS
        if key not in view.OPTIONAL or any(row.get(key) for _, row in cells)
    ]
    rows = [
        (
            *(row.get(key, "") for key in used),
            *(trials.shown(measured[job.name].get(name)) for name in names),
        )
        for job, row in cells
    ]
    heads = (*(key.upper() for key in used), *names)
    console().print(table(*heads, rows=rows))
    if marks:
        log(f"{MARK} not on the machine or Python that it asked for: `vt jobs show` says on what")
    if len(jobs) > limit:
        log(f"{len(jobs) - limit} older ones are not shown (--limit)")


def compared(found: Sequence[Compared], *, as_json: bool) -> None:
    """Print jobs side by side."""
    if as_json:
        print(json_document([each.as_json() for each in found]))
        return
    heads, rows = compare.table(found)
    console().print(table(*heads, rows=[tuple(map(plain, row)) for row in rows]))


def one(job: AnyJob, ref: StackRef, *, as_json: bool, reader: MetricsReader | None = None) -> None:
    """Print all that is known of a job; with ``reader``, also what it measured."""
    if as_json:
        print(json_document(view.message(job)))
        return
    rows = view.facts(job, ref.project, ref.region, datetime.now(UTC))
    if view.state(job) in ("CANCELLED", "CANCELLING") and (why := _why_cancelled(job, ref)):
        rows.insert(1, ("why", plain(why)))
    if found := substitutes_of(job, ref):
        rows.insert(1, ("ran", "; ".join(found)))
    if reader and not view.is_tuning(job):
        rows += [(name, trials.shown(value)) for name, value in reader.metrics(job).items()]
    head = "TUNING JOB" if view.is_tuning(job) else "JOB"
    show_facts(console(), (head, view.title(job)), rows)
    if view.is_tuning(job):
        heads, lines = trials.table(view.message(job))
        console().print()
        names = (*map(str.upper, heads[:2]), *heads[2:])
        console().print(table(*names, rows=lines))


def _why_cancelled(job: AnyJob, ref: StackRef) -> str:
    """What its record says of a cancellation; empty if it says nothing, as of most jobs."""
    if not any(pool.machine_spec.accelerator_count for pool in view.spec_of(job).worker_pool_specs):
        return ""  # `idleStop` leaves it alone: to read the state takes a second
    try:
        return ladders.stop_reason(job, ref)
    except OperatorError as error:
        return f"not known: {error}"


def substitutes_of(job: AnyJob, ref: StackRef) -> list[str]:
    """What a job of the local cloud ran on in place of what it asked for."""
    if not ref.is_local:
        return []
    from localgcp.home import Home
    from localgcp.runner import substitutes

    home, ids = Home.find(cwd=ref.root), [view.job_id(job)]
    if view.is_tuning(job):
        ids = [trial.job for trial in trials.trials_of(view.message(job)) if trial.job]
    return list(dict.fromkeys(line for each in ids for line in substitutes.read(home, each)))


def _row(job: AnyJob, run: str, now: datetime, *, mark: bool) -> dict[str, str]:
    """The cells of a job; a tuning job says that it is one."""
    cells = view.row(job, now) | {"run": run}
    cells["job"] += " (tuning)" if view.is_tuning(job) else ""
    cells["state"] += MARK if mark else ""
    return cells
