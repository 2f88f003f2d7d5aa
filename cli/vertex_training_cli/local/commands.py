"""``vt local …``: arguments, messages and exit codes."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from localgcp import lifecycle
from localgcp.home import PRIVATE_UMASK, Home
from localgcp.runner import substitutes
from vertex_training_cli.local import joblogs, shutdown
from vertex_training_cli.local import shell as local_shell
from vertex_training_cli.local import status as local_status
from vertex_training_cli.local import up as local_up
from vertex_training_cli.status import print_line


def report(text: str) -> None:
    """A line about what is going on: stderr, so that stdout is the command's result."""
    print_line(f"vt: {text}")


@contextmanager
def private_files() -> Iterator[int]:
    """Make files for this user alone; say what goes on after Ctrl-C. Yields the earlier umask."""
    umask = os.umask(PRIVATE_UMASK)
    try:
        yield umask
    except KeyboardInterrupt:
        report("interrupted; what was started goes on (`vt local status`, `vt local down`)")
        raise
    finally:
        os.umask(umask)


def up(
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack to bring up.")] = "local",
    wait: Annotated[bool, typer.Option(help="Wait until all jobs of the stack ended.")] = True,
    images: Annotated[
        bool,
        typer.Option(
            "--images",
            help="Run jobs as images, in stack STACK-image, if this machine can build them.",
        ),
    ] = False,
) -> None:
    """Start the local cloud, run `pulumi up`, wait for the jobs, show what came out.

    Exit code 0 only if `pulumi up` and all jobs succeeded. An `up` that changes nothing submits
    nothing.
    """
    with private_files():
        raise typer.Exit(local_up.run(Home.find(), stack, wait=wait, images=images, report=report))


class PrebuiltImages(enum.StrEnum):
    """What runs a job whose prebuilt image has a version that is not here."""

    NEAREST = enum.auto()
    """The nearest version that is."""
    EXACT = enum.auto()
    """Nothing: the job is refused."""


def start(
    prebuilt: Annotated[
        PrebuiltImages | None,
        typer.Option(
            metavar="WHICH",
            help="nearest: the nearest version stands in for a prebuilt image that is not here; "
            "exact: none does. Kept, and applies to jobs that start later.",
        ),
    ] = None,
) -> None:
    """Start the local cloud; does nothing if it runs."""
    with private_files():
        home = Home.find()
        info = lifecycle.start(home, report)
        if prebuilt is not None:
            substitutes.take_nearest(home, on=prebuilt is PrebuiltImages.NEAREST)
        report(f"running (process {info.pid})")


def stop() -> None:
    """Stop the local cloud and keep its files. A job that runs fails; waiting jobs go on later."""
    with private_files():
        report("stopped" if lifecycle.stop(Home.find()) else "nothing was running")


def down(
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove its files too: stacks, buckets, jobs, logs.")
    ] = False,
) -> None:
    """Cancel all jobs and stop everything that was started."""
    with private_files():
        shutdown.down(Home.find(), clean=clean, report=report)


def status() -> None:
    """Show the server, its ports, the resources and the jobs. Exit code 1 if it does not run."""
    with private_files():
        raise typer.Exit(0 if local_status.show(Home.find()) else 1)


def shell(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Run this instead of a shell.")
    ] = None,
) -> None:
    """Open a shell in which pulumi and Google's clients use the local cloud.

    Exit code: that of the shell or the command.
    """
    with private_files() as umask:
        local_shell.enter(Home.find(), command, report, umask)


def logs(
    job: Annotated[
        str | None,
        typer.Argument(help="Id, display name or name in the stack; default: the newest job."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job ends.")
    ] = False,
    replica: Annotated[str, typer.Option(help="Replica of the job.")] = "workerpool0-0",
    trial: Annotated[
        str | None, typer.Option(help="Trial of a tuning job; default: each in turn.")
    ] = None,
) -> None:
    """Print the log of a job's replica, or of the trials of a tuning job.

    Exit code 0 whatever became of the job, 1 if there is no such job, trial or log.
    """
    with private_files():
        joblogs.show(Home.find(), job, replica, follow=follow, trial=trial)
