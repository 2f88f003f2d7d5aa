"""Jobs that a running program submits: ``vt import --run COMMAND``.

The command is the user's own, in a shell whose clients of Google's come to a recorder on this
machine (``localgcp.recorder``), and whose network has nothing but that recorder
(``localgcp.access.isolation``). So branches, loops, arguments and defaults are those of the code,
and no request leaves this machine.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from google.protobuf import json_format

from localgcp.access import isolation
from localgcp.apis.messages import custom_job
from localgcp.clients.cloud_sdk import PROJECT
from localgcp.errors import LocalCloudError, NoPrivateNetworkError
from localgcp.recorder import RecordedRequest, Recorder
from localgcp.system import processes
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError
from vertex_training.settings.model import Settings
from vertex_training_cli.importing.imported import (
    ImportedJob,
    batch_remark,
    from_message,
    key_of,
    name_by_request,
)
from vertex_training_cli.importing.sources import SourceContents, program_of

#: Name of the package that the client builds from one script (utils/source_utils.py of
#: google-cloud-aiplatform).
SCRIPT_PACKAGE: Final = re.compile(
    r"aiplatform-[^/]*-aiplatform_custom_trainer_script-[\d.]+\.tar\.gz$"
)
#: Fields with 64-bit integers, which protobuf's JSON has as texts.
LONG_FIELDS: Final = ("replicaCount", "minValue", "maxValue", "defaultValue")
#: Errors of reading a package: the command may have written any content.
UNREADABLE: Final = (
    tarfile.TarError, zlib.error, EOFError, OSError, SyntaxError, ValueError, RecursionError,
    MemoryError,
)  # fmt: skip
#: Maximum bytes of a file in a package.
MAX_BYTES: Final = 4 * 1024 * 1024
#: Calls of Google's Python client and of gcloud that create a Batch job.
BATCH_CALL: Final = re.compile(
    r"google\.cloud\.batch\.\w+\.BatchService/CreateJob"
    r"|POST /v1\w*/projects/[^/]+/locations/[^/]+/jobs"
)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_SECONDS: Final = 0.02
#: Seconds between SIGTERM and SIGKILL.
_GRACE: Final = 2.0
#: Limits of an isolated command, for the user.
NO_NETWORK: Final = (
    "the command has no network (except with --no-isolation). Only requests of Google's "
    "Python clients, gcloud and gsutil are recorded, and none if Python runs with -I, "
    "-S, -E or another PYTHONPATH"
)
#: Effects of a command without isolation, for the user.
NOT_ISOLATED: Final = (
    "only requests of Google's Python clients, gcloud and gsutil are recorded. Other programs "
    "can use the network, and Google Cloud with your credentials"
)


def read(command: str, settings: Settings | None, *, isolated: bool = True) -> SourceContents:
    """Run a command of the user, and return the jobs that it submits.

    Its output goes to stderr. Raises CommandError: it sent none, or nothing can be recorded here.
    """
    with (
        _signals_at_the_end() as arrived,
        tempfile.TemporaryDirectory(prefix="vt-import-") as folder,
    ):
        try:
            with Recorder(Path(folder) / "recorder") as recorder:
                env = recorder.environment(os.environ)
                env |= {"PIP_RETRIES": "0"} if isolated else {}
                line = _line_of(command, Path(folder))
                process = _start(line, _defaults(settings, env) | env, recorder, isolated)
                code = _wait(process, arrived)
                source = SourceContents()
                for request in recorder.requests:
                    source.jobs.append(_job(request, recorder.buckets, source))
                source.remarks += _left_out(recorder, code)
                if isolated and not recorder.refused and (code or not source.jobs):
                    source.remarks.append(NO_NETWORK)
                source.remarks += _uploads(recorder.buckets)
        except LocalCloudError as failed:
            raise CommandError(str(failed)) from None
    if not source.jobs:
        ended = f"the command ended with exit code {code} and submitted no job"
        files = [word for word in shlex.split(command) if word.endswith((".py", ".ipynb", ".sh"))]
        others = [
            (f"to read the literals of the code instead: `vt import {shlex.quote(file)}`")
            for file in files[:1]
        ]
        raise CommandError(f"{command}: {ended}.", "; ".join([*source.remarks, *others]))
    return source


def _line_of(command: str, folder: Path) -> str:
    """Return the shell line of the command; for a notebook, write a Python program to ``folder``.

    Raises:
        CommandError: it is no line for a shell, or a notebook that cannot be read.
    """
    try:
        file, *arguments = shlex.split(command) or [""]
    except ValueError as failed:
        raise CommandError(f"cannot parse --run {command!r} as a shell line: {failed}.") from None
    if not file.endswith(".ipynb"):
        return command
    program = folder / f"{Path(file).stem}.py"
    program.write_text(program_of(Path(file)), encoding="utf-8")
    return shlex.join(["python3", str(program), *arguments])


@contextmanager
def _signals_at_the_end() -> Iterator[list[int]]:
    """Delay arriving signals until the cleanup is done; yield the list of signals."""
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda arrives, _frame: arrived.append(arrives))
        for number in _SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN  # nohup
    }
    try:
        yield arrived
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in arrived[:1]:
            signal.raise_signal(number)


def _start(
    command: str, env: Mapping[str, str], recorder: Recorder, isolated: bool
) -> subprocess.Popen[bytes]:
    """Start a command line as the leader of a session, with its output on stderr."""
    words, output = ["/bin/sh", "-c", command], sys.stderr.fileno()
    if not isolated:
        return subprocess.Popen(words, env=env, stdout=output, start_new_session=True)
    try:
        return isolation.start(words, env, recorder.ports, output)
    except NoPrivateNetworkError as refused:
        raise CommandError(
            f"--run cannot isolate the command from the network on this system: {refused}.",
            f"--no-isolation runs the command without isolation: {NOT_ISOLATED}",
        ) from None


def _wait(process: subprocess.Popen[bytes], arrived: list[int]) -> int:
    """Wait until all started processes have ended; return the exit code, 128 + N for signal N."""
    child = processes.ChildProcess(process.pid, processes.start_time(process.pid) or "", "command")
    while process.poll() is None and not arrived:
        time.sleep(_POLL_SECONDS)
    family = processes.descendants(process.pid)
    child.end(_GRACE)
    processes.kill_all(family)
    code = process.wait()
    return code if code >= 0 else 128 - code


def _defaults(settings: Settings | None, env: Mapping[str, str]) -> dict[str, str]:
    """Return variables with the stack's project and region, for code that sets none."""
    if settings is None:
        return {}
    project = env.get("GOOGLE_CLOUD_PROJECT") or settings.project
    region = settings.region
    return {
        "GOOGLE_CLOUD_PROJECT": project,
        PROJECT: project,
        "CLOUDSDK_AI_REGION": region,
        "GOOGLE_CLOUD_REGION": region,
    }


