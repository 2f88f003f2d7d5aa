"""Quotas: what jobs run on, and what the stack makes, against the limits in effect.

Vertex AI's own use of a quota is in Cloud Monitoring, and is not asked: a limit that is met by jobs
of others makes a job wait, not fail.

https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/regions/get
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
from vertex_training.customjob.google.prerequisites import effective_limit, quota_path
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.protocol.prerequisites import (
    accelerator_quotas,
    family_of,
    is_preemptible,
    quota_metric,
)
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import OperatorError
from vertex_training.plan.reservations import ReservationPlan
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredStack
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import UnansweredError, answered
from vertex_training_cli.preflight.context import PreflightContext

#: GPUs without a quota of their own, by family and region:
#: https://docs.cloud.google.com/docs/quotas/implement-common-use-cases
BY_FAMILY: Final = "compute.googleapis.com/gpus_per_gpu_family"


def ask(context: PreflightContext) -> Iterator[Answer]:
    """Yield one answer for each quota that the stack counts against."""
    for need in job_needs(context.declared):
        yield from _ask_quota(context, need, judge_jobs)
    for need in endpoint_needs(context.declared):
        yield from _ask_quota(context, need, judge_endpoints)
    left = tuple(
        resource for resource in context.declared.resources if not context.is_made(resource)
    )
    for need in compute_needs(dataclasses.replace(context.declared, resources=left)):
        yield from _ask_compute_quotas(context, need)


@answered
def _ask_quota(
    context: PreflightContext, need: JobNeed, judge: Callable[..., Answer]
) -> Iterator[Answer]:
    region = context.declared.stack.settings.region
    asked = question(need.metric, f"limit in {region}")
    limit = _limit(context, asked, context.project, need.metric, {"region": region})
    yield judge(asked, need, context.project, limit)


def judge_jobs(asked: Answer, need: JobNeed, project: str, limit: int | None) -> Answer:
    """Return the answer of a limit for the jobs; None is no limit. Pure."""
    if limit is None:
        return asked.ok("not limited")
    (job, largest), mend = need.largest, _mend(project, need.peak)
    if largest > limit:
        meets = f"job {job} takes {largest}: its creation is refused (429), or it stays queued"
        return asked.refused(f"{limit}", meets, mend)
    if need.peak > limit:
        meets = f"all jobs at once take {need.peak}: some stay queued until others end"
        return asked.warning(f"{limit}", meets, mend)
    return asked.ok(f"{limit}; the jobs take {need.peak}, other use is not known")


def judge_endpoints(asked: Answer, need: JobNeed, project: str, limit: int | None) -> Answer:
    """Return the answer of a limit for endpoints with all replicas; None is no limit. Pure.

    Never more than a warning: the API's schema says that the most replicas count against it, a page
    of 2026-08 that only those there are do.
    """
    if limit is None:
        return asked.ok("not limited")
    if need.peak > limit:
        meets = (
            f"endpoints take {need.peak} with all replicas: they may not grow to them, or not start"
        )
        return asked.warning(f"{limit}", meets, _mend(project, need.peak))
    return asked.ok(f"{limit}; the endpoints take {need.peak}, other use is not known")


def _limit(
    context: PreflightContext, asked: Answer, project: str, metric: str, at: Mapping[str, str]
) -> int | None:
    """Return the limit of a quota at a place; None if there is none. Raises UnansweredError."""
    limit_document = context.client.get(rest.QUOTA, asked, quota_path(project, metric))
    if limit_document is None:
        raise UnansweredError(asked.unknown("there is no such quota", rest.QUOTA.permission))
    try:
        return effective_limit(limit_document, at)
    except OperatorError as error:
        raise UnansweredError(asked.unknown(str(error))) from None


def _mend(project: str, wanted: int) -> str:
    where = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
    return f"ask for {wanted} or more: {where}"


@answered
def _ask_compute_quotas(context: PreflightContext, need: ComputeNeed) -> Iterator[Answer]:
    project = need.project
    asked = question(f"project {project}", f"quotas of Compute Engine in {need.region}")
    regional = context.client.get(rest.COMPUTE_REGION, asked, project, need.region)
    whole = context.client.get(rest.COMPUTE_PROJECT, asked, project)
    if not regional or not whole:
        yield asked.unknown("there is no such project, or Compute Engine is off in it")
        return
    yield from judge_compute(need, regional, whole)
    for family in need.families:
        yield from _ask_family(context, need, family)


@answered
def _ask_family(
    context: PreflightContext, need: ComputeNeed, family: GpuFamily
) -> Iterator[Answer]:
    asked = question(f"{BY_FAMILY} {family.name}", f"limit in {need.region} of {need.project}")
    place = {"region": need.region, "gpu_family": family.name}
    limit = _limit(context, asked, need.project, BY_FAMILY, place)
    if limit is not None and limit < family.count:
        meets = f"the reservations take {family.count}: their creation is refused"
        yield asked.refused(f"{limit}", meets, _mend(need.project, family.count))
    else:
        yield asked.ok("not limited" if limit is None else f"{limit}")


def judge_compute(need: ComputeNeed, regional: object, project: object) -> Iterator[Answer]:
    """Yield one answer for each quota that has a limit in the region or in the project. Pure."""
    limits = {
        str(entry.get("metric")): entry
        for document in (project, regional)
        for entry in (document.get("quotas") or () if isinstance(document, dict) else ())
    }
    for metric, wanted in sorted(need.counts.items()):
        if (quota := limits.get(metric)) is None:
            continue
        limit, used = int(quota.get("limit", 0)), int(quota.get("usage", 0))
        asked = question(f"quota {metric}", f"limit and use in {need.region} of {need.project}")
        if used + wanted > limit:
            meets = f"the stack takes {wanted} more: a creation is refused (quotaExceeded)"
            mend = _mend(need.project, used + wanted)
            yield asked.refused(f"{used} of {limit} are used", meets, mend)
        else:
            yield asked.ok(f"{used} of {limit} are used, and the stack takes {wanted}")


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
    """Use of one quota of Vertex AI in the stack's region by jobs or by endpoints."""

    metric: str
    by_job: Mapping[str, int]
    """Key of a job -> how much it takes."""

    @property
    def largest(self) -> tuple[str, int]:
        """The job that takes most, and how much."""
        return max(self.by_job.items(), key=lambda item: item[1])

    @property
    def peak(self) -> int:
        """The use of all of them at once."""
        return sum(self.by_job.values())


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """GPUs of a family without a quota of its own, for which there is one by family."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ComputeNeed:
    """Resources that a stack would create in a region of a project, by Compute Engine's quotas."""

    project: str
    region: str
    counts: Mapping[str, int]
    """Name of a quota -> how much it takes, in the region or in the project."""
    families: tuple[GpuFamily, ...] = ()


