"""The command line of ``vt run``."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from vertex_training.errors import CommandError
from vertex_training.naming import CONTROL
from vertex_training.stack import Stack
from vertex_training.stack import load as load_stack
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.values import redact
from vertex_training_cli.importing.imported import to_key
from vertex_training_cli.jobs import log, view
from vertex_training_cli.jobs.command import REFUSED
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.options import SelectedStack
from vertex_training_cli.run import submission
from vertex_training_cli.status import print_status

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob
    from vertex_training.settings.model import Settings
    from vertex_training_cli.run.submission import PreparedRun

#: How the service says in a job's error what a replica ended with.
_EXIT_CODE: Final = re.compile(r"exited with a non-zero status of (\d+)")
_CANCEL_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.5
_INTERRUPTED: Final = 130
_TERMINATED: Final = 143

Wanted = Annotated[
    str, typer.Argument(metavar="JOB", help="Job of the stack, a job file, or a script (.py).")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- ARGS...]", help="Arguments: they replace equal flags of the file."),
]


def run(
    job: Wanted,
    args: Words = None,
    stack: SelectedStack = None,
    name: Annotated[
        str, typer.Option("--name", help="Another name, to run it beside itself.")
    ] = "",
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Submit it, print its id, and follow nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask what it may cost.")] = False,
) -> None:
    """Run one job and follow its log to its end; nothing else of the stack is brought up.

    A script needs no stack: it runs in the local cloud. Ctrl-C cancels the job, a second one leaves
    it. Exit code: that of the job, 1 if it ended without one, 2 not submitted, 130 cancelled.

    Examples: `vt run titanic -- --epochs=3`, `vt run train.py -- --learning-rate=0.1`.
    """
    words, file = args or [], Path(job)
    name = name and to_key(name)
    with _turn(file):
        if file.suffix == ".py":
            jobs, loaded, prepared = _script(file, words, stack, name)
        else:
            ref = stacks.find(stack)
            ref.connect_clients()
            jobs, loaded = Jobs(ref), load_stack(ref.root, ref.stack)
            _ensure_usable(ref, loaded)
            prepared = submission.prepare(loaded, jobs, job, words, name)
        tell(prepared, loaded.settings)
        if not (jobs.ref.is_local or yes):
            _confirm(prepared)
        resource, interrupted = _submit(prepared, loaded)
    number = resource.rpartition("/")[2]
    print_status(f"submitted {prepared.request.submission.job}: {number}")
    if interrupted:
        raise typer.Exit(_cancel(jobs, resource))
    if detach:
        print(number)
        return
    signal.signal(signal.SIGTERM, lambda *_: _leave(jobs, number))
    raise typer.Exit(_follow(jobs, resource))


def _turn(file: Path) -> AbstractContextManager[None]:
    """Return the turn of a script; a job of a stack is submitted without one."""
    if not (file.suffix == ".py" and file.is_file()):
        return nullcontext()
    from vertex_training_cli.run import script

    return script.turn(print_status)


def _script(
    file: Path, words: list[str], stack: str | None, name: str
) -> tuple[Jobs, Stack, PreparedRun]:
    from vertex_training_cli.run import script

    if stack:
        raise CommandError("a script has a stack of its own.", "name a job or a job file")
    if not file.is_file():
        raise CommandError(f"there is no file {file}.")
    ref = script.find(print_status)
    loaded = load_stack(ref.root, ref.stack)
    return Jobs(ref), loaded, script.prepare(file, words, ref, loaded, name)


def _ensure_usable(ref: stacks.StackRef, loaded: Stack) -> None:
    """Raises CommandError if the stack's jobs are reviewed, or it was not brought up."""
    if loaded.settings.protects:
        text = f"stack {ref.stack} is protected: what runs in it is reviewed."
        raise CommandError(text, "add the job to the stack's file, or run it in another stack")
    bucket = loaded.settings.names.bucket(CONTROL)
    if not submission.has_bucket(ref.project, bucket, loaded.settings.project_number):
        command = "vt local up" if ref.is_local else "vt up"
        text = f"stack {ref.stack} is not up: there is no bucket {bucket}."
        raise CommandError(text, f"`{command} --stack {ref.stack}`, once")