def _job(request: RecordedRequest, buckets: Path, source: SourceContents) -> ImportedJob:
    message = request.message
    if request.kind == "TrainingPipeline":
        message = _of_pipeline(message)
    job = from_message(whole_numbers(message), str(message.get("displayName") or "job"))
    job.region = request.parent.rpartition("/")[2]
    job.remarks += _differences(request)
    name_by_request(job)
    take_script(job, buckets, source)
    return job


def _of_pipeline(message: dict[str, Any]) -> dict[str, Any]:
    """Return the CustomJob that the service creates for a training pipeline."""
    spec = custom_job.CustomJobSpec()
    json_format.ParseDict(message.get("trainingTaskInputs", {}), custom_job.CustomJobSpec.pb(spec))
    kept = {key: message[key] for key in ("displayName", "labels", "encryptionSpec")
            if key in message}  # fmt: skip
    return {**kept, "jobSpec": json_format.MessageToDict(custom_job.CustomJobSpec.pb(spec))}


def _differences(request: RecordedRequest) -> Iterator[str]:
    """Yield remarks on fields of the request that job files do not support."""
    for field, text in (
        ("inputDataConfig", "managed datasets belong to training pipelines: read the bucket"),
        (
            "modelToUpload",
            ("a CustomJob uploads no model: its code writes the model to AIP_MODEL_DIR"),
        ),
    ):
        if field in request.message:
            yield f"{field} is omitted: {text}"


