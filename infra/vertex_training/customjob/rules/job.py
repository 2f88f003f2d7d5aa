"""A request as the rules read it: pools, machines, tasks, context, and facts for other jobs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.rules.context import FILE_ONLY, Context, JobFacts, ReservationRequest
from vertex_training.errors import Path

Request = dict[str, Any]
SPEC: Final[Path] = ("jobSpec",)
POOLS: Final[Path] = ("jobSpec", "workerPoolSpecs")
TASKS: Final = ("containerSpec", "pythonPackageSpec")
#: Programs that take a script as the word after ``-c``, and pass what follows it as $0, $1, …
SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
#: Part of the name of Google's image that runs a reduction server.
REDUCTION_SERVER: Final = "/reductionserver"


def is_shell(word: str) -> bool:
    """Return whether a word of a command line starts a shell.

    >>> is_shell("/bin/bash"), is_shell("python")
    (True, False)
    """
    return word.rpartition("/")[2] in SHELLS


@dataclass(frozen=True)
class Pool:
    """A worker pool that is not skipped."""

    index: int
    spec: dict[str, Any]

    @property
    def path(self) -> Path:
        """Its path in the request."""
        return (*POOLS, self.index)

    @property
    def machine(self) -> dict[str, Any]:
        """Its machineSpec, empty if it has none."""
        return self.spec.get("machineSpec", {})

    @property
    def machine_path(self) -> Path:
        """Path of its machineSpec."""
        return (*self.path, "machineSpec")

    @property
    def machine_type(self) -> str:
        """Its machineType, empty if it has none."""
        return self.machine.get("machineType", "")

    @functools.cached_property
    def shape(self) -> machines.MachineType | None:
        """Its machine type in the catalogue, if it is there."""
        return machines.machine_type(self.machine_type)

    @property
    def accelerator(self) -> str:
        """Its acceleratorType, empty if it has none."""
        name = self.machine.get("acceleratorType", "")
        return "" if name.endswith("_UNSPECIFIED") else name

    @property
    def count(self) -> int:
        """Its acceleratorCount; 0 means none, as in the API."""
        return self.machine.get("acceleratorCount", 0)

    @property
    def gpu(self) -> bool:
        """Whether its machines have GPUs, by the file or by the machine type."""
        shape = self.shape
        bundled = shape.accelerators if shape and shape.accelerator_required else ()
        return any(name.startswith("NVIDIA") for name in (self.accelerator, *bundled))

    @property
    def required(self) -> bool:
        """Whether its machine type comes with accelerators that must be named."""
        return self.shape is not None and self.shape.accelerator_required

    @property
    def affinity(self) -> dict[str, Any] | None:
        """Its reservationAffinity."""
        return self.machine.get("reservationAffinity")

    @property
    def reserved(self) -> bool:
        """Whether it requests a reservation."""
        kind = (self.affinity or {}).get("reservationAffinityType")
        return kind in ("ANY_RESERVATION", "SPECIFIC_RESERVATION")

    @property
    def unreserved(self) -> bool:
        """Whether it certainly requests no reservation."""
        affinity = self.affinity
        return affinity is None or affinity.get("reservationAffinityType") == "NO_RESERVATION"

    @property
    def replicas(self) -> int:
        """Its replicaCount; the service takes 1 if there is none."""
        return self.spec.get("replicaCount", 1)

    @property
    def task_name(self) -> str:
        """``containerSpec`` or ``pythonPackageSpec``; empty if it has neither."""
        return next((name for name in TASKS if name in self.spec), "")

    @property
    def task(self) -> dict[str, Any]:
        """What it runs, empty if nothing."""
        return self.spec.get(self.task_name, {})

    @property
    def task_path(self) -> Path:
        """Path of its task."""
        return (*self.path, self.task_name)

    @property
    def image_field(self) -> str:
        """Name of the field that holds its image."""
        return "imageUri" if self.task_name == "containerSpec" else "executorImageUri"

    @property
    def image(self) -> str:
        """Its image, empty if it has none."""
        return self.task.get(self.image_field, "")

    @property
    def env(self) -> list[dict[str, Any]]:
        """Its environment variables."""
        return self.task.get("env", [])

    @property
    def is_reduction_server(self) -> bool:
        """Whether it runs Google's reduction server."""
        return REDUCTION_SERVER in self.image

    def words(self) -> list[tuple[Path, str]]:
        """The command line that it runs: command and args, each word with its path."""
        return [
            ((*self.task_path, field, index), text)
            for field in ("command", "args")
            for index, text in enumerate(self.task.get(field, []))
        ]

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Texts that the code receives: command, args and values of env, each with its path."""
        yield from self.words()
        for index, variable in enumerate(self.env):
            if "value" in variable:
                yield (*self.task_path, "env", index, "value"), variable["value"]


@dataclass(frozen=True)
class Job:
    """One request and its context."""

    request: Request
    context: Context = FILE_ONLY
    unreadable: tuple[Path, ...] = ()
    """Paths whose value could not be read: their absence proves nothing."""
    tuning: Request | None = None
    """The HyperparameterTuningJob that ``request`` is a trial of; None of a job of its own."""

    @property
    def kind(self) -> JobKind:
        """The kind of the resource that its file describes."""
        return CUSTOM_JOB if self.tuning is None else TUNING_JOB

    @property
    def spec(self) -> dict[str, Any]:
        """Its jobSpec, empty if it has none."""
        return self.request.get("jobSpec", {})

    @functools.cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Worker pools that are not skipped."""
        specs = self.spec.get("workerPoolSpecs", [])
        return tuple(Pool(index, spec) for index, spec in enumerate(specs) if spec)

    @property
    def nodes(self) -> int:
        """Its machines: all replicas of its pools."""
        return sum(pool.replicas for pool in self.pools)

    @property
    def parallel(self) -> int:
        """How many of it run at once: the trials of a tuning job, else 1."""
        tuning = self.tuning or {}
        counts = (tuning.get("maxTrialCount", 1), tuning.get("parallelTrialCount", 1))
        return max(1, min(counts))

    @property
    def region(self) -> str | None:
        """Region the job is sent to, if known."""
        return self.context.region

    @property
    def scheduling(self) -> dict[str, Any]:
        """Its scheduling, empty if it has none."""
        return self.spec.get("scheduling", {})

    @property
    def strategy(self) -> str:
        """STANDARD, SPOT or FLEX_START, also by their deprecated names; ``?`` if unreadable."""
        if any(path[1:2] == ("scheduling",) for path in self.unreadable):
            return "?"
        named = {"LOW_COST": "SPOT", "SPOT": "SPOT", "FLEX_START": "FLEX_START"}
        return named.get(str(self.scheduling.get("strategy")), "STANDARD")

    @property
    def account(self) -> str:
        """The account it runs as, empty if none is named."""
        return self.spec.get("serviceAccount", "")

    @property
    def network(self) -> str:
        """The network it is peered with, empty if none."""
        return self.spec.get("network", "")

    @property
    def attachment(self) -> str:
        """The network attachment it joins, empty if none."""
        return self.spec.get("pscInterfaceConfig", {}).get("networkAttachment", "")

    @property
    def output(self) -> str:
        """Its output directory, empty if it has none."""
        return self.spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "")


