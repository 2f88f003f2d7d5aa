"""The command line of ``vt new``. Exit code: 0 in order, 1 with mistakes, 2 wrong usage."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from vertex_training import stack as stacks
from vertex_training.errors import CheckUnavailableError, CommandError
from vertex_training.settings import stack_files
from vertex_training.settings.model import Settings
from vertex_training_cli.engine import paths
from vertex_training_cli.importing import proposal
from vertex_training_cli.importing.command import offer
from vertex_training_cli.importing.imported import to_key
from vertex_training_cli.importing.proposal import Proposal
from vertex_training_cli.new import code as existing
from vertex_training_cli.new import template
from vertex_training_cli.new.template import Choices
from vertex_training_cli.options import StackOfJob, Write, seconds
from vertex_training_cli.status import print_line

Name = Annotated[str, typer.Argument(help="Name of the job in the stack: a-z, 0-9 and hyphens.")]
Command = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- COMMAND...]", help="With --image: its command. Else arguments of the code."
    ),
]
Image = Annotated[
    str, typer.Option("--image", help="An image, or one of the stack's images by its name.")
]
Package = Annotated[
    bool, typer.Option("--package", help="Code of this checkout, for which a first file is made.")
]
CodePath = Annotated[
    Path | None,
    typer.Option("--code", help="Code of this checkout that is there: a folder or a script."),
]
Module = Annotated[
    str, typer.Option("--module", help="With --code: what to run of a package, such as mine.task.")
]
Machine = Annotated[str, typer.Option("--machine", help="Machine type (`vt catalogue`).")]
Accelerator = Annotated[str, typer.Option("--accelerator", help="GPU type, such as NVIDIA_L4.")]
Count = Annotated[int, typer.Option("--accelerators", min=1, help="GPUs of a machine.")]
Replicas = Annotated[int, typer.Option(min=1, max=1000, help="Machines.")]
Timeout = Annotated[str, typer.Option(help="After which it is ended: 90s, 30m, 2h, 1d.")]
Spot = Annotated[bool, typer.Option("--spot", help="On Spot machines, which may be taken away.")]


def job(
    name: Name,
    command: Command = None,
    stack: StackOfJob = "local",
    image: Image = "",
    package: Package = False,
    code: CodePath = None,
    module: Module = "",
    machine: Machine = "",
    accelerator: Accelerator = "",
    accelerators: Count = 1,
    replicas: Replicas = 1,
    timeout: Timeout = "1h",
    spot: Spot = False,
    write: Write = False,
) -> None:
    """Make a job file, a first file of code, and the entry of the stack.

    With --code, it runs code that is there: a script, a package, or a project that has one.
    What is not said is asked on a terminal. Nothing that is there is overwritten. Exit code: 0 in
    order, 1 mistakes, 2 not made.
    """
    words = tuple(command or ())
    _ensure_one_kind(image, code, module, package=package)
    ends_after = f"{seconds(timeout, '--timeout')}s"
    root, settings = _settings(stack, name)
    if package:
        _ensure_no_code(root / "jobs" / name.replace("-", "_"), root)
    found = existing.find(code, root, module) if code else None
    given = Choices(
        name, image, words, machine, accelerator, accelerators, replicas, ends_after, spot, found
    )
    proposal = _proposal(_asked(given, package=package), root, stack, settings)
    offer(proposal, write=write)
    if not write and sys.stdin.isatty() and typer.confirm("Write these files?", err=True):
        proposal.write()
        print_line(f"Written: {name}. Next: `vt up --stack {stack}`.")


def _ensure_one_kind(image: str, code: Path | None, module: str, *, package: bool) -> None:
    if bool(image) + bool(code) + package > 1:
        raise CommandError("choose one of --image, --package and --code.")
    if module and not code:
        raise CommandError("--module is for --code.", "name the code, too")
    if not image and not package and not code and not sys.stdin.isatty():
        raise CommandError("say what it runs: --image IMAGE, --code PATH, or --package.")


def _ensure_no_code(folder: Path, root: Path) -> None:
    if any(folder.rglob("*.py")):
        shown = folder.relative_to(root).as_posix()
        hint = f"--code {shown} takes the code in it; or choose another name"
        raise CommandError(f"{shown} is there already.", hint)


def _settings(stack: str, name: str) -> tuple[Path, Settings]:
    """The checkout and the stack's settings; the name has to be free there."""
    root = paths.root_of(Path.cwd())
    if root is None:
        raise CheckUnavailableError("no Pulumi.yaml here or above: a stack needs a project")
    settings = stacks.read_settings(stack_files.read_raw(stacks.SCHEMA, root, stack), root)
    if to_key(name) in settings.jobs:
        raise CommandError(f"{stack} has a job {name} already.", "choose another name")
    if (root / "jobs" / f"{name}.yaml").exists():
        raise CommandError(f"jobs/{name}.yaml is there already.", "choose another name")
    return root, settings


def _asked(given: Choices, *, package: bool) -> Choices:
    """The choices with the answers of a person, or what is usual where nobody can be asked."""
    if not sys.stdin.isatty():
        return dataclasses.replace(given, machine=given.machine or "n1-standard-4")
    if not given.image and not given.code and not package:
        image = typer.prompt("Image (empty: code of this checkout)", default="", err=True)
        given = dataclasses.replace(given, image=image.strip())
    if not given.machine:
        machine = typer.prompt("Machine type", default="n1-standard-4", err=True)
        given = dataclasses.replace(given, machine=machine.strip())
    return given


def _proposal(choices: Choices, root: Path, stack: str, settings: Settings) -> Proposal:
    made = proposal.propose(template.source_of(choices, settings), root, root, stack, settings)
    if choices.code:
        made.named.append(choices.code.path)
        made.files |= choices.code.files
    return made
