"""The command line of ``vt run``."""

from __future__ import annotations

import re
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from vertex_training.customjob.google.job_service import AnyJob
from vertex_training.errors import CommandError, OperatorError
from vertex_training.naming import CONTROL
from vertex_training.settings.model import Settings
from vertex_training.stack import Stack
from vertex_training.stack import load as load_stack
from vertex_training_cli.console import print_status
from vertex_training_cli.engine import stacks
from vertex_training_cli.engine.values import redact
from vertex_training_cli.failures import NOT_POSSIBLE
from vertex_training_cli.importing.imported import to_key
from vertex_training_cli.jobs import log, view
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.options import SelectedStack
from vertex_training_cli.run import script, submission
from vertex_training_cli.run.submission import PreparedRun

#: Text of the service's job error that contains a replica's exit code.
_EXIT_CODE: Final = re.compile(r"exited with a non-zero status of (\d+)")
_CANCEL_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.5
#: Maximum number of consecutive failed reads of the job's state. Each read has its own retries.
_MAX_FAILURES: Final = 5
_INTERRUPTED: Final = 130
_TERMINATED: Final = 143

JobToRun = Annotated[
    str, typer.Argument(metavar="JOB", help="Job of the stack, job file, or Python script (.py).")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- ARGS...]",
        help="Arguments of the job's code, which replace flags of the job file.",
    ),
]
Added = Annotated[
    list[Path] | None,
    typer.Option("--with", help="Also send this file or folder with a script. Repeatable."),
]


NumberOfGpus = Annotated[
    int,
    typer.Option(
        "--gpu",
        min=0,
        metavar="[N]",
        help="Request N GPUs (default: 1) for a script, on the smallest machine type with N GPUs.",
        show_default=False,
    ),
]
CancelOnExit = Annotated[
    bool,
    typer.Option(
        "--cancel-on-exit", help="Cancel the job on SIGTERM or SIGHUP too, not only on Ctrl-C."
    ),
]
MachineName = Annotated[
    str, typer.Option("--machine", metavar="TYPE", help="Machine type of a script.")
]


class _TerminatedError(SystemExit):
    """Signal SIGTERM, or SIGHUP after the terminal was closed."""


def run(
    job: JobToRun,
    args: Words = None,
    stack: SelectedStack = None,
    name: Annotated[
        str, typer.Option("--name", help="Name of this run, to run a job twice at the same time.")
    ] = "",
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Submit the job, print its id and exit.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Skip the confirmation of the maximum cost.")
    ] = False,
    with_: Added = None,
    no_code: Annotated[
        bool,
        typer.Option("--no-code", help="Send the script without the other files of its folder."),
    ] = False,
    cancel_on_exit: CancelOnExit = False,
    gpu: NumberOfGpus = 0,
    machine: MachineName = "",
) -> None:
    """Run one job and print its log until the job ends. No other resource is deployed.

    A script needs no stack. It runs in the local cloud, with all files of its folder except those
    that .gitignore or .vtignore excludes. Concurrent runs of a script get different names. With
    --gpu, the script gets GPUs of this machine, if enough GPUs are free. The log names these GPUs.

    Ctrl-C cancels the job. A second Ctrl-C exits without waiting for the cancellation.

    Exit code: that of the job's code, 1 if the job ended without an exit code, 2 if the job was not
    submitted, 130 if the job was cancelled.

    Examples: `vt run titanic -- --epochs=3`, `vt run train.py -- --learning-rate=0.1`.
    """
    words, file, added = args or [], Path(job), with_ or []
    name = name and to_key(name)
    is_script = file.suffix == ".py"
    if not is_script and (added or no_code or gpu or machine):
        options = "--with, --no-code, --gpu and --machine"
        raise CommandError(f"{options} require a script (.py), but JOB is {job}.")
    is_file = is_script and file.is_file()
    with script.turn() if is_file else nullcontext():
        if is_script:
            wanted = (gpu, machine)
            jobs, loaded, prepared = _script(file, words, stack, name, added, wanted, alone=no_code)
        else:
            jobs, loaded, prepared = _job(job, words, stack, name)
        print_notes(prepared, loaded.settings)
        if not (jobs.ref.is_local or yes):
            _confirm(prepared)
        _raise_at_termination()
        resource, stopped_by = _submit(prepared, loaded)
    number = _number(resource)
    print_status(f"submitted {prepared.request.submission.job}: {number}")
    if detach and stopped_by is None:
        print(number)
        return
    raise typer.Exit(_follow(jobs, resource, stopped_by, cancel_on_exit=cancel_on_exit))


def _job(
    job: str, words: list[str], stack: str | None, name: str
) -> tuple[Jobs, Stack, PreparedRun]:
    ref = stacks.find(stack)
    ref.connect_clients()
    jobs, loaded = Jobs(ref), load_stack(ref.root, ref.stack)
    _ensure_usable(ref, loaded)
    return jobs, loaded, submission.prepare(loaded, jobs, job, words, name)


def _script(
    file: Path,
    words: list[str],
    stack: str | None,
    name: str,
    added: Sequence[Path],
    wanted: tuple[int, str],
    *,
    alone: bool,
) -> tuple[Jobs, Stack, PreparedRun]:
    if stack:
        raise CommandError(
            "--stack does not apply to a script, which runs in a separate stack.",
            "pass a job or a job file instead of the script, or remove --stack",
        )
    if not file.is_file():
        raise CommandError(f"file {file} does not exist.")
    machine = script.choose_machine(*wanted)
    files = script.collect(file, added, alone=alone)
    ref = script.find()
    loaded = load_stack(ref.root, ref.stack)
    if files.note:
        print_status(files.note)
    return Jobs(ref), loaded, script.prepare(file, words, files, ref, loaded, name, machine)


