"""``vt local …``: arguments, messages and exit codes."""

from __future__ import annotations

import getpass
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Final, Literal

import typer
import yaml

from localgcp import lifecycle
from localgcp.access.pulumi_shim import find_project, make_stack
from localgcp.batch.records import ACTIVE, BatchJob, BatchTable, State
from localgcp.bigquery import PINS, engine_environment
from localgcp.clients import cloud_sdk, python_clients
from localgcp.errors import RpcCode
from localgcp.home import PRIVATE_UMASK, Home
from localgcp.home.environment import environment
from localgcp.reads import secretmanager
from localgcp.tuning.records import TuningTable
from localgcp.vertex.records import LIVE_STATES, JobRecord, JobState, JobTable, RecordTable
from vertex_training.errors import CommandError, did_you_mean
from vertex_training.naming import is_local
from vertex_training.settings.project_files import file_name
from vertex_training_cli.console import print_status
from vertex_training_cli.engine import locks, stacks
from vertex_training_cli.setup import install_once


@contextmanager
def private_files() -> Iterator[int]:
    """Create files that only this user can read, inside the block; yield the old umask."""
    umask = os.umask(PRIVATE_UMASK)
    try:
        yield umask
    except KeyboardInterrupt:
        print_status(
            "interrupted; started processes continue to run. `vt local status` lists and "
            "`vt local down` stops these processes"
        )
        raise
    finally:
        os.umask(umask)


#: Option --gpus of ``start`` and ``up``, with the values of ``GpuShortage``.
GpuChoice = Annotated[
    str | None,
    typer.Option(
        "--gpus",
        metavar="WHICH",
        help="Effect if a job requests more GPUs than are free: `wait` waits, `cpu` uses CPUs. "
        "`auto` (default) waits if this machine has enough GPUs, else uses CPUs. Also applies to "
        "later jobs.",
    ),
]


def keep_gpu_choice(home: Home, choice: str | None) -> None:
    """Save the value of ``--gpus`` for later jobs if the option is set."""
    from localgcp.runner.allotment import GpuShortage

    if choice is None:
        return
    if choice not in list(GpuShortage):
        hint = did_you_mean(choice, [*GpuShortage])
        raise typer.BadParameter(f"{choice!r} is not a valid value: {hint}", param_hint="--gpus")
    home.create()
    GpuShortage(choice).keep(home)


def start(
    prebuilt: Annotated[
        Literal["nearest", "exact"] | None,
        typer.Option(
            metavar="WHICH",
            help="Effect if the version of a prebuilt image is not installed: `nearest` uses the "
            "nearest installed version, `exact` fails the job. Also applies to later jobs.",
        ),
    ] = None,
    gpus: GpuChoice = None,
) -> None:
    """Start the local cloud if it is not running."""
    with private_files():
        home = Home.find()
        keep_gpu_choice(home, gpus)
        info = lifecycle.start(home, print_status)
        if prebuilt is not None:
            from localgcp.runner.executors import take_nearest  # slow import

            take_nearest(home, on=prebuilt == "nearest")
        print_status(f"running (process {info.pid})")


def stop() -> None:
    """Stop the local cloud and keep its files. Running jobs fail. Waiting jobs start later."""
    with private_files():
        was_running = lifecycle.stop(Home.find())
        print_status("stopped" if was_running else "the local cloud was not running")


def down(
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Also delete the local cloud's files: stacks, buckets, jobs, logs."
        ),
    ] = False,
) -> None:
    """Cancel all jobs and stop the local cloud."""
    with private_files():
        take_down(Home.find(), clean=clean, report=print_status)


def shell(
    command: Annotated[
        str | None, typer.Option("--command", "-c", help="Command to run instead of a shell.")
    ] = None,
) -> None:
    """Open a shell in which pulumi and Google's clients use the local cloud.

    Example: `vt local shell -c 'pulumi preview -s local'`.

    Exit code: that of the shell or the command.
    """
    with private_files() as umask:
        enter_shell(Home.find(), command, print_status, umask)


