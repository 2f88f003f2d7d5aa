"""How much a stack takes of which quota. Pure.

Vertex AI counts what jobs run on, Compute Engine what the stack makes in a project.

https://docs.cloud.google.com/vertex-ai/docs/quotas
https://docs.cloud.google.com/compute/resource-usage
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.catalog import machines
from vertex_training.catalog.resource_types import (
    ATTACHMENT,
    FIREWALL,
    NETWORK,
    RESERVATION,
    SUBNET,
)
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.protocol.prerequisites import (
    accelerator_quotas,
    family_of,
    is_preemptible,
    quota_metric,
)
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.plan.reservations import ReservationPlan
from vertex_training_cli.declared import DeclaredStack

#: Machine family -> its part of the name of Vertex AI's quota of CPUs; of others no page has it.
_VERTEX_CPUS: Final = {"n1": "cpus", "e2": "cpus", "n2": "n2_cpus", "c2": "c2_cpus"}
#: Type -> Compute Engine's quota of how many there may be, in a region or in the project.
COUNTED: Final = {
    NETWORK: "NETWORKS",
    SUBNET: "SUBNETWORKS",
    FIREWALL: "FIREWALLS",
    ATTACHMENT: "NETWORK_ATTACHMENTS",
    RESERVATION: "RESERVATIONS",
    "gcp:compute/router:Router": "ROUTERS",
    "gcp:compute/routerNat:RouterNat": "IN_USE_ADDRESSES",
    "gcp:compute/globalAddress:GlobalAddress": "GLOBAL_INTERNAL_ADDRESSES",
}
#: Machine series -> Compute Engine's quota of CPUs in a region.
_COMPUTE_CPUS: Final = {"n1": "CPUS", "n2": "N2_CPUS", "c2": "C2_CPUS", "a2": "A2_CPUS"}
#: GPUs that have a quota of their own in a region: ``Quota.metric`` of compute.v1.
_COMPUTE_GPUS: Final = ("P4", "P100", "V100", "T4", "L4", "A100", "A100_80GB")
ALL_GPUS: Final = "GPUS_ALL_REGIONS"


@dataclass(frozen=True, slots=True)
class JobNeed:
    """What jobs, or endpoints, take of one quota of Vertex AI in the stack's region."""

    metric: str
    by_job: Mapping[str, int]
    """Key of a job -> how much it takes."""

    @property
    def largest(self) -> tuple[str, int]:
        """The job that takes most, and how much."""
        return max(self.by_job.items(), key=lambda each: each[1])

    @property
    def peak(self) -> int:
        """What all of them take at once."""
        return sum(self.by_job.values())


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """GPUs of a family without a quota of its own, for which there is one by family."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ComputeNeed:
    """What a stack would make in a region of a project, by Compute Engine's quotas."""

    project: str
    region: str
    counts: Mapping[str, int]
    """Name of a quota -> how much it takes, in the region or in the project."""
    families: tuple[GpuFamily, ...] = ()


def job_needs(declared: DeclaredStack) -> list[JobNeed]:
    """One for each quota of Vertex AI that a job counts against, by its name."""
    found: dict[str, dict[str, int]] = {}
    for key, request in declared.requests.items():
        for rung in request.rungs:  # one of them runs at a time
            for metric, count in _of_job(rung, declared.stack.settings.region).items():
                by_job = found.setdefault(metric, {})
                by_job[key] = max(count, by_job.get(key, 0))
    return [JobNeed(metric, by_job) for metric, by_job in sorted(found.items())]


