"""Checks of quotas and reservations for jobs, endpoints and new resources.

The current usage of a Vertex AI quota is not read: a job waits if other jobs use the quota.

https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/regions/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations/get
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import machines, resource_types
from vertex_training.customjob.google.prerequisites import effective_limit, quota_path
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.protocol.prerequisites import (
    accelerator_quotas,
    family_of,
    is_preemptible,
    named_reservations,
    quota_metric,
)
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import OperatorError, counted
from vertex_training.plan.network import ReservationPlan
from vertex_training_cli import rest
from vertex_training_cli.declared import DeclaredStack
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.context import PreflightContext, UnansweredError, answered

#: Quota of GPUs by family and region, for types without a separate quota:
#: https://docs.cloud.google.com/docs/quotas/implement-common-use-cases
BY_FAMILY: Final = "compute.googleapis.com/gpus_per_gpu_family"


def check_quotas(context: PreflightContext) -> Iterator[Answer]:
    """Yield an answer for each quota that the stack needs."""
    for need in job_needs(context.declared):
        yield from _ask_quota(context, need, judge_jobs)
    for need in endpoint_needs(context.declared):
        yield from _ask_quota(context, need, judge_endpoints)
    remaining = tuple(
        resource for resource in context.declared.resources if not context.is_made(resource)
    )
    for need in compute_needs(dataclasses.replace(context.declared, resources=remaining)):
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
    """Return the answer about a quota of jobs. A limit of None means unlimited."""
    if limit is None:
        return asked.ok("not limited")
    (job, largest), mend = need.largest, _mend(project, need.peak)
    if largest > limit:
        meets = f"job {job} needs {largest}: the job is refused (429), or stays queued"
        return asked.refused(f"{limit}", meets, mend)
    if need.peak > limit:
        meets = f"all jobs together need {need.peak}: some jobs stay queued until other jobs end"
        return asked.warning(f"{limit}", meets, mend)
    return asked.ok(f"{limit}; all jobs need {need.peak}, other use is unknown")


def judge_endpoints(asked: Answer, need: JobNeed, project: str, limit: int | None) -> Answer:
    """Return the answer about a quota of endpoints. A limit of None means unlimited.

    An exceeded limit is only a warning: by the API's schema the maximum of replicas counts, by a
    page of 2026-08 only running replicas count.
    """
    if limit is None:
        return asked.ok("not limited")
    if need.peak > limit:
        meets = f"endpoints need {need.peak} with all replicas: some replicas may not start"
        return asked.warning(f"{limit}", meets, _mend(project, need.peak))
    return asked.ok(f"{limit}; all endpoints need {need.peak}, other use is unknown")


def _limit(
    context: PreflightContext, asked: Answer, project: str, metric: str, at: Mapping[str, str]
) -> int | None:
    """Return the limit of a quota at a place; None if unlimited. Raises ``UnansweredError``."""
    limit_document = context.client.get(rest.QUOTA, asked, quota_path(project, metric))
    if limit_document is None:
        raise UnansweredError(asked.unknown("the quota does not exist", rest.QUOTA.permission))
    try:
        return effective_limit(limit_document, at)
    except OperatorError as error:
        raise UnansweredError(asked.unknown(str(error))) from None


def _mend(project: str, need: int) -> str:
    where = f"https://console.cloud.google.com/iam-admin/quotas?project={project}"
    return f"request a quota of {need} or more at {where}"


@answered
def _ask_compute_quotas(context: PreflightContext, need: ComputeNeed) -> Iterator[Answer]:
    project = need.project
    asked = question(f"project {project}", f"quotas of Compute Engine in {need.region}")
    regional = context.client.get(rest.COMPUTE_REGION, asked, project, need.region)
    whole = context.client.get(rest.COMPUTE_PROJECT, asked, project)
    if not regional or not whole:
        yield asked.unknown("the project does not exist, or its Compute Engine API is off")
        return
    yield from _judge_compute(need, regional, whole)
    for family in need.families:
        yield from _ask_family(context, need, family)


@answered
def _ask_family(
    context: PreflightContext, need: ComputeNeed, family: GpuFamily
) -> Iterator[Answer]:
    where = f"region {need.region} of project {need.project}"
    asked = question(f"{BY_FAMILY} {family.name}", f"limit in {where}")
    place = {"region": need.region, "gpu_family": family.name}
    limit = _limit(context, asked, need.project, BY_FAMILY, place)
    if limit is not None and limit < family.count:
        meets = f"the reservations need {family.count}: their creation is refused"
        yield asked.refused(f"{limit}", meets, _mend(need.project, family.count))
    else:
        yield asked.ok("not limited" if limit is None else f"{limit}")


def _judge_compute(need: ComputeNeed, regional: object, project: object) -> Iterator[Answer]:
    limits = {
        str(entry.get("metric")): entry
        for document in (project, regional)
        for entry in (document.get("quotas") or () if isinstance(document, dict) else ())
    }
    for metric, wanted in sorted(need.counts.items()):
        if (quota := limits.get(metric)) is None:
            continue
        limit, used = int(quota.get("limit", 0)), int(quota.get("usage", 0))
        where = f"region {need.region} of project {need.project}"
        asked = question(f"quota {metric}", f"limit and usage in {where}")
        if used + wanted > limit:
            meets = f"the stack needs {wanted} more: a creation is refused (quotaExceeded)"
            mend = _mend(need.project, used + wanted)
            yield asked.refused(f"{used} of {limit} used", meets, mend)
        else:
            yield asked.ok(f"{used} of {limit} used, the stack needs {wanted}")


#: Machine family -> its part in the name of Vertex AI's CPU quota, for all documented quotas.
_VERTEX_CPUS: Final = {"n1": "cpus", "e2": "cpus", "n2": "n2_cpus", "c2": "c2_cpus"}
#: Type -> Compute Engine's quota of the number of resources, in a region or in the project.
COUNTED: Final = {
    resource_types.NETWORK: "NETWORKS",
    resource_types.SUBNET: "SUBNETWORKS",
    resource_types.FIREWALL: "FIREWALLS",
    resource_types.ATTACHMENT: "NETWORK_ATTACHMENTS",
    resource_types.RESERVATION: "RESERVATIONS",
    "gcp:compute/router:Router": "ROUTERS",
    "gcp:compute/routerNat:RouterNat": "IN_USE_ADDRESSES",
    "gcp:compute/globalAddress:GlobalAddress": "GLOBAL_INTERNAL_ADDRESSES",
}
#: Machine series -> Compute Engine's quota of CPUs in a region.
_COMPUTE_CPUS: Final = {"n1": "CPUS", "n2": "N2_CPUS", "c2": "C2_CPUS", "a2": "A2_CPUS"}
#: GPUs with a separate quota in a region: ``Quota.metric`` of compute.v1.
_COMPUTE_GPUS: Final = ("P4", "P100", "V100", "T4", "L4", "A100", "A100_80GB")
ALL_GPUS: Final = "GPUS_ALL_REGIONS"


@dataclass(frozen=True, slots=True)
class JobNeed:
    """Quota that jobs or endpoints need in the stack's region."""

    metric: str
    by_job: Mapping[str, int]
    """Key of a job or endpoint -> quota that it needs."""

    @property
    def largest(self) -> tuple[str, int]:
        """Return the job that needs most of the quota, and the quota that it needs."""
        return max(self.by_job.items(), key=lambda item: item[1])

    @property
    def peak(self) -> int:
        """Return the quota that all jobs need together."""
        return sum(self.by_job.values())


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """GPUs that count against a quota of a GPU family."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class ComputeNeed:
    """Compute Engine quotas that new resources need in a region of a project."""

    project: str
    region: str
    counts: Mapping[str, int]
    """Name of a quota -> amount that new resources need."""
    families: tuple[GpuFamily, ...] = ()


def job_needs(declared: DeclaredStack) -> list[JobNeed]:
    """Return the Vertex AI quotas that jobs need, by name of the quota."""
    needs: dict[str, dict[str, int]] = {}
    for key, request in declared.requests.items():
        for rung in request.rungs:  # Only one rung of a job runs at a time.
            for metric, count in _of_job(rung, declared.stack.settings.region).items():
                by_job = needs.setdefault(metric, {})
                by_job[key] = max(count, by_job.get(key, 0))
    return [JobNeed(metric, by_job) for metric, by_job in sorted(needs.items())]


def _of_job(request: JobRequest, region: str) -> Counter[str]:
    if request.kind is BATCH_JOB:
        return Counter()  # Batch waits until Compute Engine's quota suffices.
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
    """Return the Vertex AI quotas that all replicas of endpoints need."""
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
    """Return the Compute Engine quotas that new resources need, by project and region."""
    settings = declared.stack.settings
    counts: dict[tuple[str, str], Counter[str]] = {}
    families: dict[tuple[str, str], Counter[str]] = {}
    for resource in declared.resources:
        if metric := COUNTED.get(resource.type):
            zone = str(resource.inputs.get("zone") or "")
            region = str(
                resource.inputs.get("region") or zone.rpartition("-")[0] or settings.region
            )
            at = (str(resource.inputs.get("project") or settings.project), region)
            counts.setdefault(at, Counter())[metric] += 1
    made = {
        resource.inputs.get("name")
        for resource in declared.resources
        if resource.type == resource_types.RESERVATION
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
    series = machine.family.partition("-")[0] if machine else ""  # a2 of a2-highgpu
    if machine and machine.vcpus and series in _COMPUTE_CPUS:
        yield _COMPUTE_CPUS[series], machine.vcpus * plan.settings.count
    if gpu := _compute_gpu(plan):
        gpus = plan.accelerator_count * plan.settings.count
        yield from ((gpu, gpus), (ALL_GPUS, gpus))


def _compute_gpu(plan: ReservationPlan) -> str:
    """Return the regional quota of a GPU; empty if a quota by GPU family counts instead."""
    name = plan.accelerator_type.removeprefix("NVIDIA_").removeprefix("TESLA_")
    return f"NVIDIA_{name}_GPUS" if name in _COMPUTE_GPUS else ""


def check_reservations(context: PreflightContext) -> Iterator[Answer]:
    """Yield an answer for each existing reservation that the stack uses."""
    plans = {plan.path: plan for plan in context.declared.stack.reservations.values()}
    wanted = _machines_of_jobs(context)
    existing = [path for path, plan in plans.items() if plan.settings.existing]
    for path in dict.fromkeys([*existing, *(used for used in wanted if used not in plans)]):
        yield from _reservation(context, path, plans.get(path), wanted[path])


@answered
def _reservation(
    context: PreflightContext, path: str, plan: ReservationPlan | None, wanted: int
) -> Iterator[Answer]:
    asked = question(path, "existence and machines of the reservation")
    reservation = context.client.get(rest.RESERVATION, asked, path)
    yield _judge_reservation(asked, reservation, plan, (context.project, context.number), wanted)


def _machines_of_jobs(context: PreflightContext) -> Counter[str]:
    by_reservation = Counter[str]()
    for request in context.declared.requests.values():
        of_job = Counter[str]()
        for rung in request.rungs:  # Only one rung of a job runs at a time.
            of_job |= _machines_of(rung)
        by_reservation.update(of_job)
    return by_reservation


def _machines_of(request: JobRequest) -> Counter[str]:
    counts, cost = Counter[str](), request.own_cost
    pools = request.trial["jobSpec"].get("workerPoolSpecs") or ()
    for pool in cost.pools:
        for path in named_reservations(pools[pool.index]):
            counts[path] += pool.machines * cost.parallel
    return counts


def _judge_reservation(
    asked: Answer,
    reservation: Mapping[str, Any] | None,
    plan: ReservationPlan | None,
    projects: tuple[str, str],
    wanted: int,
) -> Answer:
    _, owner, _, zone, _, name = asked.subject.split("/")
    if reservation is None:
        mend = f"gcloud compute reservations list --project={owner}"
        return asked.refused(
            "no",
            f"jobs with the reservation are refused: zone {zone} does not have this reservation",
            mend,
        )
    answer = _shown(reservation)
    update = f"gcloud compute reservations update {name} --zone={zone} --project={owner}"
    if (status := reservation.get("status", "READY")) != "READY":
        return asked.refused(
            f"{answer}: {status}",
            "jobs with the reservation are refused",
            "wait until the reservation is READY",
        )
    # https://docs.cloud.google.com/vertex-ai/docs/training/use-reservations
    if (reservation.get("reservationSharingPolicy") or {}).get("serviceShareType") != "ALLOW_ALL":
        meets = "jobs are refused: the reservation is not shared with Google's services"
        mend = "recreate the reservation with reservationSharingPolicy.serviceShareType: ALLOW_ALL"
        return asked.refused(answer, meets, mend)
    share = reservation.get("shareSettings") or {}
    is_shared = share.get("shareType") == "ORGANIZATION" or {*projects} & {
        *(share.get("projectMap") or ())
    }
    if owner not in projects and not is_shared:
        meets = f"jobs are refused: the reservation is not shared with project {projects[0]}"
        return asked.refused(answer, meets, f"{update} --add-share-with={projects[0]}")
    if plan and (differs := _difference(reservation, plan)):
        meets = f"jobs that use it are refused, because the stack file declares {differs}"
        return asked.refused(answer, meets, f"correct reservations.{plan.key} in the stack file")
    if (count := _count(reservation)) < wanted:
        meets = f"all jobs together need {counted(wanted, 'machine')}: some are refused or wait"
        return asked.refused(answer, meets, f"{update} --vm-count={wanted}")
    if plan and count < plan.settings.count:
        meets = f"the stack file declares {counted(plan.settings.count, 'machine')}"
        return asked.warning(
            answer, meets, f"correct reservations.{plan.key}.count in the stack file"
        )
    return asked.ok(answer)


def _specific(reservation: Mapping[str, Any]) -> Mapping[str, Any]:
    return reservation.get("specificReservation") or {}


def _count(reservation: Mapping[str, Any]) -> int:
    return int(_specific(reservation).get("count", 0))


def _machine(reservation: Mapping[str, Any]) -> tuple[str, Mapping[str, int]]:
    machine = _specific(reservation).get("instanceProperties") or {}
    gpus = {
        str(accelerator.get("acceleratorType")).rpartition("/")[2].upper().replace("-", "_"): int(
            accelerator.get("acceleratorCount", 0)
        )
        for accelerator in machine.get("guestAccelerators") or ()
    }
    return str(machine.get("machineType", "")), gpus


def _shown(reservation: Mapping[str, Any]) -> str:
    machine, gpus = _machine(reservation)
    added = "".join(f" with {count} x {name}" for name, count in gpus.items())
    return f"{_count(reservation)} x {machine}{added}"


def _difference(reservation: Mapping[str, Any], plan: ReservationPlan) -> str:
    machine, gpus = _machine(reservation)
    if machine != plan.machine_type:
        return plan.machine_type
    accelerator, known = plan.settings.accelerator_type, machines.machine_type(machine)
    has_its_own = bool(known and known.accelerator_required)
    if accelerator and not has_its_own and gpus != {accelerator: plan.accelerator_count}:
        return f"{plan.accelerator_count} x {accelerator}"
    by_name = bool(reservation.get("specificReservationRequired"))
    if by_name is not plan.settings.specific_reservation_required:
        return f"specificReservationRequired: {str(not by_name).lower()}"
    return ""
