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
    str, typer.Option(help="Replica for kill (default: workerpool0-0) and preempt (default: all).")
]


def add(
    service: Annotated[str, typer.Argument(metavar="SERVICE")],
    kind: Annotated[str, typer.Argument(metavar="KIND")],
    method: Annotated[
        str,
        typer.Option(help="Only calls of this method: CreateCustomJob, objects.insert, objects.*"),
    ] = "*",
    match: Annotated[
        str, typer.Option(help="Only calls with this text in name, label, id, filter or path.")
    ] = "",
    when: Annotated[str, typer.Option(help="`before` or `after` the effect of the call.")] = (
        "before"
    ),
    code: Annotated[
        str, typer.Option(help="Code of an error: UNAVAILABLE on jobs, 503 on storage.")
    ] = (""),
    seconds: Annotated[
        float | None, typer.Option(help="Duration, for kinds that have one.")
    ] = None,
    replica: _Replica = "",
    nth: Annotated[int, typer.Option(help="Begin with the nth matching call.")] = 1,
    times: Annotated[
        int | None,
        typer.Option(help="Number of times; 0: until cleared. Default: depends on KIND."),
    ] = None,
    probability: Annotated[float, typer.Option(help="Probability for each call.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the random choices.")] = 0,
    patch: Annotated[
        str, typer.Option(help="Fields of the answer that patch replaces.", metavar="JSON")
    ] = "{}",
    value: Annotated[
        float | None, typer.Option(help="Utilization of accelerators, 0 to 1.")
    ] = None,
) -> None:
    """Add a fault and print its id.

    SERVICE is jobs, models (with endpoints and predictions), operations (of models and endpoints),
    storage, or one that is only read: iam, compute, serviceusage, cloudbilling, monitoring, others.
    KIND on jobs, models and storage: error (--code), drop (no answer), delay (--seconds), reset
    (connection closed), truncate (half an answer), hold (until `vt local fault release`); on
    operations: error, delay, hold; on jobs alone: stale (lists lack jobs younger than --seconds),
    short-pages, lost-page, lost-record, stockout (wait for --seconds, else the job fails), preempt
    (strategy SPOT) and kill, which accept --replica and happen after --seconds; on others: deny (no
    permission or reservation, quota 0), patch (--patch changes the answer), error, delay; on
    monitoring also utilization (--value for the last --seconds).

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
    """List faults, how often each happened, and the calls they hold."""
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
    """Remove one fault, or all. Calls that a removed fault holds are aborted."""
    with private_files():
        print_status(f"{clear_faults(Home.find(), fault_id)} cleared")


def release(fault_id: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Continue the calls that a fault holds. The fault holds no further calls."""
    with private_files():
        for call in FaultTable(Home.find().faults).release(fault_id):
            print_status(f"released {call}")


def wait(
    fault_id: Annotated[int, typer.Argument(metavar="ID")],
    timeout: Annotated[float, typer.Option(help="Maximum time in seconds.")] = 60.0,
) -> None:
    """Wait until a fault holds a call, and print that call.

    Exit code: 1 after the timeout.
    """
    with private_files():
        print(FaultTable(Home.find().faults).wait_held(fault_id, timeout))
