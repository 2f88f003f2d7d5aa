"""``vt tensorboard``: runs TensorBoard on the logs of jobs, at a local address."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from localgcp.home import Home, ToolEnvironment
from vertex_training.errors import CommandError
from vertex_training_cli.data import cloud, download
from vertex_training_cli.engine import stacks
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.objects import LOGS
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.options import SelectedStack
from vertex_training_cli.setup import install_once
from vertex_training_cli.status import print_line
from vertex_training_cli.toolchain import python_env

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

#: TensorBoard's packages by hash (requirements/tensorboard.in).
PINS: Final = Path(python_env.__file__).parent / "tensorboard.txt"
#: Number of newest jobs that are shown if no job is named.
NEWEST: Final = 10


def tensorboard(
    job: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB...]", help="Job names, ids or resource names. Default: the newest jobs."
        ),
    ] = None,
    stack: SelectedStack = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of TensorBoard. 0: any free port.")
    ] = 6006,
    install: Annotated[
        bool, typer.Option("--install", help="Install TensorBoard, with hashes checked, and exit.")
    ] = False,
) -> None:
    """Run TensorBoard on the logs of jobs (AIP_TENSORBOARD_LOG_DIR) until Ctrl-C.

    In the local cloud it follows running jobs. Logs in Google Cloud are downloaded once, at the
    start. --install creates a separate Python environment for TensorBoard in the cache folder.

    Example: `vt tensorboard titanic 1234567890 --port 7007`.

    Exit code: 1 if TensorBoard is not installed or no job has logs.
    """
    own = ToolEnvironment("tensorboard", PINS)
    if install:
        install_once(own.folder, own.marker, PINS, "TensorBoard")
        print_line(f"vt: TensorBoard is installed in {own.folder}")
        return
    if (python := own.python) is None:
        raise CommandError("TensorBoard is not installed.", "run `vt tensorboard --install`")
    ref, scripts = stacks.find_with_scripts(stack)
    ref.connect_clients()
    jobs = Jobs(ref, scripts)
    chosen = [jobs.find(name) for name in job] if job else jobs.list()[:NEWEST]
    with tempfile.TemporaryDirectory() as shown:
        collected = _collect(chosen, ref, Path(shown))
        if not collected:
            names = ", ".join(view.title(item) for item in chosen) or "this stack has no jobs"
            hint = (
                "write the logs to $AIP_TENSORBOARD_LOG_DIR, and set baseOutputDirectory in "
                "the job file"
            )
            raise CommandError(f"no TensorBoard logs exist for the chosen jobs ({names}).", hint)
        print_line(f"vt: TensorBoard shows the logs of {', '.join(collected)}")
        # -P: no module of the folder that this is called in.
        # The fast loader is a program of its own, which follows no links.
        command = [str(python), "-P", "-m", "tensorboard.main", "--load_fast=false"]
        command += ["--logdir", shown, "--host", "127.0.0.1", "--port", str(port)]
        # No os.spawn: it forks, and a fork beside the threads of gRPC may never reach the exec.
        ended = subprocess.run(command, env=_variables(), check=False)
        raise typer.Exit(ended.returncode)


def _collect(chosen: Sequence[AnyJob], ref: stacks.StackRef, shown: Path) -> list[str]:
    """Link the logs of each job below ``shown`` under its name, and return the names."""
    collected: list[str] = []
    for job in chosen:
        where = view.spec_of(job).base_output_directory.output_uri_prefix.rstrip("/")
        if not where:
            continue
        name = f"{view.title(job)}-{view.run(job)}".replace("/", "_")
        name = f"{_cut(name)}-{view.job_id(job)}"
        target = shown / name
        if ref.is_local:  # files of the emulator, which grow while a job runs
            buckets = Home.find(cwd=ref.root).storage.resolve()
            kept = (buckets / where.removeprefix("gs://") / LOGS).resolve()
            if kept.is_dir() and kept.is_relative_to(buckets):  # a job names it as it likes
                target.symlink_to(kept)
        else:
            place = cloud.place_of(f"{where}/{LOGS}")
            download.download(cloud.connect(ref, print_line), place, target)
        if target.is_dir() and any(target.iterdir()):
            collected.append(name)
    return collected


def _cut(name: str) -> str:
    """Shorten a name to fit a file system, which allows 255 bytes."""
    return name.encode()[:200].decode(errors="ignore")


def _variables() -> dict[str, str]:
    """Return variables without paths of this program's packages, whose versions differ."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