def tell(prepared: PreparedRun, settings: Settings) -> None:
    """Print what is doubtful about a run, and what limits do not hold of it."""
    for warning in prepared.warnings:
        print_status(redact(warning))
    limits = (settings.limits, *(team.limits for team in settings.teams.values()))
    if any(each.in_usd for each in limits):
        cost = f"{prepared.request.submission.job} costs at most {prepared.costs_at_most}"
        print_status(f"{cost}; limits in USD hold for each run, and add no runs up")


def _confirm(prepared: PreparedRun) -> None:
    cost = f"{prepared.request.submission.job} costs at most {prepared.costs_at_most}"
    if not sys.stdin.isatty():
        print_status(f"{cost}; nobody can be asked here: add --yes. Nothing was submitted.")
        raise typer.Exit(REFUSED)
    if not typer.confirm(f"{cost}. Submit it?", err=True):
        raise typer.Exit(REFUSED)


def _submit(prepared: PreparedRun, loaded: Stack) -> tuple[str, bool]:
    """The job's resource name, and whether a Ctrl-C came before it was known.

    In a thread: an interrupt would end the protocol before its answer, and the job would go on.

    Raises:
        KeyboardInterrupt: at the second one; what is on its way is left.
    """
    sent: Future[str] = Future()

    def send() -> None:
        try:
            sent.set_result(submission.submit(prepared, loaded))
        except BaseException as error:  # raised below
            sent.set_exception(error)

    threading.Thread(target=send, daemon=True).start()
    try:
        return sent.result(), False
    except KeyboardInterrupt:
        job = prepared.request.submission.job
        what = "is being submitted, and cancelled after that"
        print_status(f"{job} {what}; Ctrl-C once more leaves it")
        return sent.result(), True


def _follow(jobs: Jobs, resource: str) -> int:
    """Print the job's log until it ends; the exit code."""
    try:
        found = jobs.get(resource)
        if not view.is_tuning(found):
            log.show(
                jobs, found, replica=None, follow=True, tail=None, as_json=False, log=print_status
            )
        ended = _wait(jobs, resource)
    except KeyboardInterrupt:
        return _cancel(jobs, resource)
    print_status(f"{view.title(ended)}: {view.state(ended)} {redact(ended.error.message)}".rstrip())
    return exit_code(view.state(ended), ended.error.message)


def exit_code(state: str, error: str) -> int:
    """That of the job's replica which failed first; 1 if it ended otherwise without success."""
    if state in ("SUCCEEDED", "PARTIALLY_SUCCEEDED"):
        return 0
    found = _EXIT_CODE.search(error)
    return int(found[1]) if state == "FAILED" and found else 1


def _cancel(jobs: Jobs, resource: str) -> int:
    number = resource.rpartition("/")[2]
    command = _cancel_command(jobs, number)
    print_status(f"cancelling {number}; Ctrl-C once more leaves it ({command})")
    jobs.cancel(jobs.get(resource))
    ended = _wait(jobs, resource, _CANCEL_SECONDS)
    print_status(f"{view.title(ended)}: {view.state(ended)}")
    return _INTERRUPTED


def _leave(jobs: Jobs, number: str) -> NoReturn:
    print_status(f"job {number} goes on; {_cancel_command(jobs, number)} cancels it")
    raise SystemExit(_TERMINATED)


def _cancel_command(jobs: Jobs, number: str) -> str:
    return f"`vt jobs cancel {number} --stack {jobs.ref.stack}`"


def _wait(jobs: Jobs, resource: str, limit: float = float("inf")) -> AnyJob:
    """The job, once it has ended or the time is up."""
    ends = time.monotonic() + limit
    while not view.has_ended(found := jobs.get(resource)) and time.monotonic() < ends:
        time.sleep(_POLL_SECONDS if jobs.ref.is_local else log.CLOUD_PAUSE)
    return found
