"""Jobs that a running program submits: ``vt import --run COMMAND``.

The command runs in a shell. Its Google clients connect to a recorder on this machine
(``localgcp.recorder``), which is the only host on its network (``localgcp.access.isolation``).
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
from localgcp.apis.client import custom_job
from localgcp.clients.cloud_sdk import PROJECT
from localgcp.errors import LocalCloudError, NoPrivateNetworkError
from localgcp.recorder import RecordedRequest, Recorder
from localgcp.system import processes
from localgcp.system.root_directory import RootDirectory
from vertex_training.errors import CommandError
from vertex_training.settings.model import Settings
from vertex_training_cli.importing.client_calls import DROPPED
from vertex_training_cli.importing.imported import (
    ImportedJob,
    batch_remark,
    from_message,
    key_of,
    name_by_request,
)
from vertex_training_cli.importing.sources import SourceContents, program_of

#: Name of the package that google-cloud-aiplatform builds from a script (utils/source_utils.py).
SCRIPT_PACKAGE: Final = re.compile(
    r"aiplatform-[^/]*-aiplatform_custom_trainer_script-[\d.]+\.tar\.gz$"
)
#: Fields with 64-bit integers, which protobuf's JSON has as texts.
LONG_FIELDS: Final = ("replicaCount", "minValue", "maxValue", "defaultValue")
#: Errors of reading a package, which may have any content.
UNREADABLE: Final = (
    tarfile.TarError, zlib.error, EOFError, OSError, SyntaxError, ValueError, RecursionError,
    MemoryError,
)  # fmt: skip
#: Maximum size of a file in a package, in bytes.
MAX_BYTES: Final = 4 * 1024 * 1024
#: Calls of Google's Python client and of gcloud that create a Batch job.
BATCH_CALL: Final = re.compile(
    r"google\.cloud\.batch\.\w+\.BatchService/CreateJob"
    r"|POST /v1\w*/projects/[^/]+/locations/[^/]+/jobs"
)
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_POLL_SECONDS: Final = 0.02
#: Time between SIGTERM and SIGKILL, in seconds.
_GRACE: Final = 2.0
NO_NETWORK: Final = (
    "the command has no network access without --no-isolation. Only requests of Google's "
    "Python clients, gcloud and gsutil are recorded. Requests are not recorded if Python runs "
    "with -I, -S, -E or another PYTHONPATH"
)
NOT_ISOLATED: Final = (
    "only requests of Google's Python clients, gcloud and gsutil are recorded. Other programs "
    "can use the network, and Google Cloud with your credentials"
)


def read(command: str, settings: Settings | None, *, isolated: bool = True) -> SourceContents:
    """Run a command of the user with its output on stderr; return the jobs that it submits."""
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
            f"import only the literals of the code: `vt import {shlex.quote(file)}`"
            for file in files[:1]
        ]
        raise CommandError(f"{command}: {ended}.", "; ".join([*source.remarks, *others]))
    return source


def _line_of(command: str, folder: Path) -> str:
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
    """Delay signals until the cleanup is done. Yield the list of delayed signals."""
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
    words, output = ["/bin/sh", "-c", command], sys.stderr.fileno()
    if not isolated:
        return subprocess.Popen(words, env=env, stdout=output, start_new_session=True)
    try:
        return isolation.start(words, env, recorder.ports, output)
    except NoPrivateNetworkError as refused:
        raise CommandError(
            f"--run cannot isolate a command from the network on this machine: {refused}.",
            f"--no-isolation runs the command without isolation: {NOT_ISOLATED}",
        ) from None


def _wait(process: subprocess.Popen[bytes], arrived: list[int]) -> int:
    child = processes.ChildProcess(process.pid, processes.start_time(process.pid) or "", "command")
    while process.poll() is None and not arrived:
        time.sleep(_POLL_SECONDS)
    family = processes.descendants(process.pid)
    child.end(_GRACE)
    processes.kill_all(family)
    code = process.wait()
    return code if code >= 0 else 128 - code


def _defaults(settings: Settings | None, env: Mapping[str, str]) -> dict[str, str]:
    if settings is None:
        return {}
    project = env.get("GOOGLE_CLOUD_PROJECT") or settings.project
    regions = dict.fromkeys(("CLOUDSDK_AI_REGION", "GOOGLE_CLOUD_REGION"), settings.region)
    return {"GOOGLE_CLOUD_PROJECT": project, PROJECT: project, **regions}


def _job(request: RecordedRequest, buckets: Path, source: SourceContents) -> ImportedJob:
    message = request.message
    if request.kind == "TrainingPipeline":
        message = _of_pipeline(message)
    job = from_message(whole_numbers(message), str(message.get("displayName") or "job"))
    job.region = request.parent.rpartition("/")[2]
    for field, option in (("inputDataConfig", "dataset"), ("modelToUpload", "model_display_name")):
        if field in request.message:
            job.remarks.append(f"field {field} is not imported: {DROPPED[option]}")
    name_by_request(job)
    take_script(job, buckets, source)
    return job


def _of_pipeline(message: dict[str, Any]) -> dict[str, Any]:
    spec = custom_job.CustomJobSpec()
    json_format.ParseDict(message.get("trainingTaskInputs", {}), custom_job.CustomJobSpec.pb(spec))
    kept = {key: message[key] for key in ("displayName", "labels", "encryptionSpec")
            if key in message}  # fmt: skip
    return {**kept, "jobSpec": json_format.MessageToDict(custom_job.CustomJobSpec.pb(spec))}


def whole_numbers(value: Any) -> Any:
    """Return the value with integers where protobuf's JSON has 64-bit integers as texts."""
    if isinstance(value, dict):
        return {
            key: int(item)
            if key in LONG_FIELDS and isinstance(item, str) and re.fullmatch(r"-?\d+", item)
            else whole_numbers(item)
            for key, item in value.items()
        }
    return [whole_numbers(item) for item in value] if isinstance(value, list) else value


