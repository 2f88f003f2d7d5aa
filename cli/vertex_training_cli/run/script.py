"""Run a Python file without a stack, in the local cloud's own stack for scripts.

The job gets the files of the script's folder without hidden files, caches, large files, files with
secrets, and files that ``.gitignore`` or ``.vtignore`` excludes.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pathspec import GitIgnoreSpec

from localgcp.home import Home, open_private
from vertex_training import stack as stacks
from vertex_training.catalog import machines
from vertex_training.errors import CommandError, counted, nearest
from vertex_training.naming import CONTROL
from vertex_training.plan import packages
from vertex_training.plan.packages import REQUIREMENTS
from vertex_training.secret_rules.files import File, scan
from vertex_training.stack import Stack
from vertex_training_cli.catalogue import MachineOption, select
from vertex_training_cli.console import print_status
from vertex_training_cli.engine.stacks import StackRef, find_scripts, local_cloud_errors
from vertex_training_cli.importing.imported import REQUEST_ID, free_key, key_of
from vertex_training_cli.jobs import view
from vertex_training_cli.jobs.deployed import RUN_CODE, RUN_PREFIX
from vertex_training_cli.jobs.service import Jobs
from vertex_training_cli.run import submission
from vertex_training_cli.run.submission import PreparedRun

STACK: Final = "local"
#: Name of the package that starts a script. The package has the script's requirements.
MODULE: Final = "script"
#: Container images of script runs without and with GPUs.
EXECUTOR: Final = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
GPU_EXECUTOR: Final = EXECUTOR.replace("xla", "gpu")
REGION: Final = "us-central1"
#: Default machine type of a script.
MACHINE: Final = "n1-standard-4"
#: Environment variable with the script's path in the archive of a run's code.
_SCRIPT: Final = "VT_SCRIPT"
#: Module that unpacks the code and executes the script. All scripts have the same module, so that a
#: changed script does not require a new installation.
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
def turn() -> Iterator[None]:
    """Lock the local cloud's folder while a process chooses a run's name and submits the run."""
    with local_cloud_errors():
        home = Home.find()
        home.create()
    with open_private(home.root / "run.lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print_status("waiting until another `vt run` has submitted its script")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def find() -> StackRef:
    """Return the stack of scripts. Starts the local cloud and connects the clients to it."""
    home = Home.find()
    os.environ["VT_LOCAL_HOME"] = str(home.root)  # The stack's folder is below this folder.
    ref = find_scripts(home)
    ref.environment(print_status)
    ref.root.mkdir(exist_ok=True)
    for name, text in _FILES.items():
        (ref.root / name).write_text(text.format(prefix=sys.prefix, region=REGION))
    ref.connect_clients()
    settings = stacks.load(ref.root, ref.stack).settings
    control = settings.names.bucket(CONTROL)
    if not submission.has_bucket(ref.project, control, settings.project_number):
        print_status("creating the stack for scripts; later runs use the same stack")
        _bring_up(ref.root)
    return ref


def choose_machine(gpus: int = 0, name: str = "") -> dict[str, Any]:
    """Return the ``machineSpec`` of the smallest machine type with these GPUs or this name."""
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

        def order(row: tuple[MachineOption, int]) -> tuple[int, bool, float, int]:
            """Return the sort key: GPUs, unknown prices last, then list price."""
            option, count = row
            prices = [option.price(REGION), *[option.gpu_price(REGION)] * count]
            known = sum(price.on_demand for price in prices if price)
            is_unknown = option.price(REGION) is None or option.machine.reservation_required
            return count, is_unknown, known, option.machine.vcpus or 0

        option, count = min(suitable, key=order)
        added = {"acceleratorType": option.accelerator, "acceleratorCount": count} if count else {}
        return {"machineType": option.machine.name, **added}
    numbers = ", ".join(map(str, sorted({count for _, count in rows if count}))) or "none"
    text = f"machine type {name} cannot have" if name else f"no machine type in {REGION} has"
    hint = f"possible numbers of GPUs: {numbers}. See `vt catalogue`"
    raise CommandError(f"{text} {counted(gpus, 'GPU')}.", hint)


def prepare(
    script: Path,
    words: Sequence[str],
    files: Code,
    ref: StackRef,
    stack: Stack,
    name: str,
    machine: Mapping[str, Any],
) -> PreparedRun:
    """Return the next run of a script on a machine, with ``files`` as its code."""
    submitted = Jobs(ref).list()
    live = {view.title(job) for job in submitted if not view.has_ended(job)}
    key = name or free_key(
        key_of(script.stem),
        {job.removeprefix(RUN_PREFIX) for job in live if job.startswith(RUN_PREFIX)},
    )
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
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / MODULE
        package.mkdir()
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(START)
        if requirements is not None:
            shutil.copyfile(requirements, package / packages.REQUIREMENTS)
        return packages.build(MODULE, package, str(folder))


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


#: Files with patterns of gitignore(5). The patterns of the second file take precedence.
IGNORE_FILES: Final = (".gitignore", ".vtignore")
#: Folders that are never sent. A virtual environment is recognized by its pyvenv.cfg.
SKIPPED_FOLDERS: Final = ("__pycache__", "node_modules")
MAX_FILE: Final = 25 * 2**20
MAX_TOTAL: Final = 100 * 2**20
MAX_FILES: Final = 10_000
#: Maximum size of a file, and of all files, to scan for secrets, in bytes. Larger scans would delay
#: a run.
_SCANNED_FILE: Final = 64 * 2**10
_SCANNED_TOTAL: Final = 2**20
#: Maximum number of file names that are printed for each reason.
_SHOWN: Final = 3

_IGNORED: Final = "ignored"
_LINK: Final = "a link to a file outside of the folder"
_SPECIAL: Final = "a link to a folder, a device or a pipe"
_LARGE: Final = f"larger than {MAX_FILE >> 20} MiB"
_SECRET: Final = "may contain a secret"
_UNREADABLE: Final = "not readable"


@dataclass(slots=True)
class Code:
    """Files by their paths in the archive, and reasons for files that were skipped."""

    files: dict[str, Path] = field(default_factory=dict[str, Path])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    total: int = 0

    def add(self, name: str, file: Path) -> None:
        """Add a file, or raise CommandError if the code has too many or too large files."""
        self.total += 0 if name in self.files else file.stat().st_size
        self.files[name] = file
        self.left_out.pop(name, None)
        if len(self.files) > MAX_FILES or self.total > MAX_TOTAL:
            raise CommandError(
                f"a script run sends at most {MAX_FILES:,} files and {MAX_TOTAL >> 20} MiB.",
                "list unneeded files in .vtignore, or send only the script with --no-code",
            )

    @property
    def note(self) -> str:
        """Return one line on the skipped files; empty if no file was skipped."""
        parts: list[str] = []
        for reason in sorted({*self.left_out.values()}):
            names = sorted(name for name, why in self.left_out.items() if why == reason)
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            parts.append(f"{', '.join(names[:_SHOWN])}{more} ({reason})")
        text = f"files that are not sent: {'; '.join(parts)}. Hint: add files with --with PATH"
        return text if parts else ""

    def archive(self) -> bytes:
        """Return a tar archive that depends only on names and content."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, file in sorted(self.files.items()):
                entry, content = tarfile.TarInfo(name), file.read_bytes()
                entry.size = len(content)
                entry.mode = 0o755 if os.access(file, os.X_OK) else 0o644
                tar.addfile(entry, io.BytesIO(content))
        return packed.getvalue()


