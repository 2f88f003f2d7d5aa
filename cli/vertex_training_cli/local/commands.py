"""``vt local …``: arguments, messages and exit codes."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from localgcp import lifecycle
from localgcp.bigquery import PINS, engine_environment
from localgcp.home import PRIVATE_UMASK, Home
from vertex_training.errors import CommandError
from vertex_training_cli.local import shell as local_shell
from vertex_training_cli.local import shutdown
from vertex_training_cli.setup import install_once
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
            from localgcp.runner import substitutes  # compares versions, which takes its time

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


def bigquery(
    install: Annotated[
        bool, typer.Option("--install", help="Install the engine by hash, once.")
    ] = False,
) -> None:
    """Say whether BigQuery's engine is installed, which runs the local cloud's queries.

    It is DuckDB with SQLGlot, in an environment of its own below the cache folder. Each local
    cloud of this machine uses it; none has to be started again.

    Exit code: 1 if it is not installed.
    """
    own = engine_environment()
    if install:
        install_once(own.folder, own.marker, PINS, "BigQuery's engine")
    if own.python is None:
        raise CommandError("BigQuery's engine is not installed.", "`vt local bigquery --install`")
    print_line(f"vt: BigQuery's engine is installed in {own.folder}")
