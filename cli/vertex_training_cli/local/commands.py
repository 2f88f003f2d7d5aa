"""``vt local …``: arguments, messages and exit codes. The work is done elsewhere, imported late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

import typer

from vertex_training_cli.status import print_line

_INTERRUPTED: Final = 130


def report(text: str) -> None:
    """A line about what is going on: stderr, so that stdout is the command's result."""
    print_line(f"vt: {text}")


@contextmanager
def plain_errors() -> Iterator[int]:
    """Errors a person can mend become one line and exit code 1; Ctrl-C becomes exit code 130.

    Files that are made meanwhile are for this user alone. Yields the umask from before.
    """
    import os
    import sqlite3

    from localgcp.errors import LocalCloudError
    from localgcp.home import PRIVATE_UMASK
    from vertex_training.errors import CommandError

    umask = os.umask(PRIVATE_UMASK)
    try:
        yield umask
    except BrokenPipeError:
        raise  # `vt local logs | head`: typer ends without a word
    except OSError as error:  # a full disk, a file of another user
        report(f"{error.filename or 'a file'} cannot be used: {error.strerror or error}.")
        raise typer.Exit(1) from None
    except sqlite3.Error as error:
        report(f"cloud.sqlite cannot be used: {error}. Hint: `vt local down --clean` begins anew.")
        raise typer.Exit(1) from None
    except (CommandError, LocalCloudError) as error:
        report(str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        report("interrupted; what was started goes on (`vt local status`, `vt local down`)")
        raise typer.Exit(_INTERRUPTED) from None
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
    from localgcp.home import Home
    from vertex_training_cli.local import up as local_up

    with plain_errors():
        raise typer.Exit(local_up.run(Home.find(), stack, wait=wait, images=images, report=report))


def start() -> None:
    """Start the local cloud; does nothing if it runs."""
    from localgcp import lifecycle
    from localgcp.home import Home

    with plain_errors():
        info = lifecycle.start(Home.find(), report)
        report(f"running (process {info.pid})")


def stop() -> None:
    """Stop the local cloud and keep its files. A job that runs fails; waiting jobs go on later."""
    from localgcp import lifecycle
    from localgcp.home import Home

    with plain_errors():
        report("stopped" if lifecycle.stop(Home.find()) else "nothing was running")


def down(
    clean: Annotated[
        bool, typer.Option("--clean", help="Remove its files too: stacks, buckets, jobs, logs.")
    ] = False,
) -> None:
    """Cancel all jobs and stop everything that was started."""
    from localgcp.home import Home
    from vertex_training_cli.local import shutdown

    with plain_errors():
        shutdown.down(Home.find(), clean=clean, report=report)


def status() -> None:
    """Show the server, its ports, the resources and the jobs. Exit code 1 if it does not run."""
    from localgcp.home import Home
    from vertex_training_cli.local import status as local_status

    with plain_errors():
        raise typer.Exit(0 if local_status.show(Home.find()) else 1)


def shell(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Run this instead of a shell.")
    ] = None,
) -> None:
    """Open a shell in which pulumi and Google's clients use the local cloud.

    Exit code: that of the shell or the command.
    """
    from localgcp.home import Home
    from vertex_training_cli.local import shell as local_shell

    with plain_errors() as umask:
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
    from localgcp.home import Home
    from vertex_training_cli.local import joblogs

    with plain_errors():
        joblogs.show(Home.find(), job, replica, follow=follow, trial=trial)