def collect(script: Path, added: Sequence[Path], *, alone: bool = False) -> Code:
    """Return the script, the other files of its folder unless ``alone``, and ``added`` files."""
    folder, code = script.parent.resolve(), Code()
    requirements = folder / REQUIREMENTS
    if alone:
        if requirements.is_file() and not _reason(requirements, folder):
            code.add(REQUIREMENTS, requirements)
    else:
        above = folder.parents
        top = next((parent for parent in (folder, *above) if (parent / ".git").exists()), folder)
        between = [parent for parent in reversed(above) if parent.is_relative_to(top)]
        specs = tuple(spec for parent in between for spec in _specs_of(parent))
        for file in _files_below(folder, folder, specs, code.left_out):
            code.add(file.relative_to(folder).as_posix(), file)
        _skip_secrets(code)
    code.add(script.name, script)
    for path in added:
        _add(path, folder, code)
    return code


def _add(path: Path, folder: Path, code: Code) -> None:
    if not path.exists():
        raise CommandError(f"--with: {path} does not exist.")
    top = path.resolve()
    within = top.relative_to(folder) if top.is_relative_to(folder) else Path(top.name)
    if not top.is_dir():
        if reason := _reason(top, top.parent):
            raise CommandError(f"--with: cannot send {path}: {reason}.")
        code.add(within.as_posix(), top)
        return
    code.left_out.pop(f"{within.as_posix()}/", None)
    left_out: dict[str, str] = {}
    for file in _files_below(top, top, None, left_out):
        code.add((within / file.relative_to(top)).as_posix(), file)
    code.left_out |= {(within / name).as_posix(): reason for name, reason in left_out.items()}


