"""Checks of quotas and reservations for jobs, endpoints and new resources.

The current usage of a Vertex AI quota is not read: a job waits if other jobs use the quota.

https://docs.cloud.google.com/service-usage/docs/reference/rest/v1beta1/services.consumerQuotaMetrics/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/regions/get
https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations/get
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from vertex_training_cli.preflight.context import (
    Answer,
    PreflightContext,
    UnansweredError,
    answered,
    question,
)

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
def _ask_quota(context: PreflightContext, need: JobNeed, judge: Callable[..., Answer]) -> Answer:
    region = context.declared.stack.settings.region
    asked = question(need.metric, f"limit in {region}")
    limit = _limit(context, asked, context.project, need.metric, {"region": region})
    return judge(asked, need, context.project, limit)


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
    limits = {
        str(entry.get("metric")): entry
        for document in (whole, regional)
        for entry in document.get("quotas") or ()
    }
    for metric, wanted in sorted(need.counts.items()):
        if quota := limits.get(metric):
            yield _judge_compute(need, metric, wanted, quota)
    for family in need.families:
        yield from _ask_family(context, need, family)


@answered
def _ask_family(context: PreflightContext, need: ComputeNeed, family: GpuFamily) -> Answer:
    where = f"region {need.region} of project {need.project}"
    asked = question(f"{BY_FAMILY} {family.name}", f"limit in {where}")
    place = {"region": need.region, "gpu_family": family.name}
    limit = _limit(context, asked, need.project, BY_FAMILY, place)
    if limit is not None and limit < family.count:
        meets = f"the reservations need {family.count}: their creation is refused"
        return asked.refused(f"{limit}", meets, _mend(need.project, family.count))
    return asked.ok("not limited" if limit is None else f"{limit}")


def _judge_compute(need: ComputeNeed, metric: str, wanted: int, quota: Mapping[str, Any]) -> Answer:
    limit, used = int(quota.get("limit", 0)), int(quota.get("usage", 0))
    where = f"region {need.region} of project {need.project}"
    asked = question(f"quota {metric}", f"limit and usage in {where}")
    if used + wanted > limit:
        meets = f"the stack needs {wanted} more: a creation is refused (quotaExceeded)"
        mend = _mend(need.project, used + wanted)
        return asked.refused(f"{used} of {limit} used", meets, mend)
    return asked.ok(f"{used} of {limit} used, the stack needs {wanted}")


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
    region = declared.stack.settings.region
    return _by_metric(
        {
            key: _largest(_of_rung(rung, region) for rung in request.rungs)
            for key, request in declared.requests.items()
        }
    )


def _by_metric(counts: Mapping[str, Counter[str]]) -> list[JobNeed]:
    needs: dict[str, dict[str, int]] = {}
    for key, of_job in counts.items():
        for metric, count in of_job.items():
            needs.setdefault(metric, {})[key] = count
    return [JobNeed(metric, by_job) for metric, by_job in sorted(needs.items())]


def _largest(of_rungs: Iterable[Counter[str]]) -> Counter[str]:
    """Return the maximum of each count: only one rung of a job runs at a time."""
    return functools.reduce(operator.or_, of_rungs)


def _of_rung(request: JobRequest, region: str) -> Counter[str]:
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
    needs = dict[str, Counter[str]]()
    for key, endpoint in declared.stack.endpoints.items():
        wanted = needs[key] = Counter()
        for deployment in endpoint.deployments.values():
            spec, replicas = deployment.machine, deployment.maximum
            machine = machines.serving_machine_type(str(spec["machineType"]))
            if machine and machine.vcpus and machine.family in _VERTEX_CPUS:
                metric = f"custom_model_serving_{_VERTEX_CPUS[machine.family]}"
                wanted[f"aiplatform.googleapis.com/{metric}"] += machine.vcpus * replicas
            if kind := str(spec.get("acceleratorType", "")):
                metric = quota_metric(kind, preemptible=False, use="serving")
                wanted[metric] += int(spec.get("acceleratorCount", 1)) * replicas
    return _by_metric(needs)


def compute_needs(declared: DeclaredStack) -> list[ComputeNeed]:
    """Return the Compute Engine quotas that new resources need, by project and region."""
    settings = declared.stack.settings
    counts = defaultdict[tuple[str, str], Counter[str]](Counter)
    families = defaultdict[tuple[str, str], Counter[str]](Counter)
    for resource in declared.resources:
        if metric := COUNTED.get(resource.type):
            zone = str(resource.inputs.get("zone") or "")
            region = resource.inputs.get("region") or zone.rpartition("-")[0] or settings.region
            project = resource.inputs.get("project") or settings.project
            counts[str(project), str(region)][metric] += 1
    made = {
        resource.inputs.get("name")
        for resource in declared.resources
        if resource.type == resource_types.RESERVATION
    }
    for plan in declared.stack.reservations.values():
        if plan.name in made:
            at = (plan.project, plan.settings.zone.rpartition("-")[0])
            for metric, count in _of_reservation(plan):
                counts[at][metric] += count
            if plan.accelerator_type and not _compute_gpu(plan):
                family = family_of(plan.accelerator_type)
                gpus = plan.accelerator_count * plan.settings.count
                families[at][family] += gpus
    return [
        ComputeNeed(*at, quotas, tuple(GpuFamily(*item) for item in sorted(families[at].items())))
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
    wanted = Counter[str]()
    for request in context.declared.requests.values():
        wanted.update(_largest(map(_machines_of, request.rungs)))
    existing = [path for path, plan in plans.items() if plan.settings.existing]
    for path in dict.fromkeys([*existing, *(used for used in wanted if used not in plans)]):
        yield from _reservation(context, path, plans.get(path), wanted[path])


@answered
def _reservation(
    context: PreflightContext, path: str, plan: ReservationPlan | None, wanted: int
) -> Answer:
    asked = question(path, "existence and machines of the reservation")
    reservation = context.client.get(rest.RESERVATION, asked, path)
    _, owner, _, zone, _, name = path.split("/")
    if reservation is None:
        meets = f"jobs with the reservation are refused: zone {zone} does not have this reservation"
        return asked.refused("no", meets, f"gcloud compute reservations list --project={owner}")
    specific = reservation.get("specificReservation") or {}
    count = int(specific.get("count", 0))
    machine, gpus = _machine(specific.get("instanceProperties") or {})
    added = "".join(f" with {number} x {gpu}" for gpu, number in gpus.items())
    answer = f"{count} x {machine}{added}"
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
    own = {context.project, context.number}
    users = {owner, *(share.get("projectMap") or ())}
    if share.get("shareType") != "ORGANIZATION" and not own & users:
        meets = f"jobs are refused: the reservation is not shared with project {context.project}"
        return asked.refused(answer, meets, f"{update} --add-share-with={context.project}")
    by_name = bool(reservation.get("specificReservationRequired"))
    if plan and (differs := _difference(machine, gpus, by_name, plan)):
        meets = f"jobs that use it are refused, because the stack file declares {differs}"
        return asked.refused(answer, meets, f"correct reservations.{plan.key} in the stack file")
    if count < wanted:
        meets = f"all jobs together need {counted(wanted, 'machine')}: some are refused or wait"
        return asked.refused(answer, meets, f"{update} --vm-count={wanted}")
    if plan and count < plan.settings.count:
        meets = f"the stack file declares {counted(plan.settings.count, 'machine')}"
        mend = f"correct reservations.{plan.key}.count in the stack file"
        return asked.warning(answer, meets, mend)
    return asked.ok(answer)


def _machines_of(request: JobRequest) -> Counter[str]:
    counts, cost = Counter[str](), request.own_cost
    pools = request.trial["jobSpec"].get("workerPoolSpecs") or ()
    for pool in cost.pools:
        for path in named_reservations(pools[pool.index]):
            counts[path] += pool.machines * cost.parallel
    return counts


def _machine(properties: Mapping[str, Any]) -> tuple[str, Mapping[str, int]]:
    gpus = dict[str, int]()
    for accelerator in properties.get("guestAccelerators") or ():
        name = str(accelerator.get("acceleratorType")).rpartition("/")[2]
        gpus[name.upper().replace("-", "_")] = int(accelerator.get("acceleratorCount", 0))
    return str(properties.get("machineType", "")), gpus


def _difference(machine: str, gpus: Mapping[str, int], by_name: bool, plan: ReservationPlan) -> str:
    if machine != plan.machine_type:
        return plan.machine_type
    accelerator, known = plan.settings.accelerator_type, machines.machine_type(machine)
    has_its_own = bool(known and known.accelerator_required)
    if accelerator and not has_its_own and gpus != {accelerator: plan.accelerator_count}:
        return f"{plan.accelerator_count} x {accelerator}"
    if by_name is not plan.settings.specific_reservation_required:
        return f"specificReservationRequired: {str(not by_name).lower()}"
    return ""
