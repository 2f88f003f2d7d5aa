"""Checks of existing reservations that the stack file or jobs use.

https://docs.cloud.google.com/compute/docs/reference/rest/v1/reservations/get
https://docs.cloud.google.com/vertex-ai/docs/training/use-reservations
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from vertex_training.catalog import machines
from vertex_training.customjob.protocol.prerequisites import named_reservations
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.plan.reservations import ReservationPlan
from vertex_training_cli import rest
from vertex_training_cli.preflight.answers import Answer, question
from vertex_training_cli.preflight.asking import answered
from vertex_training_cli.preflight.context import PreflightContext


def ask(context: PreflightContext) -> Iterator[Answer]:
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
    yield judge(asked, reservation, plan, (context.project, context.number), wanted)


def _machines_of_jobs(context: PreflightContext) -> Counter[str]:
    """Return how many machines of each reservation all jobs need together."""
    by_reservation = Counter[str]()
    for request in context.declared.requests.values():
        of_job = Counter[str]()
        for rung in request.rungs:  # one rung runs at a time
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


def judge(
    asked: Answer,
    reservation: Mapping[str, Any] | None,
    plan: ReservationPlan | None,
    projects: tuple[str, str],
    wanted: int,
) -> Answer:
    """Return the answer whether jobs of a project may use the reservation. Pure.

    ``projects`` are id and number of the project, ``wanted`` is the number of machines that jobs
    need together, and ``plan`` is the entry in the stack file.
    """
    _, owner, _, zone, _, name = asked.subject.split("/")
    if reservation is None:
        mend = f"gcloud compute reservations list --project={owner}"
        return asked.refused("no", f"its jobs are refused: {zone} has no such reservation", mend)
    answer = _shown(reservation)
    update = f"gcloud compute reservations update {name} --zone={zone} --project={owner}"
    if (status := reservation.get("status", "READY")) != "READY":
        return asked.refused(f"{answer}: {status}", "its jobs are refused", "wait for READY")
    if (reservation.get("reservationSharingPolicy") or {}).get("serviceShareType") != "ALLOW_ALL":
        meets = "its jobs are refused: the reservation is not shared with Google's services"
        mend = "recreate it with reservationSharingPolicy.serviceShareType: ALLOW_ALL"
        return asked.refused(answer, meets, mend)
    if owner not in projects and not _is_shared(reservation, projects):
        meets = f"its jobs are refused: the reservation is not shared with {projects[0]}"
        return asked.refused(answer, meets, f"{update} --add-share-with={projects[0]}")
    if plan and (differs := _difference(reservation, plan)):
        meets = f"its jobs are refused: the stack file declares {differs}"
        return asked.refused(answer, meets, f"correct reservations.{plan.key} in the stack file")
    if (count := _count(reservation)) < wanted:
        meets = f"jobs need {wanted} machines together: some are refused or wait"
        return asked.refused(answer, meets, f"{update} --vm-count={wanted}")
    if plan and count < plan.settings.count:
        meets = f"the stack file declares {plan.settings.count}"
        return asked.warning(answer, meets, f"correct reservations.{plan.key}.count")
    return asked.ok(answer)


def _specific(reservation: Mapping[str, Any]) -> Mapping[str, Any]:
    return reservation.get("specificReservation") or {}


def _count(reservation: Mapping[str, Any]) -> int:
    return int(_specific(reservation).get("count", 0))


def _machine(reservation: Mapping[str, Any]) -> tuple[str, Mapping[str, int]]:
    """Return the machine type, and its GPUs with the names of Vertex AI."""
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
    """Return the first value that differs from the stack file; empty without a difference."""
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


def _is_shared(reservation: Mapping[str, Any], projects: tuple[str, str]) -> bool:
    share = reservation.get("shareSettings") or {}
    return share.get("shareType") == "ORGANIZATION" or not {*projects}.isdisjoint(
        share.get("projectMap") or ()
    )
