"""Parts of a job that this machine cannot run, detected before submission.

The same job may be correct in the cloud. A job that fails at its start has the same texts.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

from localgcp.containers.engines import registry_path
from localgcp.errors import ExecutorError, StartRefusedError
from localgcp.runner import executors, hosts
from localgcp.runner.allotment import (
    GpuShortage,
    describe,
    describe_request,
    difference,
    divide,
    requested,
)
from localgcp.runner.executors import python_of, python_substitute, version_substitute
from localgcp.runner.hosts import Replica
from localgcp.system.gpus import list_gpus

#: Keys and indices from the top of a document to a value.
Path = tuple[str | int, ...]
Level = Literal["error", "warning", "note"]

_POOLS: Final[Path] = ("jobSpec", "workerPoolSpecs")
#: Prefixes of machine types with TPUs, and of TPU accelerators (catalogue of machines).
_TPU: Final = ("ct", "tpu", "cloud-tpu", "TPU")
#: Names of Python in a command line or a shell script.
_PYTHON: Final = re.compile(r"(?<![\w./-])python(?:3(?:\.\d+)?)?(?![\w.-])")
#: Fields of a job's spec that the local cloud stores without effect.
_WITHOUT_EFFECT: Final = {
    "persistentResourceId": "the local cloud has no persistent resources; the job runs on this "
    "machine like any other job",
    "enableWebAccess": (
        "the local cloud offers no interactive shell; the job's files are on this machine"
    ),
    "enableDashboardAccess": "the local cloud offers no dashboard of a job",
}

_STORED_ONLY: Final = (
    "medianAutomatedStoppingSpec",
    "decayCurveStoppingSpec",
    "convexAutomatedStoppingSpec",
    "studyStoppingConfig",
)


@dataclass(frozen=True)
class Refusal:
    """A part of a job that this machine cannot run, or runs differently."""

    path: Path
    """Path of the part in the CustomJob."""
    what: str
    hint: str = ""
    level: Level = "error"


def refusals(
    job: Mapping[str, Any],
    engine_missing: Callable[[], str],
    free_bytes: int,
    *,
    nearest: bool = False,
    shortage: GpuShortage = GpuShortage.AUTO,
) -> Iterator[Refusal]:
    """Yield the parts of a CustomJob (REST form) that this machine cannot run.

    ``engine_missing`` returns why no container can run here, or an empty text. ``nearest``: see
    ``executors.for_image``. ``shortage``: behavior of jobs that request more GPUs than are free.
    """
    spec = job.get("jobSpec", {})
    try:
        members = hosts.replicas(spec)
        yield from _gpus(members, shortage)
        hosts.check_memory(len(members), free_bytes)
    except StartRefusedError as error:
        yield Refusal(_POOLS, error.message)
    for key, what in _WITHOUT_EFFECT.items():
        if spec.get(key):
            yield Refusal(("jobSpec", key), what, level="note")
    for index, pool in enumerate(spec.get("workerPoolSpecs", [])):
        path = (*_POOLS, index)
        machine = pool.get("machineSpec", {})
        names = (machine.get("machineType", ""), machine.get("acceleratorType", ""))
        if any(str(name).startswith(_TPU) for name in names):
            what = "the local cloud has no TPU: code that requires a TPU fails"
            hint = "rehearse the job on a machine type without a TPU"
            yield Refusal((*path, "machineSpec"), what, hint, "warning")
        if container := pool.get("containerSpec"):
            yield from _container(container, (*path, "containerSpec"), engine_missing, nearest)
        elif package := pool.get("pythonPackageSpec"):
            at = (*path, "pythonPackageSpec", "executorImageUri")
            yield from _executor(package.get("executorImageUri", ""), at, nearest)


def _gpus(members: Sequence[Replica], shortage: GpuShortage) -> Iterator[Refusal]:
    first = next(filter(requested, members), None)
    if first is None:
        return
    request, available = describe_request(members), list_gpus()
    if divided := divide(members, available):
        note = difference(members, [gpu for gpus in divided.values() for gpu in gpus])
        what = note and f"the job runs {note}"
    else:
        action = "waits" if shortage is GpuShortage.WAIT else "runs on CPUs"
        has = f"this machine has {describe(available)}"
        what = f"{has}, and the job requests {request}: the job {action}"
    if what:
        yield Refusal((*_POOLS, first.pool, "machineSpec"), what, level="note")


def _executor(image: str, path: Path, nearest: bool) -> Iterator[Refusal]:
    executor = executors.for_image(image, nearest=nearest)
    if executor is None:
        yield Refusal(path, *no_stand_in(image))
        return
    try:
        version = executors.python_version(executor)
    except ExecutorError as error:
        yield Refusal(path, str(error))
        return
    if taken := version_substitute(image, executor):
        yield Refusal(path, f"the package runs {taken}", level="warning")
    if other := python_substitute(image, version):
        yield Refusal(path, f"the package runs {other}", level="note")


def _container(
    container: Mapping[str, Any], path: Path, engine_missing: Callable[[], str], nearest: bool
) -> Iterator[Refusal]:
    image = container.get("imageUri", "")
    if hosts.is_reduction_server(image):
        return  # Another check reports reduction servers.
    if registry_path(image):
        if missing := engine_missing():
            yield Refusal(
                (*path, "imageUri"), f"the image cannot run here: {missing}", "", "warning"
            )
    elif not container.get("command"):
        yield Refusal((*path, "imageUri"), no_command(image))
    else:
        yield from _command(container, (*path, "command"), nearest)


def _command(container: Mapping[str, Any], path: Path, nearest: bool) -> Iterator[Refusal]:
    image, words = container["imageUri"], [*container["command"], *container.get("args", [])]
    executor = executors.for_image(image, nearest=nearest)
    named = {name for word in words for name in _PYTHON.findall(word)}
    version = _python_here(executor, named)
    provided = {"python", "python3", f"python{version}"} if executor else set[str]()
    for name in sorted(named - provided):
        if shutil.which(name) is None:
            what = f"the command starts {name}, which is not installed on this machine"
            yield Refusal(path, what, f"install {name}", "warning")
    known = version and (executor or python_of(image))
    other = python_substitute(image, version) if known else ""
    if executor is None:
        what = "the command runs on this machine with its installed programs, not in the image"
        yield Refusal(path, f"{what}, {other}" if other else what, level="warning")
        return
    for python_version in filter(None, (version_substitute(image, executor), other)):
        yield Refusal(path, f"the command runs {python_version}", level="warning")


def _python_here(executor: executors.Executor | None, named: set[str]) -> str:
    if not named:
        return ""
    if executor:
        with suppress(ExecutorError):  # Other checks report the error.
            return executors.python_version(executor)
        return ""
    path = shutil.which(min(named))
    return executors.version_of(path) or "" if path else ""


def no_stand_in(image: str) -> tuple[str, str]:
    """Return why a package's image has no stand-in, with a hint."""
    near, supported = executors.nearest_to(image), ", ".join(executors.names())
    alternatives = f"the nearest supported image is {near}" if near else f"supported: {supported}"
    known = executors.for_image(image, nearest=True)
    hint = "`vt local start --prebuilt nearest` uses that image" if known else ""
    return f"the local cloud has no stand-in for the executor image {image} ({alternatives}).", hint


def no_command(image: str, field: str = "containerSpec.command") -> str:
    """Return why an image outside of local projects cannot run; ``field`` sets a command."""
    return (
        f"the image {image} cannot run here: the local cloud runs only images of local projects, "
        f"and the ENTRYPOINT is unknown. Set {field} to run a command on this machine."
    )


def stored_only(study: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield warnings for rules of a ``studySpec`` that the local cloud stores but ignores."""
    for field in (name for name in _STORED_ONLY if name in study):
        what = f"the local cloud stores {field} without effect: every trial runs to its end"
        yield Refusal(("studySpec", field), what, level="warning")