def _ensure_usable(ref: stacks.StackRef, loaded: Stack) -> None:
    if loaded.settings.protects:
        text = f"stack {ref.stack} is protected: a review of each job is required."
        raise CommandError(text, "add the job to the stack file, or use another stack")
    bucket = loaded.settings.names.bucket(CONTROL)
    if not submission.has_bucket(ref.project, bucket, loaded.settings.project_number):
        command = "vt local up" if ref.is_local else "vt up"
        text = f"stack {ref.stack} is not deployed: bucket {bucket} does not exist."
        raise CommandError(text, f"run `{command} --stack {ref.stack}`")


def print_notes(prepared: PreparedRun, settings: Settings) -> None:
    """Print the warnings about a run, and the limits that this run ignores."""
    for warning in prepared.warnings:
        print_status(redact(warning))
    limits = (settings.limits, *(team.limits for team in settings.teams.values()))
    if any(limit.in_usd for limit in limits):
        print_status(f"{_cost(prepared)}. Each run may cost up to the limits in USD.")


def _cost(prepared: PreparedRun) -> str:
    return f"the job {prepared.request.submission.job} costs at most {prepared.request.cost}"


def _confirm(prepared: PreparedRun) -> None:
    cost = _cost(prepared)
    if not sys.stdin.isatty():
        print_status(f"{cost}. Without a terminal, --yes is required. No job was submitted.")
        raise typer.Exit(NOT_POSSIBLE)
    if not typer.confirm(f"{cost}. Submit the job?", err=True):
        raise typer.Exit(NOT_POSSIBLE)


def _raise_at_termination() -> None:
    def terminate(*_: object) -> NoReturn:
        raise _TerminatedError(_TERMINATED)

    signal.signal(signal.SIGTERM, terminate)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup(1)
        signal.signal(signal.SIGHUP, terminate)


def _submit(prepared: PreparedRun, loaded: Stack) -> tuple[str, BaseException | None]:
    """Return the job's resource name, and an interruption that came during the submission.

    The submission runs in a thread, so that an interruption does not leave a job without an owner.
    A second Ctrl-C is raised at once.
    """
    sent: Future[str] = Future()

    def send() -> None:
        try:
            sent.set_result(submission.submit(prepared, loaded))
        except BaseException as error:  # result() raises the error.
            sent.set_exception(error)

    threading.Thread(target=send, daemon=True).start()
    try:
        return sent.result(), None
    except (KeyboardInterrupt, _TerminatedError) as stopped_by:
        job = prepared.request.submission.job
        if isinstance(stopped_by, KeyboardInterrupt):
            text = f"job {job} is being submitted and will be cancelled afterwards"
            print_status(f"{text}; press Ctrl-C again to exit without waiting")
        return sent.result(), stopped_by


def _follow(
    jobs: Jobs, resource: str, stopped_by: BaseException | None, *, cancel_on_exit: bool
) -> int:
    try:
        if stopped_by is not None:
            raise stopped_by
        submitted = jobs.get(resource)
        if not view.is_tuning(submitted):
            log.follow(jobs, submitted)
        ended = _wait(jobs, resource)
    except KeyboardInterrupt:
        return _cancel(jobs, resource)
    except _TerminatedError:
        if cancel_on_exit:
            _cancel(jobs, resource)
        else:
            command = _cancel_command(jobs, resource)
            print_status(f"job {_number(resource)} continues to run. To cancel the job: {command}")
        return _TERMINATED
    print_status(f"{view.title(ended)}: {view.state(ended)} {redact(ended.error.message)}".rstrip())
    return exit_code(view.state(ended), ended.error.message)


def exit_code(state: str, error: str) -> int:
    """Return the exit code of the first failed replica; 1 if the error contains no exit code."""
    if state in ("SUCCEEDED", "PARTIALLY_SUCCEEDED"):
        return 0
    code = _EXIT_CODE.search(error)
    return int(code[1]) if state == "FAILED" and code else 1


def _cancel(jobs: Jobs, resource: str) -> int:
    cancelling = f"cancelling job {_number(resource)}; press Ctrl-C again to exit without waiting"
    with suppress(OSError):  # The terminal may be closed.
        print_status(f"{cancelling} ({_cancel_command(jobs, resource)})")
    jobs.cancel(jobs.get(resource))
    ended = _wait(jobs, resource, _CANCEL_SECONDS)
    print_status(f"{view.title(ended)}: {view.state(ended)}")
    return _INTERRUPTED


def _cancel_command(jobs: Jobs, resource: str) -> str:
    return f"`vt jobs cancel {_number(resource)} --stack {jobs.ref.stack}`"


def _number(resource: str) -> str:
    return resource.rpartition("/")[2]


def _wait(jobs: Jobs, resource: str, limit: float = float("inf")) -> AnyJob:
    ends, failures = time.monotonic() + limit, 0
    while True:
        try:
            job, failures = jobs.get(resource), 0
            if view.has_ended(job) or time.monotonic() >= ends:
                return job
        except OperatorError as error:
            failures += 1
            if failures == 1:
                print_status(f"cannot read the state of the job, trying again: {error}")
            if failures == _MAX_FAILURES:
                raise
        time.sleep(_POLL_SECONDS if jobs.ref.is_local else log.CLOUD_PAUSE)
