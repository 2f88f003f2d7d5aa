"""Runs a Python file without a stack: in the local cloud, in a separate stack for scripts.

The stack lies in the local cloud's folder, with two buckets and an account. It is brought up once;
code goes into a bucket, and no run changes the stack.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from localgcp.home import Home, open_private
from vertex_training import stack as stacks
from vertex_training.catalog import machines
from vertex_training.errors import CommandError, counted, nearest
from vertex_training.naming import CONTROL
from vertex_training.plan import packages
from vertex_training.stack import Stack
from vertex_training_cli.catalogue import MachineOption, select
from vertex_training_cli.engine.stacks import StackRef, find_scripts, local_cloud_errors
from vertex_training_cli.engine.stacks import find as find_stack
from vertex_training_cli.importing.imported import REQUEST_ID, key_of
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import RUN_CODE, RUN_PREFIX
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.run import submission
from vertex_training_cli.run.code import Code
from vertex_training_cli.run.submission import PreparedRun

if TYPE_CHECKING:
    from vertex_training.customjob.google.job_service import AnyJob

STACK: Final = "local"
#: The package that starts a script. Its requirements are those of the script.
MODULE: Final = "script"
#: Images that packages run in, without GPUs and with them.
EXECUTOR: Final = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
GPU_EXECUTOR: Final = EXECUTOR.replace("xla", "gpu")
REGION: Final = "us-central1"
#: Default machine type of a script.
MACHINE: Final = "n1-standard-4"
#: Variable with the path of the script in the archive of a run's code.
_SCRIPT: Final = "VT_SCRIPT"
#: Module that unpacks the code and then executes the script, like ``python SCRIPT`` in its folder.
#: It is equal for all scripts, so that a changed script needs no installation.
START: Final = f"""\
import os, sys, tarfile

safe = {{"filter": "data"}} if hasattr(tarfile, "data_filter") else {{}}
with tarfile.open(os.environ.pop("{RUN_CODE}")) as code:
    code.extractall("code", **safe)
os.chdir("code")
script = os.path.abspath(os.environ.pop("{_SCRIPT}"))
os.execv(sys.executable, [sys.executable, script, *sys.argv[1:]])
"""
_FILES: Final = {
    "Pulumi.yaml": """\
name: vt-run
runtime: {{name: python, options: {{virtualenv: {prefix}}}}}
""",
    "__main__.py": "from vertex_training import run\n\nrun(__file__)\n",
    f"Pulumi.{STACK}.yaml": """\
config:
  gcp:project: local-run
  gcp:region: {region}
  vertex-training:projectNumber: "166656552196"
  vertex-training:buckets:
    code: {{forceDestroy: true}}
    artifacts: {{forceDestroy: true}}
  vertex-training:serviceAccounts:
    trainer: {{reads: [code], writes: [artifacts]}}
