"""``vt local fault …``: arguments, messages and exit codes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable, inject
from localgcp.faults.table import clear as clear_faults
from localgcp.home import Home
from vertex_training_cli.console import console, table
from vertex_training_cli.local.commands import private_files
from vertex_training_cli.status import print_status

_Replica = Annotated[
    str, typer.Option(help="Of kill (default: workerpool0-0) and preempt (default: all).")
]


def add(
    service: Annotated[str, typer.Argument(metavar="SERVICE")],
    kind: Annotated[str, typer.Argument(metavar="KIND")],
    method: Annotated[
        str, typer.Option(help="Only this method: CreateCustomJob, objects.insert, objects.*")
    ] = "*",
    match: Annotated[
        str,
        typer.Option(
            help="Only where a job's name, label, id, list filter, BUCKET/OBJECT or path has it."
        ),
    ] = "",
    when: Annotated[str, typer.Option(help="before or after the call has had its effect.")] = (
        "before"
    ),
    code: Annotated[str, typer.Option(help="Of an error: UNAVAILABLE on jobs, 503 on storage.")] = (
        ""
    ),
    seconds: Annotated[float | None, typer.Option(help="How long, for kinds that last.")] = None,
    replica: _Replica = "",
    nth: Annotated[int, typer.Option(help="Begin with the nth call that fits.")] = 1,
    times: Annotated[
        int | None, typer.Option(help="How often; 0: until cleared. Default: depends on KIND.")
    ] = None,
    probability: Annotated[float, typer.Option(help="Chance that it happens to a call.")] = 1.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same choices.")] = 0,
    patch: Annotated[
        str, typer.Option(help="Of patch: fields of the answer that are otherwise.", metavar="JSON")
    ] = "{}",
    value: Annotated[
        float | None, typer.Option(help="Of utilization: what accelerators do, 0 to 1.")
    ] = None,
) -> None:
    """Add a fault; prints its id.

    SERVICE is jobs, models (calls of models, endpoints and predictions), operations (what these
    calls began), storage (Cloud Storage), or one that is only asked, before a job is replaced and
    by `vt preflight`: iam, compute, serviceusage, cloudbilling and others. KIND, on jobs, models
    and storage:

    error (--code), drop (no answer), delay (--seconds), reset (connection closed), truncate (half
    an answer), hold (until `vt local fault release`).

    On operations: error, delay, hold. On jobs alone: stale (--seconds: lists lack younger jobs),
    short-pages, lost-page, lost-record, stockout (--seconds: wait so long; else FAILED), preempt
    (jobs with strategy SPOT), kill; the last two take --replica, and happen once a job has run for
    --seconds. On those that are asked: deny (no permission, no reservation, a quota of 0), patch
    (--patch is merged into the answer), error, delay. On monitoring also utilization (--value for
    the last --seconds).

    Example: `vt local fault add jobs preempt --match titanic`.
    """
    with private_files():
        wanted = Fault.parse(
            service=service, kind=kind, method=method, match=match, when=when, code=code,
            seconds=seconds, replica=replica, nth=nth, times=times,
            probability=probability, seed=seed, patch=_json(patch), value=value,
        )  # fmt: skip
        print(inject(Home.find(), wanted))


def _json(text: str) -> object:
    """``text`` as JSON, or as it is: what is no object is refused with the rest."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def show(
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show the faults, how often each happened, and the calls they hold."""
    with private_files():
        entries = FaultTable(Home.find().faults).entries()
    if json_:
        print(json.dumps([entry.as_json() for entry in entries], indent=2))
        return
    if not entries:
        print_status("no faults")
        return
    rows = [
        (str(entry.id), entry.fault.describe(), entry.uses, ", ".join(entry.held))
        for entry in entries
    ]
    console().print(table("ID", "FAULT", "HAPPENED", "HOLDS NOW", rows=rows))


def clear(
    fault_id: Annotated[int | None, typer.Argument(metavar="ID", show_default=False)] = None,
) -> None:
    """Remove one fault, or all. A call that one holds ends without having gone on."""
    with private_files():
        print_status(f"{clear_faults(Home.find(), fault_id)} cleared")


def release(fault_id: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Let the calls go on that a fault holds. It holds no further ones."""
    with private_files():
        for call in FaultTable(Home.find().faults).release(fault_id):
            print_status(f"released {call}")


def wait(
    fault_id: Annotated[int, typer.Argument(metavar="ID")],
    timeout: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
) -> None:
    """Wait until a fault holds a call, and print that call. Exit code 1 if none came in time."""
    with private_files():
        print(FaultTable(Home.find().faults).wait_held(fault_id, timeout))