def _of_job(request: JobRequest, region: str) -> Counter[str]:
    if request.kind is BATCH_JOB:
        return Counter()  # Compute Engine's quota, which Batch waits for
    spec, cost = request.trial["jobSpec"], request.own_cost
    wanted = accelerator_quotas(request.message, spec, region)
    kind = "preemptible_" if is_preemptible(spec) else ""
    for pool in cost.pools:
        machine = machines.machine_type(pool.machine_type)
        if machine and machine.vcpus and machine.family in _VERTEX_CPUS:
            metric = f"custom_model_training_{kind}{_VERTEX_CPUS[machine.family]}"
            count = machine.vcpus * pool.machines * cost.parallel
            wanted[f"aiplatform.googleapis.com/{metric}"] += count
    return wanted


def endpoint_needs(declared: DeclaredStack) -> list[JobNeed]:
    """One for each quota that an endpoint counts against, with all replicas of all versions."""
    found: dict[str, dict[str, int]] = {}
    for key, endpoint in declared.stack.endpoints.items():
        for deployment in endpoint.deployments.values():
            spec = deployment.machine
            machine = machines.serving_machine_type(str(spec["machineType"]))
            wanted = Counter[str]()
            if machine and machine.vcpus and machine.family in _VERTEX_CPUS:
                metric = f"custom_model_serving_{_VERTEX_CPUS[machine.family]}"
                wanted[f"aiplatform.googleapis.com/{metric}"] += machine.vcpus
            if kind := str(spec.get("acceleratorType", "")):
                metric = quota_metric(kind, preemptible=False, use="serving")
                wanted[metric] += int(spec.get("acceleratorCount", 1))
            for metric, count in wanted.items():
                by_endpoint = found.setdefault(metric, {})
                by_endpoint[key] = by_endpoint.get(key, 0) + count * deployment.maximum
    return [JobNeed(metric, by_endpoint) for metric, by_endpoint in sorted(found.items())]


def compute_needs(declared: DeclaredStack) -> list[ComputeNeed]:
    """One for each region of each project where the stack makes something that is counted."""
    settings = declared.stack.settings
    counts: dict[tuple[str, str], Counter[str]] = {}
    families: dict[tuple[str, str], Counter[str]] = {}
    for each in declared.resources:
        if metric := COUNTED.get(each.type):
            zone = str(each.inputs.get("zone") or "")
            region = str(each.inputs.get("region") or zone.rpartition("-")[0] or settings.region)
            at = (str(each.inputs.get("project") or settings.project), region)
            counts.setdefault(at, Counter())[metric] += 1
    made = {each.inputs.get("name") for each in declared.resources if each.type == RESERVATION}
    for plan in declared.stack.reservations.values():
        if plan.name in made:
            at = (plan.project, plan.settings.zone.rpartition("-")[0])
            for metric, count in _of_reservation(plan):
                counts.setdefault(at, Counter())[metric] += count
            if plan.accelerator_type and not _compute_gpu(plan):
                family = family_of(plan.accelerator_type)
                gpus = plan.accelerator_count * plan.settings.count
                families.setdefault(at, Counter())[family] += gpus
    return [
        ComputeNeed(
            *at,
            counts=found,
            families=tuple(GpuFamily(*each) for each in sorted(families.get(at, {}).items())),
        )
        for at, found in sorted(counts.items())
    ]


def _of_reservation(plan: ReservationPlan) -> Iterator[tuple[str, int]]:
    machine = machines.machine_type(plan.machine_type)
    series = machine.family.partition("-")[0] if machine else ""  # of a2-highgpu: a2
    if machine and machine.vcpus and series in _COMPUTE_CPUS:
        yield _COMPUTE_CPUS[series], machine.vcpus * plan.settings.count
    if gpu := _compute_gpu(plan):
        gpus = plan.accelerator_count * plan.settings.count
        yield from ((gpu, gpus), (ALL_GPUS, gpus))


def _compute_gpu(plan: ReservationPlan) -> str:
    """The quota of a GPU in a region; empty for one that is counted by family."""
    name = plan.accelerator_type.removeprefix("NVIDIA_").removeprefix("TESLA_")
    return f"NVIDIA_{name}_GPUS" if name in _COMPUTE_GPUS else ""