def whole_numbers(value: Any) -> Any:
    """Return the value with 64-bit integers instead of the texts of protobuf's JSON."""
    if isinstance(value, dict):
        return {
            key: int(item)
            if key in LONG_FIELDS and isinstance(item, str) and re.fullmatch(r"-?\d+", item)
            else whole_numbers(item)
            for key, item in value.items()
        }
    return [whole_numbers(item) for item in value] if isinstance(value, list) else value


def take_script(job: ImportedJob, buckets: Path, source: SourceContents) -> None:
    """Extract the script that the client packaged and uploaded; other packages stay unchanged."""
    pools = [pool for pool in job.spec.get("workerPoolSpecs", []) if isinstance(pool, dict)]
    tasks = [pool["pythonPackageSpec"] for pool in pools if "pythonPackageSpec" in pool]
    uris = {uri for task in tasks for uri in task.get("packageUris", ())}
    for uri in sorted(uris):
        name = uri.removeprefix("gs://")
        if not SCRIPT_PACKAGE.search(name):
            continue
        try:
            with RootDirectory(buckets).open(name) as package:
                code, job.requirements = _script_of(package)
        except FileNotFoundError:  # of another program
            continue
        except UNREADABLE as failed:
            job.remarks.append(f"cannot read {uri}, which is not changed ({type(failed).__name__})")
            continue
        script = f"{key_of(job.name).replace('-', '_')}.py"
        source.files[script], job.script = code, script


def _script_of(package: BinaryIO) -> tuple[str, tuple[str, ...]]:
    """Return the text of the only script in a package of the client, and its requirements."""
    code, requirements = "", ()
    with tarfile.open(fileobj=package) as archive:
        for member in archive:
            if not member.isfile() or member.size > MAX_BYTES:
                continue
            stream = archive.extractfile(member)
            text = stream.read().decode("utf-8", errors="replace") if stream else ""
            if member.name.endswith("/aiplatform_custom_trainer_script/task.py"):
                code = text
            elif member.name.endswith("/setup.py"):
                requirements = tuple(_requirements(text))
    return code, requirements


def _requirements(setup: str) -> Iterator[str]:
    """Return the texts of ``install_requires`` in a setup.py, without running it."""
    for node in ast.walk(ast.parse(setup)):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            for text in ast.walk(node.value):
                value = text.value if isinstance(text, ast.Constant) else None
                if isinstance(value, str) and value.isprintable():  # a line each
                    yield value


def _left_out(recorder: Recorder, code: int) -> Iterator[str]:
    """Yield remarks on the exit code and on unsupported methods that the command called."""
    called = [method.lstrip("/") for method in dict.fromkeys(recorder.refused)]
    methods = [*called]
    if code and methods:
        yield (
            f"the command called {methods.pop()}, which --run does not support, and ended "
            f"with exit code {code}: later jobs are missing"
        )
    elif code:
        yield f"the command ended with exit code {code}: later jobs may be missing"
    yield from (batch_remark(method) for method in called if BATCH_CALL.fullmatch(method))
    for method in methods:
        yield f"the command called {method}, which --run does not support"


def _uploads(buckets: Path) -> Iterator[str]:
    """Yield a remark for each bucket that the command uploaded objects to, except packages."""
    for bucket in sorted(buckets.iterdir()):
        files = [file for file in sorted(bucket.rglob("*")) if file.is_file()]
        names = [file.relative_to(bucket).as_posix() for file in files
                 if not SCRIPT_PACKAGE.search(file.name)]  # fmt: skip
        if names:
            shown = f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}"
            yield (
                f"objects that the code uploads to gs://{bucket.name} are not imported ({shown}): "
                "upload them by `gcloud storage cp`"
            )