""",
}


@contextmanager
def turn(log: Callable[[str], None]) -> Iterator[None]:
    """Serialize processes while they choose a run's name, write its code and submit it.

    Raises:
        CommandError: the local cloud's folder cannot be used.
    """
    with local_cloud_errors():
        home = Home.find()
        home.create()
    with open_private(home.root / "run.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log("waiting until another `vt run` has submitted its script")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find(log: Callable[[str], None]) -> StackRef:
    """Return the stack of scripts. Starts the local cloud and connects the clients to it.

    Raises:
        CommandError: the local cloud does not start, or the stack cannot be brought up.
    """
    home = Home.find()
    os.environ["VT_LOCAL_HOME"] = str(home.root)  # not one below the stack's own folder
    ref = find_scripts(home)
    root = ref.root
    ref.environment(log)
    root.mkdir(exist_ok=True)
    for name, text in _FILES.items():
        (root / name).write_text(text.format(prefix=sys.prefix, region=REGION))
    ref = find_stack(STACK, root)
    ref.connect_clients()
    settings = stacks.load(root, STACK).settings
    control = settings.names.bucket(CONTROL)
    if not submission.has_bucket(ref.project, control, settings.project_number):
        log("creating the stack for scripts, once")
        _bring_up(root)
    return ref


def choose_machine(gpus: int = 0, name: str = "") -> dict[str, Any]:
    """Return the ``machineSpec`` of the smallest machine type with the requested number of GPUs.

    ``name``: its machine type, for which ``gpus`` may be 0.

    Raises:
        CommandError: the machine type is unknown, or no machine has so many GPUs.
    """
    machine = machines.machine_type(name)
    if name and (machine is None or machine.tpu):
        near = "" if machine else nearest(name, machines.machine_types())
        hint = machines.unavailable_reason(name) or (near and f"did you mean {near!r}?")
        text = f"a script cannot run on machine type {name!r}."
        raise CommandError(text, hint or "see `vt catalogue`")
    if not gpus and not name:
        return {"machineType": MACHINE}
    rows = [
        (row, count)
        for row in select(region="" if name else REGION)
        if name in ("", row.machine.name)
        for count in row.counts or (0,)
    ]
    if suitable := [row for row in rows if row[1] == gpus or (name and not gpus)]:
        option, count = min(suitable, key=_size)
        added = {"acceleratorType": option.accelerator, "acceleratorCount": count} if count else {}
        return {"machineType": option.machine.name, **added}
    numbers = ", ".join(map(str, sorted({count for _, count in rows if count}))) or "none"
    text = f"machine type {name} cannot have" if name else f"no machine type in {REGION} has"
    what = counted(gpus, "GPU")
    raise CommandError(f"{text} {what}.", f"possible: {numbers}; see `vt catalogue`")


def _size(row: tuple[MachineOption, int]) -> tuple[int, bool, float, int]:
    """Return the sort key of a machine: GPUs, then list price; unknown prices are last."""
    option, count = row
    prices = [option.price(REGION), *[option.gpu_price(REGION)] * count]
    known = [price.on_demand for price in prices if price]
    is_unknown = option.price(REGION) is None or option.machine.reservation_required
    return count, is_unknown, sum(known), option.machine.vcpus or 0


def prepare(
    script: Path,
    words: Sequence[str],
    files: Code,
    ref: StackRef,
    stack: Stack,
    name: str,
    machine: Mapping[str, Any],
) -> PreparedRun:
    """Return the next run of a script on a machine, with ``files`` as its code.

    Raises:
        CommandError: a run of this name is live, or a file cannot be read.
        ConfigError: its requirements cannot be packaged.
    """
    submitted = Jobs(ref).list()
    key = name or _free_name(key_of(script.stem), submitted)
    job = RUN_PREFIX + key
    run = submission.next_run(submitted, job, ref.stack)
    starter = _starter(files.files.get(packages.REQUIREMENTS), script.parent)
    archive = files.archive()
    code = f"code-{hashlib.sha256(archive).hexdigest()[:16]}.tar"
    bucket = stack.settings.names.bucket("code")
    uris = {f"gs://{bucket}/{starter.file}": starter.content, f"gs://{bucket}/{code}": archive}
    variables = {RUN_CODE: f"/gcs/{bucket}/{code}", _SCRIPT: script.name}
    content = _document(key, next(iter(uris)), words, variables, machine)
    return submission.of_document(content, stack.submission(job, run), stack, uris)


def _starter(requirements: Path | None, folder: Path) -> packages.Package:
    """Return the package that starts a script, with the requirements file beside the script."""
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / MODULE
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(START)
        if requirements is not None:
            shutil.copyfile(requirements, package / packages.REQUIREMENTS)
        return packages.build(MODULE, package, str(folder))


def _free_name(key: str, jobs: Sequence[AnyJob]) -> str:
    """Return ``key``, or ``key`` with the first free number from 2 on: ``train-2``."""
    live = {view.title(job) for job in jobs if not view.has_ended(job)}
    names = (key if number == 1 else f"{key}-{number}" for number in itertools.count(1))
    return next(name for name in names if RUN_PREFIX + name not in live)


def _document(
    key: str,
    uri: str,
    words: Sequence[str],
    variables: Mapping[str, str],
    machine: Mapping[str, Any],
) -> dict[str, Any]:
    image = GPU_EXECUTOR if "acceleratorType" in machine else EXECUTOR
    task = {"executorImageUri": image, "packageUris": [uri], "pythonModule": MODULE}
    env = [{"name": name, "value": value} for name, value in variables.items()]
    pool = {
        "replicaCount": 1,
        "machineSpec": dict(machine),
        "pythonPackageSpec": {**task, "env": env, **({"args": list(words)} if words else {})},
    }
    return {
        "serviceAccount": "${serviceAccounts.trainer}",
        "baseOutputDirectory": {"outputUriPrefix": f"${{buckets.artifacts}}/{key}/{REQUEST_ID}"},
        "scheduling": {"timeout": "86400s"},
        "workerPoolSpecs": [pool],
    }


def _bring_up(root: Path) -> None:
    command = [sys.executable, "-m", "vertex_training_cli.cli", "local", "up", "--no-wait"]
    done = subprocess.run(
        command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).splitlines()[-20:]
        raise CommandError("cannot create the stack for scripts:\n" + "\n".join(lines))
