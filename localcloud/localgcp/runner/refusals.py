"""What this machine does not run of a job, known before it is submitted.

A job that is refused here may be right in the cloud. What ends a job at its start has the same
texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from localgcp.containers.images import registry_path
from localgcp.errors import StartRefusedError
from localgcp.runner import executors
from localgcp.runner.gang import cluster

#: Keys and indices from the top of a document to a value.
Path = tuple[str | int, ...]
Level = Literal["error", "warning", "note"]

_POOLS: Final[Path] = ("jobSpec", "workerPoolSpecs")
#: Machine types with TPUs begin so, and accelerators of that kind (catalogue of machines).
_TPU: Final = ("ct", "tpu", "cloud-tpu", "TPU")
#: Fields of a job's spec that are kept, and that nothing here carries out.
_WITHOUT_EFFECT: Final = {
    "persistentResourceId": "the local cloud has no persistent resources: the job runs on this "
    "machine like any other",
    "enableWebAccess": "the local cloud gives no shell in a job: its files are on this machine",
    "enableDashboardAccess": "the local cloud has no dashboard of a job",
}


@dataclass(frozen=True)
class Refusal:
    """One thing that this machine does not run, or runs in another way."""

    path: Path
    """In the CustomJob."""
    what: str
    hint: str = ""
    level: Level = "error"


def refusals(
    job: Mapping[str, Any], engine_missing: Callable[[], str], free_bytes: int
) -> Iterator[Refusal]:
    """What this machine does not run of a CustomJob, in REST's form.

    ``engine_missing`` says why no container runs here, or nothing; asked if an image needs it.
    ``free_bytes`` is the free memory.
    """
    spec = job.get("jobSpec", {})
    try:
        members = cluster.replicas(spec)
        cluster.check_memory(len(members), free_bytes)
    except StartRefusedError as error:
        yield Refusal(_POOLS, error.message)
    for key, what in _WITHOUT_EFFECT.items():
        if spec.get(key):
            yield Refusal(("jobSpec", key), what, level="note")
    for index, pool in enumerate(spec.get("workerPoolSpecs", [])):
        path = (*_POOLS, index)
        yield from _machine(pool.get("machineSpec", {}), (*path, "machineSpec"))
        if container := pool.get("containerSpec"):
            yield from _container(container, (*path, "containerSpec"), engine_missing)
        elif package := pool.get("pythonPackageSpec"):
            image = package.get("executorImageUri", "")
            if executors.for_image(image) is None:
                at = (*path, "pythonPackageSpec", "executorImageUri")
                yield Refusal(at, no_stand_in(image))


def _machine(machine: Mapping[str, Any], path: Path) -> Iterator[Refusal]:
    accelerator = str(machine.get("acceleratorType", ""))
    if str(machine.get("machineType", "")).startswith(_TPU) or accelerator.startswith(_TPU):
        what = "the local cloud has no TPU: code that needs one fails here"
        yield Refusal(path, what, "rehearse the job on a machine type without one", "warning")
    elif machine.get("acceleratorCount"):
        what = "the local cloud has no GPU: the job runs on processors here"
        yield Refusal(path, what, level="note")


def _container(
    container: Mapping[str, Any], path: Path, engine_missing: Callable[[], str]
) -> Iterator[Refusal]:
    image = container.get("imageUri", "")
    if cluster.is_reduction_server(image):
        return  # said of the pools
    if registry_path(image):
        if missing := engine_missing():
            yield Refusal((*path, "imageUri"), f"cannot run here: {missing}", "", "warning")
    elif not container.get("command"):
        yield Refusal((*path, "imageUri"), no_command(image))
    elif executors.for_image(image) is None:
        what = "its command runs on this machine, with the programs that are here, not in the image"
        yield Refusal((*path, "command"), what, level="warning")


def no_stand_in(image: str) -> str:
    """Why a package has no environment here."""
    near = executors.nearest(image)
    hint = f"the nearest is {near}" if near else f"there are: {', '.join(executors.names())}"
    return f"the executor image {image} has no stand-in here ({hint})."


def no_command(image: str) -> str:
    """Why an image of no local project does not run here."""
    return (
        f"the image {image} cannot run here: the local cloud runs images of local projects alone, "
        "and what its ENTRYPOINT does is unknown. Give containerSpec.command to run it on the host."
    )