def job_needs(declared: DeclaredStack) -> list[JobNeed]:
    """Return one need for each quota of Vertex AI that jobs count against, by its name."""
    needs: dict[str, dict[str, int]] = {}
    for key, request in declared.requests.items():
        for rung in request.rungs:  # one of them runs at a time
            for metric, count in _of_job(rung, declared.stack.settings.region).items():
                by_job = needs.setdefault(metric, {})
                by_job[key] = max(count, by_job.get(key, 0))
    return [JobNeed(metric, by_job) for metric, by_job in sorted(needs.items())]


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
    """Return one need for each quota of endpoints, with all replicas of all versions."""
    needs: dict[str, dict[str, int]] = {}
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
                by_endpoint = needs.setdefault(metric, {})
                by_endpoint[key] = by_endpoint.get(key, 0) + count * deployment.maximum
    return [JobNeed(metric, by_endpoint) for metric, by_endpoint in sorted(needs.items())]


def compute_needs(declared: DeclaredStack) -> list[ComputeNeed]:
    """Return one need for each region of each project with counted resources."""
    settings = declared.stack.settings
    counts: dict[tuple[str, str], Counter[str]] = {}
    families: dict[tuple[str, str], Counter[str]] = {}
    for counted in declared.resources:
        if metric := COUNTED.get(counted.type):
            zone = str(counted.inputs.get("zone") or "")
            region = str(counted.inputs.get("region") or zone.rpartition("-")[0] or settings.region)
            at = (str(counted.inputs.get("project") or settings.project), region)
            counts.setdefault(at, Counter())[metric] += 1
    made = {
        resource.inputs.get("name")
        for resource in declared.resources
        if resource.type == RESERVATION
    }
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
            counts=quotas,
            families=tuple(GpuFamily(*item) for item in sorted(families.get(at, {}).items())),
        )
        for at, quotas in sorted(counts.items())
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
    """Return the quota of a GPU in a region; empty for one that is counted by family."""
    name = plan.accelerator_type.removeprefix("NVIDIA_").removeprefix("TESLA_")
    return f"NVIDIA_{name}_GPUS" if name in _COMPUTE_GPUS else ""