def take_script(job: ImportedJob, buckets: Path, source: SourceContents) -> None:
    """Extract the script from the package that the client uploaded. Keep other packages."""
    uris = {uri for task in job.tasks("pythonPackageSpec") for uri in task.get("packageUris", ())}
    for uri in sorted(uris):
        name = uri.removeprefix("gs://")
        if not SCRIPT_PACKAGE.search(name):
            continue
        try:
            with RootDirectory(buckets).open(name) as package:
                code, job.requirements = _script_of(package)
        except FileNotFoundError:  # another program's package
            continue
        except UNREADABLE as failed:
            job.remarks.append(
                f"cannot read the script in package {uri} ({type(failed).__name__}), so the job "
                "keeps the package"
            )
            continue
        script = f"{key_of(job.name).replace('-', '_')}.py"
        source.files[script], job.script = code, script


def _script_of(package: BinaryIO) -> tuple[str, tuple[str, ...]]:
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
    for node in ast.walk(ast.parse(setup)):
        if isinstance(node, ast.keyword) and node.arg == "install_requires":
            for text in ast.walk(node.value):
                value = text.value if isinstance(text, ast.Constant) else None
                if (
                    isinstance(value, str) and value.isprintable()
                ):  # requirements.txt has one per line.
                    yield value


def _left_out(recorder: Recorder, code: int) -> Iterator[str]:
    called = [method.lstrip("/") for method in dict.fromkeys(recorder.refused)]
    methods = [*called]
    if code and methods:
        yield (
            f"the command called {methods.pop()}, which --run does not support, and ended "
            f"with exit code {code}: jobs that it submits later are missing"
        )
    elif code:
        yield f"the command ended with exit code {code}: jobs that it submits later may be missing"
    yield from (batch_remark(method) for method in called if BATCH_CALL.fullmatch(method))
    for method in methods:
        yield f"the command called {method}, which --run does not support"


def _uploads(buckets: Path) -> Iterator[str]:
    for bucket in sorted(buckets.iterdir()):
        files = [file for file in sorted(bucket.rglob("*")) if file.is_file()]
        names = [file.relative_to(bucket).as_posix() for file in files
                 if not SCRIPT_PACKAGE.search(file.name)]  # fmt: skip
        if names:
            shown = f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''}"
            yield (
                f"objects that the code uploads to gs://{bucket.name} are not imported ({shown}): "
                "upload these objects with `gcloud storage cp`"
            )
