"""The command line of ``vt jobs advance``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Final

import typer

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.advance.steps import climb_ladders, report_late, stop_idle, submit_due
from vertex_training_cli.advance.tick import Action, Step, Tick
from vertex_training_cli.console import json_document, plain
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.values import redact
from vertex_training_cli.options import Format, FormatOption, SelectedStack
from vertex_training_cli.status import print_line

#: All steps, in order.
STEPS: Final[Sequence[Step]] = (submit_due, climb_ladders, stop_idle, report_late)


def advance(
    stack: SelectedStack = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what is due, and do nothing.")
    ] = False,
    at: Annotated[
        str, typer.Option(metavar="TIME", help="As at this time, like 2026-11-30T06:00Z.")
    ] = "",
    format_: FormatOption = Format.TEXT,
) -> None:
    """Submit slots and rungs that are due, stop idle jobs, report late ones; made for a timer.

    Does what the state has, not the files here. Run it as often as you like, also twice at once: a
    slot is submitted once. --at is for the local cloud, and for --dry-run. Exit code: 0 done, 1
    something was refused or is not certain.
    """
    ref = stacks.find(stack)
    moment = _moment(at) if at else None
    if moment and not (dry_run or ref.is_local):
        raise typer.BadParameter("slots go by Google's clock: add --dry-run", param_hint="--at")
    pulumi = PulumiCli(ref.root, ref.running_environment())
    ref.connect_clients()  # after it: it makes this process's environment the local cloud's
    deployment = pulumi.export_deployment(ref.stack)
    found = list[Action]()
    for action in actions(Tick(ref, deployment, dry_run, at=moment)):
        found.append(action)
        if format_ is Format.TEXT:
            print(plain(action.line), flush=True)
    if format_ is Format.JSON:
        print(json_document([asdict(action) for action in found]))
    elif not found:
        print_line(f"vt: stack {ref.stack} has nothing that is due, and no job of it is late")
    if any(action.failed for action in found):
        raise typer.Exit(1)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time", param_hint="--at") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def actions(tick: Tick, steps: Sequence[Step] = STEPS) -> Iterator[Action]:
    """What all steps do; one that fails is reported, and the next one goes on."""
    for step in steps:
        try:
            yield from step(tick)
        except (OperatorError, CommandError) as error:
            name = step.__name__.replace("_", " ")
            yield Action(name, "", "failed", redact(str(error)), failed=True)