#: A folder, and the patterns of its ignore files.
_Specs = tuple[tuple[Path, GitIgnoreSpec], ...]


def _files_below(
    top: Path, folder: Path, specs: _Specs | None, left_out: dict[str, str]
) -> Iterator[Path]:
    """Yield the regular files below a folder; without ``specs`` also hidden and large files."""
    with_ignored = specs is None
    specs = () if specs is None else (*specs, *_specs_of(folder))
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        left_out[f"{folder.relative_to(top).as_posix()}/"] = _UNREADABLE
        return
    for entry in entries:
        path = Path(entry.path)
        name = path.relative_to(top).as_posix()
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and (entry.name in SKIPPED_FOLDERS or (path / "pyvenv.cfg").exists()):
            continue
        if entry.name.startswith(".") and not with_ignored:
            if entry.name.startswith(".env") and not is_folder:
                left_out[name] = _SECRET
        elif _is_ignored(path, specs, is_folder=is_folder):
            left_out[f"{name}/" if is_folder else name] = _IGNORED
        elif is_folder:
            yield from _files_below(top, path, None if with_ignored else specs, left_out)
        elif reason := _reason(path, top) or ("" if with_ignored else _too_large(path)):
            left_out[name] = reason
        else:
            yield path


def _reason(path: Path, top: Path) -> str:
    """Return the reason why a file cannot be sent, or an empty text."""
    try:
        if path.is_symlink() and not path.resolve(strict=True).is_relative_to(top):
            return _LINK
        if not stat.S_ISREG(path.stat().st_mode):
            return _SPECIAL
    except (OSError, RuntimeError):  # The target is missing, or the link leads to itself.
        return _LINK
    return "" if os.access(path, os.R_OK) else _UNREADABLE


def _too_large(path: Path) -> str:
    return _LARGE if path.stat().st_size > MAX_FILE else ""


def _specs_of(folder: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    for name in IGNORE_FILES:
        file = folder / name
        if file.is_file() and not _reason(file, folder) and not _too_large(file):
            lines = file.read_text("utf-8", errors="replace").splitlines()
            try:
                yield folder, GitIgnoreSpec.from_lines(lines)
            except ValueError as error:
                raise CommandError(f"cannot read {file}: {error}") from None


def _is_ignored(path: Path, specs: _Specs, *, is_folder: bool) -> bool:
    for folder, spec in reversed(specs):
        name = path.relative_to(folder).as_posix()
        verdict = spec.check_file(f"{name}/" if is_folder else name).include
        if verdict is not None:
            return verdict
    return False


def _skip_secrets(code: Code) -> None:
    scanned: list[File] = []
    left = _SCANNED_TOTAL
    for name, file in code.files.items():
        size = file.stat().st_size
        if size <= min(_SCANNED_FILE, left):
            left -= size
            scanned.append(File(name, size, file.read_bytes))
        else:  # Only the name is checked.
            scanned.append(File(name, 0, bytes))
    for name in {problem.location.file for problem in scan(scanned, ()).problems}:
        del code.files[name]
        code.left_out[name] = _SECRET