def bigquery(
    install: Annotated[
        bool, typer.Option("--install", help="Install the query engine, with hashes checked.")
    ] = False,
) -> None:
    """Print whether the local cloud's engine for BigQuery queries is installed.

    The engine is DuckDB with SQLGlot, in a separate Python environment in the cache folder. All
    local clouds of this machine use the engine, without a restart.

    Exit code: 1 if the engine is not installed.
    """
    own = engine_environment()
    if install:
        install_once(own.folder, own.marker, PINS, "BigQuery's engine")
    if own.python is None:
        raise CommandError(
            "the query engine of the local BigQuery is not installed.",
            "run `vt local bigquery --install`",
        )
    print_status(f"the query engine of the local BigQuery is installed in {own.folder}")


_CANCELLED: Final = (
    RpcCode.CANCELLED,
    "The job was cancelled because the local cloud was stopped.",
)


def take_down(home: Home, *, clean: bool, report: Callable[[str], None]) -> None:
    """Cancel all jobs and stop the server. With ``clean``, also remove the local cloud's files.

    Raise an error if the files belong to another user, or a ``pulumi`` process uses them.
    """
    if clean:
        _check_removable(home)  # Check before the server stops.
    tables: tuple[RecordTable[Any], ...] = (TuningTable(home.database), JobTable(home.database))
    live: list[tuple[RecordTable[Any], JobRecord]] = []
    batch, of_batch = BatchTable(home), list[BatchJob]()
    with _reported_record_errors(report):
        if home.database.exists():
            live = [(t, job) for t in tables for job in t.list() if not job.state.terminal]
            of_batch = batch.list(states=ACTIVE)
        for table, job in live:
            # The server ends a CANCELLING job as CANCELLED when it stops.
            table.move(job.job_id, JobState.CANCELLING, only_from=LIVE_STATES)
        for prediction in of_batch:
            batch.move(prediction.name, State.CANCELLING, ACTIVE)
    stopped = lifecycle.stop(home)
    with _reported_record_errors(report):
        for table, job in live:
            if table.move(job.job_id, JobState.CANCELLED, error=_CANCELLED):
                report(f"job {job.display_name} ({job.job_id}) was cancelled")
        for prediction in of_batch:
            batch.move(prediction.name, State.CANCELLED, (State.CANCELLING,))
            report(f"job {prediction.job_id} on Batch was cancelled")
    report("stopped" if stopped else "the local cloud was not running")
    if clean:
        _check_removable(home)
        if lifecycle.remove(home):
            report(f"removed {home.root}")


def _check_removable(home: Home) -> None:
    lifecycle.check_removable(home)
    if live := [lock for lock in locks.in_folder(home.pulumi) if lock.alive]:
        raise live[0].refusal()


