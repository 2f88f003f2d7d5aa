"""A job and the reservations of its stack: the very same machines, and enough of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training.customjob.rules.context import JobFacts, ReservationFacts, ReservationRequest
from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.customjob.rules.job_facts import job_facts_of
from vertex_training.customjob.rules.registry import GUIDES, Finding, rule
from vertex_training.errors import Path

RESERVATIONS: Final = GUIDES + "training/use-reservations"
OURS: Final = "docs/networks.md#reservations"


def _known(job: Job) -> Mapping[str, ReservationFacts]:
    return job.context.stack.reservations if job.context.stack else {}


def _with_request(job: Job) -> Iterator[tuple[Pool, Path]]:
    """Pools that ask for reservations, with the place of their affinity."""
    for pool in job.pools:
        if pool.reserved:
            yield pool, (*pool.machine_path, "reservationAffinity")


def _named(pool: Pool) -> list[str]:
    return (pool.affinity or {}).get("values", [])


def _own(job: Job, name: str) -> str:
    """A reservation's name with the project's id, also if it was written with its number."""
    stack = job.context.stack
    if stack is None:
        return name
    by_number, by_id = f"projects/{stack.project_number}/", f"projects/{stack.project}/"
    return by_id + name.removeprefix(by_number) if name.startswith(by_number) else name


@rule("reservation-foreign", OURS, "warning")
def reservation_foreign(job: Job) -> Iterator[Finding]:
    """The job names a reservation of the stack; of others nothing can be checked."""
    known = _known(job)
    for pool, path in _with_request(job):
        for index, name in enumerate(_named(pool)):
            if known and _own(job, name) not in known:
                keys = ", ".join(f"${{reservations.{r.key}}}" for r in known.values())
                what = "not a reservation of this stack"
                yield Finding((*path, "values", index), what, name, f"known: {keys}")


@rule("reservation-machine", RESERVATIONS)
def reservation_machine(job: Job) -> Iterator[Finding]:
    """Machine type, GPUs and their number are the reservation's."""
    known = _known(job)
    for pool, _ in _with_request(job):
        for name in _named(pool):
            found = known.get(_own(job, name))
            if found and not _fits(_request_of(pool), found):
                got = _shown(pool.machine_type, pool.accelerator, pool.count)
                wanted = _shown(found.machine_type, found.accelerator_type, found.accelerator_count)
                what = f"reservation '{found.key}' has other machines"
                hint = f"it has {wanted}, and both must be the same"
                yield Finding((*pool.machine_path, "machineType"), what, got, hint)


@rule("reservation-any", RESERVATIONS, "warning")
def reservation_any(job: Job) -> Iterator[Finding]:
    """ANY_RESERVATION meets an open reservation of the stack that has the job's machines."""
    known = _known(job).values()
    for pool, path in _with_request(job):
        kind = (pool.affinity or {}).get("reservationAffinityType")
        if kind != "ANY_RESERVATION" or not known:
            continue
        if not any(_fits(_request_of(pool), found) for found in known if not found.specific):
            what = "no open reservation of this stack has such machines"
            hint = "name one, or set its specificReservationRequired: false"
            yield Finding(
                (*path, "reservationAffinityType"),
                what,
                _shown(pool.machine_type, pool.accelerator, pool.count),
                hint,
            )


@rule("reservation-count", RESERVATIONS)
def reservation_count(job: Job) -> Iterator[Finding]:
    """A reservation has machines for all jobs of the stack that use it at once."""
    for path, found, users in _shared(job):
        needed = _at_once(users, found)
        if needed > found.count:
            asked = ", ".join(f"{name}: {count}" for name, count in users.items())
            what = f"'{found.key}' has fewer machines than jobs ask for at once ({asked})"
            hint = "raise its count, or say in its parallelJobs how many of the jobs run at once"
            yield Finding(path, what, f"count: {found.count}", hint)


@rule("reservation-spare", RESERVATIONS, "warning")
def reservation_spare(job: Job) -> Iterator[Finding]:
    """A reservation has one machine more than its jobs use."""
    for path, found, users in _shared(job):
        if _at_once(users, found) == found.count:
            what = (
                f"jobs use all machines of '{found.key}' at once; Google advises to keep one spare"
            )
            yield Finding(path, what, f"count: {found.count}", f"count: {found.count + 1}")


@rule("reservation-local-ssd", RESERVATIONS, "warning")
def reservation_local_ssd(job: Job) -> Iterator[Finding]:
    """The machines of a reservation have no local SSD that was attached by hand."""
    known = _known(job)
    for pool, path in _with_request(job):
        for name in _named(pool):
            found = known.get(_own(job, name))
            if found and found.local_ssds:
                what = f"Vertex AI uses no machines with attached local SSDs, and '{found.key}' has"
                hint = "remove localSsds, unless the machine type always has them"
                yield Finding(path, what, str(found.local_ssds), hint)


def _request_of(pool: Pool) -> ReservationRequest:
    return ReservationRequest(
        tuple(_named(pool)), pool.machine_type, pool.accelerator, pool.count, pool.replicas
    )


def _fits(request: ReservationRequest, found: ReservationFacts) -> bool:
    return (request.machine_type, request.accelerator_type, request.accelerator_count) == (
        found.machine_type,
        found.accelerator_type,
        found.accelerator_count,
    )


def _shown(machine_type: str, accelerator: str, count: int) -> str:
    return f"{machine_type} with {count} x {accelerator}" if accelerator else machine_type


def _shared(job: Job) -> Iterator[tuple[Path, ReservationFacts, dict[str, int]]]:
    """Reservations that this job uses: where it does, and the machines each job requests."""
    for name, found in _known(job).items():
        for pool, path in _with_request(job):
            if _uses(job, _request_of(pool), name, found):
                mine = {"this job": _machines(job, job_facts_of(job), name, found)}
                others = {
                    f"'{other}'": _machines(job, facts, name, found)
                    for other, facts in sorted(job.context.others.items())
                }
                yield path, found, mine | {who: n for who, n in others.items() if n}
                break


def _machines(job: Job, facts: JobFacts, name: str, found: ReservationFacts) -> int:
    return sum(
        request.machines
        for request in facts.reservation_requests
        if _uses(job, request, name, found)
    )


def _uses(job: Job, request: ReservationRequest, name: str, found: ReservationFacts) -> bool:
    """Whether these machines come from this reservation and from no other.

    Of several names the first that has machines is taken, which nothing here can know.
    """
    if request.reservations:
        return len(request.reservations) == 1 and _own(job, request.reservations[0]) == name
    return not found.specific and _fits(request, found)


def _at_once(users: Mapping[str, int], found: ReservationFacts) -> int:
    return sum(sorted(users.values(), reverse=True)[: found.parallel_jobs])
