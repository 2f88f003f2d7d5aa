"""``vt local fault …``: arguments, messages and exit codes."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from localgcp.faults.model import Fault
from localgcp.faults.table import FaultTable, inject
from localgcp.faults.table import clear as clear_faults
from localgcp.home import Home
from vertex_training_cli.console import console, print_status, table
from vertex_training_cli.local.commands import private_files

_Replica = Annotated[
    str,
    typer.Option(
        help="Replica that `kill` (default: workerpool0-0) or `preempt` (default: all) ends."
    ),
]
_Patch = Annotated[
    str, typer.Option(help="Fields that kind `patch` replaces in the answer.", metavar="JSON")
]


def add(
    service: Annotated[str, typer.Argument(metavar="SERVICE")],
    kind: Annotated[str, typer.Argument(metavar="KIND")],
    method: Annotated[
        str,
        typer.Option(help="Affect only calls of this method, such as CreateCustomJob or objects.*"),
    ] = "*",
    match: Annotated[
        str, typer.Option(help="Affect calls with this text in a name, label, id, filter or path.")
    ] = "",
    when: Annotated[
        str, typer.Option(help="Time of the fault: `before` or `after` the call has an effect.")
    ] = "before",
    code: Annotated[
        str, typer.Option(help="Error code, such as UNAVAILABLE (jobs) or 503 (storage).")
    ] = "",
    seconds: Annotated[
        float | None, typer.Option(help="Duration or delay of the fault in seconds.")
    ] = None,
    replica: _Replica = "",
    nth: Annotated[int, typer.Option(help="Number of the first call that gets the fault.")] = 1,
    times: Annotated[
        int | None,
        typer.Option(help="Number of affected calls. 0: all calls. Default: depends on KIND."),
    ] = None,
    probability: Annotated[
        float, typer.Option(help="Probability of the fault in each call.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers for --probability.")] = 0,
    patch: _Patch = "{}",
    value: Annotated[
        float | None, typer.Option(help="Utilization of accelerators, 0 to 1.")
    ] = None,
) -> None:
    """Add a fault and print its id.

    SERVICE is jobs, models (also endpoints and predictions), operations (of models and endpoints),
    storage, or a read-only service: iam, compute, serviceusage, cloudbilling, monitoring, others.

    Kinds on jobs, models and storage: error (--code), drop (no answer), delay (--seconds), reset
    (connection closed), truncate (half an answer), hold (until `vt local fault release`).
    Kinds on operations: error, delay, hold.

    More kinds on jobs: stale (lists omit jobs younger than --seconds), short-pages, lost-page,
    lost-record, stockout (the job waits for --seconds, or fails without it), preempt (strategy
    SPOT) and kill. preempt and kill accept --replica and happen after --seconds.

    Kinds on read-only services: deny (no permission or reservation, quota 0), patch (--patch
    changes the answer), error, delay. On monitoring also utilization (--value for the last
    --seconds).

    Example: `vt local fault add jobs preempt --match titanic`.
    """
    with private_files():
        fault = Fault.parse(
            service=service, kind=kind, method=method, match=match, when=when, code=code,
            seconds=seconds, replica=replica, nth=nth, times=times,
            probability=probability, seed=seed, patch=_json_or_text(patch), value=value,
        )  # fmt: skip
        print(inject(Home.find(), fault))


def _json_or_text(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def show(
    json_: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List faults, the number of affected calls, and the calls that a fault stops."""
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
    console().print(table("ID", "FAULT", "HAPPENED", "CALLS ON HOLD", rows=rows))


def clear(
    fault_id: Annotated[int | None, typer.Argument(metavar="ID", show_default=False)] = None,
) -> None:
    """Remove one fault, or all faults. Calls that a removed `hold` fault stops are aborted."""
    with private_files():
        print_status(f"{clear_faults(Home.find(), fault_id)} cleared")


def release(fault_id: Annotated[int, typer.Argument(metavar="ID")]) -> None:
    """Continue the calls that a `hold` fault stopped. The fault stops no further calls."""
    with private_files():
        for call in FaultTable(Home.find().faults).release(fault_id):
            print_status(f"released {call}")


def wait(
    fault_id: Annotated[int, typer.Argument(metavar="ID")],
    timeout: Annotated[float, typer.Option(help="Maximum time in seconds.")] = 60.0,
) -> None:
    """Wait until a `hold` fault stops a call, and print the call.

    Exit code: 1 after the timeout.
    """
    with private_files():
        print(FaultTable(Home.find().faults).wait_held(fault_id, timeout))
