"""The command line of ``vt verify``."""

from __future__ import annotations

import os
import signal
import sys
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Annotated, Final

import typer

from vertex_training.errors import CommandError
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.pulumi_cli import PulumiCli
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.status import print_line
from vertex_training_cli.verify import refusals, steps
from vertex_training_cli.verify.observations import differences, normaliser
from vertex_training_cli.verify.steps import Run

#: Exit code: the cloud did not do what was rehearsed.
DIFFERS: Final = 7
#: Exit code: the stack's name was not given.
NOT_CONFIRMED: Final = 2
#: Exit code: this stack is none to verify; nothing was made.
REFUSED: Final = 3


def verify(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="A temporary stack. It is destroyed at the end.")
    ],
    max_usd: Annotated[
        float, typer.Option("--max-usd", min=0, help="Maximum cost of the stack's jobs.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the stack if a step fails or is interrupted.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the result files.", metavar="DIR"),
    ] = None,
) -> None:
    """Deploy a temporary stack once and compare Google Cloud with the local cloud.

    Steps: preflight, up, wait for the job, a second up, drift, an edit while the job runs, destroy.
    Writes one line for each observed field, state and code to observations.txt, and the lines that
    differ from a run on the local cloud to differences.txt. Both files omit secrets, people and
    project names. docs/examples/first-run has a stack file and its cost.

    Refuses a stack that already has resources or jobs, protects a resource, is a production stack,
    or whose jobs can cost more than --max-usd. If a step fails, the stack is destroyed anyway.

    Example: `vt verify --stack first --max-usd 5`.

    Exit code: 0 no differences, 7 differences, 1 a step failed, 2 not confirmed, 3 refused.
    """
    ref = stacks.find(stack)
    run = _prepare(ref, max_usd)
    if not yes and not _confirmed(ref, run):
        _log("nothing was made. Without a terminal: --yes")
        raise typer.Exit(NOT_CONFIRMED)
    _log(f"if this is killed, one command removes what is left: {refusals.clean_command(ref)}")
    ended = _run(run, keep=keep)
    rehearsed = resources.files(__package__ or "").joinpath("rehearsal.txt")
    before = rehearsed.read_text(encoding="utf-8").splitlines()
    changes = list(differences(before, run.observed))
    folder = (output or run.folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("observations", sorted(run.observed)), ("differences", changes)):
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    _log(f"{len(changes)} lines differ: {folder / 'differences.txt'}")
    raise typer.Exit(1 if ended else DIFFERS if changes else 0)


def _log(text: str) -> None:
    print_line(f"vt verify: {text}")


def _prepare(ref: StackRef, max_usd: float) -> Run:
    """The run, if nothing stands against it; else end the command. Nothing is made."""
    subject = refusals.read_subject(ref)
    problems = refusals.price_refusals(subject, max_usd)
    # Every step is to reach what this one does, also once clients are connected by variables.
    os.environ.update(ref.deployment_environment(_log))
    pulumi = PulumiCli(ref.root, os.environ)
    try:
        problems += refusals.state_refusals(ref, pulumi.export_deployment(ref.stack))
    except CommandError as error:
        if "no stack named" not in str(error):  # it may have what a run would destroy
            raise
        _log(f"stack {ref.stack} has no state yet: {error}")
    problems += refusals.job_refusals(ref, subject, refusals.stack_jobs(ref))
    if problems:
        for problem in problems:
            _log(str(problem))
        _log("refused; nothing was made.")
        raise typer.Exit(REFUSED)
    own = {ref.project: "PROJECT", subject.number: "NUMBER", ref.region: "REGION"}
    own |= {ref.stack: "STACK", str(ref.root): "CHECKOUT", str(Path.home()): "HOME"}
    folder = ref.root / ".build" / "verify" / f"{ref.stack}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    _log(subject.price)
    return Run(ref, pulumi, subject, folder, normaliser(own), _log)


def _confirmed(ref: StackRef, run: Run) -> bool:
    """Return whether the user typed the stack's name."""
    if not sys.stdin.isatty():
        return False
    name, project = ref.stack, ref.project
    _log(f"makes stack {name} in project {project}, and destroys it. {run.subject.price}")
    try:
        return input(f"Type the name of the stack to go on ({name}): ").strip() == name
    except (EOFError, KeyboardInterrupt):
        return False


def _run(run: Run, *, keep: bool) -> str:
    """Run the steps, and destroy. Returns why they ended early; empty if they did not."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    last, ended = "", ""
    try:
        last = steps.run_steps(run)
    except KeyboardInterrupt:
        ended = "interrupted"
    except Exception as error:  # also one of ours: what was made goes, and the page is written
        _log(ended := str(error) or type(error).__name__)
    if not run.is_made:
        return ended  # there is nothing to destroy
    if ended and keep:
        _log(f"kept, as asked. To remove it: {refusals.clean_command(run.ref)}")
        return ended
    try:
        steps.destroy(run, last)
    except (Exception, KeyboardInterrupt) as error:
        _log(f"not all is destroyed. To remove it: {refusals.clean_command(run.ref)}")
        _log(failed := str(error) or type(error).__name__)
        return ended or failed
    return ended
