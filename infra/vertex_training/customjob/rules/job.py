"""Read access to a request for the rules: pools, machines, tasks, context and properties."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.customjob.kinds import CUSTOM_JOB, TUNING_JOB, JobKind
from vertex_training.customjob.rules.context import FILE_ONLY, Context, JobFacts, ReservationRequest
from vertex_training.errors import Path

Request = dict[str, Any]
SPEC: Final[Path] = ("jobSpec",)
POOLS: Final[Path] = ("jobSpec", "workerPoolSpecs")
TASKS: Final = ("containerSpec", "pythonPackageSpec")
#: Shells: they run the word after ``-c`` as a script, and pass the following words as $0, $1, …
SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
#: Part of the name of Google's reduction server image.
REDUCTION_SERVER: Final = "/reductionserver"


def is_shell(word: str) -> bool:
    """Return whether a word of a command line starts a shell, like ``/bin/bash``."""
    return word.rpartition("/")[2] in SHELLS


@dataclass(frozen=True)
class Pool:
    """A worker pool that is not empty. Its properties are fields of the API; empty if missing."""

    index: int
    spec: dict[str, Any]
    job: Job = field(compare=False, repr=False)

    @property
    def path(self) -> Path:
        return (*POOLS, self.index)

    @property
    def machine(self) -> dict[str, Any]:
        return self.spec.get("machineSpec", {})

    @property
    def machine_path(self) -> Path:
        return (*self.path, "machineSpec")

    @property
    def machine_type(self) -> str:
        return self.machine.get("machineType", "")

    @functools.cached_property
    def shape(self) -> machines.MachineType | None:
        """Return the machine type's entry in the catalogue; None if unknown."""
        return machines.machine_type(self.machine_type)

    @property
    def accelerator(self) -> str:
        """Return the acceleratorType; empty if missing."""
        name = self.machine.get("acceleratorType", "")
        return "" if name.endswith("_UNSPECIFIED") else name

    @property
    def count(self) -> int:
        """Return the acceleratorCount; 0 if missing, as in the API."""
        return self.machine.get("acceleratorCount", 0)

    @property
    def gpu(self) -> bool:
        """Return whether the machines have GPUs, according to the file or the machine type."""
        shape = self.shape
        bundled = shape.accelerators if shape and shape.accelerator_required else ()
        return any(name.startswith("NVIDIA") for name in (self.accelerator, *bundled))

    @property
    def required(self) -> bool:
        """Return whether the machine type requires acceleratorType and acceleratorCount."""
        return self.shape is not None and self.shape.accelerator_required

    @property
    def affinity(self) -> dict[str, Any] | None:
        return self.machine.get("reservationAffinity")

    def reservations(self) -> Iterator[tuple[Path, str]]:
        """Yield path and name of each reservation that the pool names."""
        for index, name in enumerate((self.affinity or {}).get("values", ())):
            yield (*self.machine_path, "reservationAffinity", "values", index), name

    @property
    def reserved(self) -> bool:
        """Return whether the pool may use a reservation."""
        kind = (self.affinity or {}).get("reservationAffinityType")
        return kind in ("ANY_RESERVATION", "SPECIFIC_RESERVATION")

    @property
    def unreserved(self) -> bool:
        """Return whether the pool certainly requests no reservation."""
        affinity = self.affinity
        return affinity is None or affinity.get("reservationAffinityType") == "NO_RESERVATION"

    @property
    def replicas(self) -> int:
        """Return the replicaCount; 1 if missing, as in the service."""
        return self.spec.get("replicaCount", 1)

    @property
    def task_name(self) -> str:
        """Return ``containerSpec`` or ``pythonPackageSpec``; empty if the pool has neither."""
        return next((name for name in TASKS if name in self.spec), "")

    @property
    def task(self) -> dict[str, Any]:
        """Return the containerSpec or pythonPackageSpec; empty if the pool has neither."""
        return self.spec.get(self.task_name, {})

    @property
    def task_path(self) -> Path:
        return (*self.path, self.task_name)

    @property
    def image_field(self) -> str:
        return "imageUri" if self.task_name == "containerSpec" else "executorImageUri"

    @property
    def image(self) -> str:
        return self.task.get(self.image_field, "")

    @property
    def env(self) -> list[dict[str, Any]]:
        return self.task.get("env", [])

    def variables(self) -> Iterator[tuple[Path, str, str]]:
        """Yield path, name and value of each environment variable; empty if missing."""
        for index, variable in enumerate(self.env):
            path = (*self.task_path, "env", index)
            yield path, str(variable.get("name", "")), str(variable.get("value", ""))

    @property
    def variable_names(self) -> set[str]:
        """Return the names of the environment variables."""
        return {name for _, name, _ in self.variables() if name}

    @property
    def is_reduction_server(self) -> bool:
        """Return whether the pool runs Google's reduction server."""
        return REDUCTION_SERVER in self.image

    def words(self) -> list[tuple[Path, str]]:
        """Return path and text of each word of the command line: command and args."""
        return [
            ((*self.task_path, field, index), text)
            for field in ("command", "args")
            for index, text in enumerate(self.task.get(field, []))
        ]

    def texts(self) -> Iterator[tuple[Path, str]]:
        """Yield path and text of each item of command and args and each value of env."""
        yield from self.words()
        for index, variable in enumerate(self.env):
            if "value" in variable:
                yield (*self.task_path, "env", index, "value"), variable["value"]