@contextmanager
def _reported_record_errors(report: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        report(f"cannot write the state of jobs: {error}")


DEFAULT_STACK: Final = "local"
#: Variable with which Google's client libraries find their project.
_CLIENTS_PROJECT: Final = "GOOGLE_CLOUD_PROJECT"
_UNREADABLE: Final = (OSError, ValueError, AttributeError, TypeError, KeyError, yaml.YAMLError)


def _select_local(home: Home, env: dict[str, str]) -> None:
    """Select stack ``local`` if no stack is selected, so that commands need no ``--stack``."""
    project = find_project(str(home.repo))
    if project is None or (home.pulumi_home / "workspaces").exists():
        return
    folder, name = project
    if not os.path.isfile(os.path.join(folder, file_name(DEFAULT_STACK))):
        return
    pulumi = shutil.which("pulumi", path=env["PATH"])
    if pulumi is None:
        return  # The command in the shell reports the missing program.
    make_stack(pulumi, str(home.stacks / name), name, DEFAULT_STACK, env)
    command = [pulumi, "-C", folder, "stack", "select", DEFAULT_STACK, "--non-interactive"]
    subprocess.run(command, env=env, check=False, stdout=subprocess.DEVNULL)


def _stack_defaults(home: Home) -> dict[str, str]:
    project = find_project(str(home.repo))
    defaults: dict[str, str] = {}
    if project is not None:
        file = os.path.join(project[0], file_name(DEFAULT_STACK))
        # `pulumi` reports mistakes in the stack file.
        with suppress(*_UNREADABLE), open(file, encoding="utf-8") as stack:
            defaults = cloud_sdk.defaults(yaml.safe_load(stack)["config"])
    chosen = os.environ.get(cloud_sdk.PROJECT, "")
    defaults |= {cloud_sdk.PROJECT: chosen} if is_local(chosen) else {}
    project = defaults.get(cloud_sdk.PROJECT, "")
    return {**defaults, _CLIENTS_PROJECT: project} if is_local(project) else {}


def enter_shell(home: Home, command: str | None, report: Callable[[str], None], umask: int) -> None:
    """Replace this process by the shell or command, with ``umask``. Starts the local cloud."""
    info = lifecycle.start(home, report)
    env = environment(home, info.ports) | _stack_defaults(home)
    env |= python_clients.environment(home.cloud_sdk, env)
    cloud_sdk.write_settings(home.cloud_sdk)
    python_clients.write_settings(home.cloud_sdk)
    _select_local(home, env)
    sys.stdout.flush()
    os.umask(umask)
    if command is not None:
        os.execve("/bin/sh", ["sh", "-c", command], env)
    report(
        "pulumi and Google's Python clients use the local cloud in this shell; `exit` "
        "returns to the old shell"
    )
    program = os.environ.get("SHELL") or "/bin/sh"
    os.execve(program, [program], env)


def add_value(name: str, stack: str) -> int:
    """Add a version to a secret of a stack, and return the version's number."""
    from vertex_training.stack import settings_of  # slow import

    ref = stacks.find(stack)
    settings = settings_of(ref.root, ref.stack)
    if name not in settings.secrets:
        text = f"stack {ref.stack} has no secret {name!r}."
        raise CommandError(text, did_you_mean(name, settings.secrets))
    path = settings.names.secret(name)
    project, _, secret = path.removeprefix("projects/").partition("/secrets/")
    if not is_local(project):
        hint = f"gcloud secrets versions add {secret} --project={project} --data-file=-"
        raise CommandError(f"project {project} is not a project of the local cloud.", hint)
    home = Home.find()
    home.create()
    if sys.stdin.isatty():
        value = getpass.getpass(f"Value of secret {name}: ").encode()
    else:
        value = sys.stdin.buffer.read(secretmanager.MAX_BYTES + 1)
    if not value or len(value) > secretmanager.MAX_BYTES:
        limits = f"must have 1 to {secretmanager.MAX_BYTES:,} bytes"
        raise CommandError(f"the value of a secret {limits}; this value has {len(value):,}.")
    if value.endswith(b"\n"):
        print_status(
            "the value ends with a newline, which is a part of the secret. To write a value "
            "without a newline, use `printf %s`"
        )
    return secretmanager.add_version(home.secrets, project, secret, value)


def set_value(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name in `secrets` of the stack file.")
    ],
    stack: Annotated[str, typer.Option("--stack", "-s", help="Stack of the secret.")] = "local",
) -> None:
    """Add a version to a secret: a value typed at a prompt, or all bytes of stdin.

    No argument, log or state contains the value. Jobs can read the value from Secret Manager of the
    local cloud if their account has access. In Google Cloud, use `gcloud secrets versions add`.

    Example: `vt local secret set wandb-api-key < key.txt`.
    """
    with private_files():
        number = add_value(name, stack)
        print_status(f"secret {name} has the new version {number}")