#: Folders below the output directory that the service passes to a job.
FOLDERS: Final = ("model", "checkpoints", "logs")
REQUEST_ID: Final = "${job.requestId}"


def job_facts_of(job: Job) -> JobFacts:
    """The facts of one job."""
    requests = tuple(
        ReservationRequest(
            tuple((pool.affinity or {}).get("values", ())),
            pool.machine_type,
            pool.accelerator,
            pool.count,
            pool.replicas * job.parallel,
        )
        for pool in job.pools
        if pool.reserved
    )
    return JobFacts(
        output=job.output,
        network=job.network,
        attachment=job.attachment,
        nodes=job.nodes,
        parallel=job.parallel,
        reservation_requests=requests,
    )


def concerns(mine: JobFacts, others: Mapping[str, JobFacts]) -> bool:
    """Whether the other jobs could break a rule of the job with the facts ``mine``."""
    return any(
        outputs_clash(mine.output, other.output)
        or (mine.network and other.network)
        or (mine.attachment and other.attachment)
        or (mine.reservation_requests and other.reservation_requests)
        for other in others.values()
    )


def outputs_clash(one: str, other: str) -> bool:
    """Whether two jobs with these output directories write to the same places.

    A directory that holds the request id differs for every request.

    >>> outputs_clash("gs://b/x", "gs://b/x/"), outputs_clash("gs://b/x/model", "gs://b/x")
    (True, True)
    """
    if not one or not other or REQUEST_ID in one or REQUEST_ID in other:
        return False
    one, other = one.rstrip("/"), other.rstrip("/")
    return one == other or any(
        (inner + "/").startswith(f"{outer}/{folder}/")
        for outer, inner in ((one, other), (other, one))
        for folder in FOLDERS
    )