@dataclass(frozen=True)
class Job:
    """A request and its context. Properties of missing fields are empty."""

    request: Request
    context: Context = FILE_ONLY
    unreadable: tuple[Path, ...] = ()
    """Paths of unreadable values, which rules must not treat as missing."""
    tuning: Request | None = None
    """The HyperparameterTuningJob, if ``request`` is one of its trials."""

    @property
    def kind(self) -> JobKind:
        """Return the kind of resource that the job file describes."""
        return CUSTOM_JOB if self.tuning is None else TUNING_JOB

    @property
    def spec(self) -> dict[str, Any]:
        return self.request.get("jobSpec", {})

    @functools.cached_property
    def pools(self) -> tuple[Pool, ...]:
        """Return the worker pools that are not empty."""
        specs = self.spec.get("workerPoolSpecs", [])
        return tuple(Pool(index, spec, self) for index, spec in enumerate(specs) if spec)

    @property
    def nodes(self) -> int:
        """Return the number of machines: the replicas of all pools."""
        return sum(pool.replicas for pool in self.pools)

    @property
    def parallel(self) -> int:
        """Return the number of runs at the same time: a tuning job's parallel trials, else 1."""
        tuning = self.tuning or {}
        counts = (tuning.get("maxTrialCount", 1), tuning.get("parallelTrialCount", 1))
        return max(1, min(counts))

    @property
    def region(self) -> str | None:
        return self.context.region

    @property
    def scheduling(self) -> dict[str, Any]:
        return self.spec.get("scheduling", {})

    @property
    def strategy(self) -> str:
        """Return STANDARD, SPOT or FLEX_START, also for deprecated names; ``?`` if unreadable."""
        if any(path[1:2] == ("scheduling",) for path in self.unreadable):
            return "?"
        strategies = {"LOW_COST": "SPOT", "SPOT": "SPOT", "FLEX_START": "FLEX_START"}
        return strategies.get(str(self.scheduling.get("strategy")), "STANDARD")

    @property
    def account(self) -> str:
        return self.spec.get("serviceAccount", "")

    @property
    def network(self) -> str:
        return self.spec.get("network", "")

    @property
    def attachment(self) -> str:
        return self.spec.get("pscInterfaceConfig", {}).get("networkAttachment", "")

    @property
    def output(self) -> str:
        return self.spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "")


def pools_of(job: Job) -> tuple[Pool, ...]:
    """Return the worker pools of a job, for rules that check each pool."""
    return job.pools


#: Subfolders of the output directory that the service passes to a job.
FOLDERS: Final = ("model", "checkpoints", "logs")
REQUEST_ID: Final = "${job.requestId}"


def job_facts_of(job: Job) -> JobFacts:
    """Return the properties of a job that rules compare with other jobs."""
    requests = [reservation_request_of(pool) for pool in job.pools if pool.reserved]
    return JobFacts(
        job.output, job.network, job.attachment, job.nodes, job.parallel, tuple(requests)
    )


def reservation_request_of(pool: Pool) -> ReservationRequest:
    """Return the machines that a pool requests from a reservation, in all parallel trials."""
    names, count = tuple(name for _, name in pool.reservations()), pool.replicas * pool.job.parallel
    return ReservationRequest(names, pool.machine_type, pool.accelerator, pool.count, count)


def concerns(mine: JobFacts, others: Mapping[str, JobFacts]) -> bool:
    """Return whether other jobs can cause findings about the job with the properties ``mine``."""
    return any(
        outputs_clash(mine.output, other.output)
        or (mine.network and other.network)
        or (mine.attachment and other.attachment)
        or (mine.reservation_requests and other.reservation_requests)
        for other in others.values()
    )


def outputs_clash(one: str, other: str) -> bool:
    """Return whether two jobs with these output directories write to the same folder.

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
