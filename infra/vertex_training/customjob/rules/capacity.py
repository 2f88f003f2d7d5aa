"""Rules for reservations, persistent resources and scheduling."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from vertex_training.customjob.rules.job import SPEC, Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

RESERVATIONS: Final = GUIDES + "training/use-reservations"
COMPUTE: Final = GUIDES + "training/configure-compute"
AFFINITY_TYPES: Final = TYPES + "reservation_affinity.py"
KEY: Final = "compute.googleapis.com/reservation-name"
PROJECT: Final = r"(?:[a-z][a-z0-9.:-]*[a-z0-9]|[0-9]+)"
RESERVATION: Final = re.compile(
    rf"projects/{PROJECT}/zones/([a-z]+-[a-z]+[0-9]+)-[a-z]/reservations/"
    r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
    r"(/reservationBlocks/[a-z0-9-]+(/reservationSubBlocks/[a-z0-9-]+)?)?\Z"
)
PERSISTENT_ID: Final = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?\Z")
#: Compute Engine makes these as Spot or Flex-start machines only.
NEVER_STANDARD: Final = ("a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")
#: "A shared reservation or Spot VMs are recommended."
SCARCE: Final = ("NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200")


def _affinities(job: Job) -> Iterator[tuple[Pool, dict, tuple[str | int, ...]]]:
    for pool in job.pools:
        if pool.affinity is not None:
            yield pool, pool.affinity, (*pool.machine_path, "reservationAffinity")


@rule("reservation-type", AFFINITY_TYPES)
def reservation_type(job: Job) -> Iterator[Finding]:
    """A reservationAffinity says which type it is."""
    for _, affinity, path in _affinities(job):
        kind = affinity.get("reservationAffinityType", "TYPE_UNSPECIFIED")
        if kind == "TYPE_UNSPECIFIED":
            hint = "ANY_RESERVATION, SPECIFIC_RESERVATION or NO_RESERVATION"
            what = "reservationAffinityType is missing"
            yield Finding(path, what, "", hint, "reservationAffinityType")


@rule("reservation-specific", AFFINITY_TYPES)
def reservation_specific(job: Job) -> Iterator[Finding]:
    """SPECIFIC_RESERVATION names its key and the reservations."""
    for _, affinity, path in _affinities(job):
        if affinity.get("reservationAffinityType") != "SPECIFIC_RESERVATION":
            continue
        for field, hint in (("key", KEY), ("values", "[projects/P/zones/Z/reservations/NAME]")):
            if not affinity.get(field):
                yield Finding(path, f"{field} is missing", "", f"{field}: {hint}", field)


@rule("reservation-key", AFFINITY_TYPES)
def reservation_key(job: Job) -> Iterator[Finding]:
    """The key of a reservation is compute.googleapis.com/reservation-name."""
    for _, affinity, path in _affinities(job):
        if affinity.get("key") and affinity["key"] != KEY:
            yield Finding((*path, "key"), "no key of reservations", affinity["key"], f"write {KEY}")


@rule("reservation-name", AFFINITY_TYPES)
def reservation_name(job: Job) -> Iterator[Finding]:
    """A reservation is named in full: projects/P/zones/Z/reservations/NAME."""
    for _, affinity, path in _affinities(job):
        for index, value in enumerate(affinity.get("values", [])):
            if not RESERVATION.match(value):
                hint = "projects/PROJECT/zones/ZONE/reservations/NAME"
                yield Finding((*path, "values", index), "not a reservation's name", value, hint)


@rule("reservation-values-unused", AFFINITY_TYPES)
def reservation_values_unused(job: Job) -> Iterator[Finding]:
    """key and values are for SPECIFIC_RESERVATION only."""
    for _, affinity, path in _affinities(job):
        kind = affinity.get("reservationAffinityType")
        for field in ("key", "values"):
            if kind in ("ANY_RESERVATION", "NO_RESERVATION") and affinity.get(field):
                what = f"{kind} takes no {field}"
                hint = "remove it, or write SPECIFIC_RESERVATION"
                yield Finding((*path, field), what, "", hint)


@rule("reservation-zone", RESERVATIONS, "warning")
def reservation_zone(job: Job) -> Iterator[Finding]:
    """The reservation's zone lies in the job's region."""
    for _, affinity, path in _affinities(job):
        for index, value in enumerate(affinity.get("values", [])):
            match = RESERVATION.match(value)
            if match and job.region and match[1] != job.region:
                what = f"its zone is not in the job's region {job.region}"
                yield Finding((*path, "values", index), what, value, "a job stays in its region")


@rule("reservation-flex-start", RESERVATIONS)
def reservation_flex_start(job: Job) -> Iterator[Finding]:
    """FLEX_START does not go with reservations."""
    for pool, _, path in _affinities(job):
        if job.strategy == "FLEX_START" and pool.reserved:
            yield Finding(path, "FLEX_START cannot use a reservation", "", "remove one of the two")


@rule("reservation-spot", RESERVATIONS, "warning")
def reservation_spot(job: Job) -> Iterator[Finding]:
    """SPOT machines do not come from reservations."""
    for pool, _, path in _affinities(job):
        if job.strategy == "SPOT" and pool.reserved:
            yield Finding(
                path, "Spot machines do not use a reservation", "", "remove one of the two"
            )


@rule("reservation-persistent", RESERVATIONS)
def reservation_persistent(job: Job) -> Iterator[Finding]:
    """A job on a persistent resource has no reservation of its own."""
    for pool, _, path in _affinities(job):
        if job.spec.get("persistentResourceId") and pool.reserved:
            what = "a persistent resource has its machines already"
            yield Finding(path, what, "", "remove reservationAffinity or persistentResourceId")


@rule("reservation-required", COMPUTE)
def reservation_required(job: Job) -> Iterator[Finding]:
    """GB200 machines come from a shared reservation only."""
    for pool in job.pools:
        if pool.shape and pool.shape.reservation_required and pool.unreserved:
            what = f"reservationAffinity is missing; {pool.machine_type} needs a shared reservation"
            hint = "reservationAffinity: {reservationAffinityType: ANY_RESERVATION}"
            yield Finding(pool.machine_path, what, "", hint, "reservationAffinity")


@rule("spot-or-flex-start", "https://docs.cloud.google.com/compute/docs/gpus", "warning")
def spot_or_flex_start(job: Job) -> Iterator[Finding]:
    """H100 machines with fewer than 8 GPUs are made as Spot or Flex-start machines only."""
    for pool in job.pools:
        if pool.machine_type in NEVER_STANDARD and job.strategy == "STANDARD" and pool.unreserved:
            what = "Compute Engine makes these as Spot or Flex-start machines only"
            hint = "scheduling.strategy: FLEX_START or SPOT"
            yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("scarce-accelerator", COMPUTE, "warning")
def scarce_accelerator(job: Job) -> Iterator[Finding]:
    """H100 mega, H200 and B200 are asked for by a reservation or SPOT, as Google recommends."""
    on_call = job.strategy == "STANDARD" and not job.spec.get("persistentResourceId")
    for pool in job.pools:
        if on_call and pool.accelerator in SCARCE and pool.unreserved:
            what = "a shared reservation or SPOT is recommended for these machines"
            hint = "without one the job may wait in the queue for long"
            path, got = pool.machine_path, pool.accelerator
            yield Finding(path, what, got, hint, missing="reservationAffinity")


@rule("persistent-resource", GUIDES + "training/persistent-resource-train", "warning")
def persistent_resource(job: Job) -> Iterator[Finding]:
    """A persistent resource is named by its id: lowercase letters, digits and hyphens."""
    persistent_resource_id = job.spec.get("persistentResourceId")
    if persistent_resource_id and not PERSISTENT_ID.match(persistent_resource_id):
        hint = "the last part of its name; starts with a letter, ends with no hyphen"
        path = ("jobSpec", "persistentResourceId")
        yield Finding(path, "not an id of a persistent resource", persistent_resource_id, hint)


FLEX: Final = GUIDES + "training/schedule-jobs-dws"
PLACE: Final[Path] = ("jobSpec", "scheduling")
STRATEGY: Final[Path] = (*PLACE, "strategy")
WEEK: Final = 7 * 24 * 3600
NEW_NAMES: Final = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
#: The longest a protobuf Duration can be: about 10,000 years.
LONGEST: Final = 315_576_000_000


def seconds(duration: str) -> Decimal:
    """The length of a duration like ``3600s``."""
    return Decimal(duration.removesuffix("s"))


@rule("duration-range", TYPES + "custom_job.py")
def duration_range(job: Job) -> Iterator[Finding]:
    """A timeout is longer than nothing; waiting is not negative."""
    timeout, wait = job.scheduling.get("timeout"), job.scheduling.get("maxWaitDuration")
    if timeout and not 0 < seconds(timeout) <= LONGEST:
        yield Finding((*PLACE, "timeout"), "must be longer than nothing", timeout, "like 3600s")
    if wait and not 0 <= seconds(wait) <= LONGEST:
        hint = '"0s" waits for ever'
        yield Finding((*PLACE, "maxWaitDuration"), "must not be negative", wait, hint)


@rule("timeout-missing", TYPES + "custom_job.py", "note")
def timeout_missing(job: Job) -> Iterator[Finding]:
    """A job with accelerators says how long it may run; the default is 7 days."""
    if "timeout" in job.scheduling or not any(pool.accelerator for pool in job.pools):
        return
    path = PLACE if "scheduling" in job.spec else SPEC
    missing = "timeout" if "scheduling" in job.spec else "scheduling"
    hint = 'scheduling: {timeout: "86400s"} is what a day can cost at most'
    yield Finding(path, "no timeout: it may run, and cost, for 7 days", "", hint, missing)


@rule("strategy-deprecated", TYPES + "custom_job.py", "warning")
def strategy_deprecated(job: Job) -> Iterator[Finding]:
    """Strategies are called by their present names."""
    name = job.scheduling.get("strategy")
    if name in NEW_NAMES:
        yield Finding(STRATEGY, "is deprecated", name, f"write {NEW_NAMES[name]}")


@rule("retries-contradict", TYPES + "custom_job.py")
def retries_contradict(job: Job) -> Iterator[Finding]:
    """disableRetries and restartJobOnWorkerRestart are not both true."""
    if job.scheduling.get("disableRetries") and job.scheduling.get("restartJobOnWorkerRestart"):
        what = "disableRetries switches restarts off"
        path = (*PLACE, "restartJobOnWorkerRestart")
        yield Finding(path, what, "true", "remove one of the two")


@rule("max-wait-unused", TYPES + "custom_job.py", "warning")
def max_wait_unused(job: Job) -> Iterator[Finding]:
    """maxWaitDuration is for FLEX_START only."""
    wait = job.scheduling.get("maxWaitDuration")
    if wait and job.strategy in ("STANDARD", "SPOT"):
        path, what = (*PLACE, "maxWaitDuration"), "is for FLEX_START only"
        yield Finding(path, what, wait, "remove it, or write strategy: FLEX_START")


@rule("flex-start-gpu", FLEX)
def flex_start_gpu(job: Job) -> Iterator[Finding]:
    """FLEX_START is for L4, A100, H100, H200 and B200 machines, in every pool."""
    if job.strategy != "FLEX_START":
        return
    for pool in job.pools:
        if pool.shape and not pool.shape.flex_start:
            what = "FLEX_START gives L4, A100, H100, H200 and B200 machines only"
            hint = "use SPOT or STANDARD, or other machines"
            yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("flex-start-timeout", FLEX)
def flex_start_timeout(job: Job) -> Iterator[Finding]:
    """A FLEX_START job runs for at most 7 days."""
    timeout = job.scheduling.get("timeout")
    if job.strategy == "FLEX_START" and timeout and seconds(timeout) > WEEK:
        what = "FLEX_START allows 7 days at most"
        yield Finding((*PLACE, "timeout"), what, timeout, 'write "604800s" or less')


@rule("flex-start-same-machines", FLEX)
def flex_start_same_machines(job: Job) -> Iterator[Finding]:
    """All pools of a FLEX_START job have the same machines."""
    fields = ("machineType", "acceleratorType", "acceleratorCount")
    if job.strategy != "FLEX_START" or len(job.pools) < 2:
        return
    first, *others = job.pools
    for pool in others:
        if [pool.machine.get(f) for f in fields] != [first.machine.get(f) for f in fields]:
            what = "FLEX_START needs the same machines in all pools"
            hint = f"the first pool has {first.machine_type}; no reduction server is possible"
            yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("spot-output", GUIDES + "training/use-spot-vms", "warning")
def spot_output(job: Job) -> Iterator[Finding]:
    """A SPOT job has a baseOutputDirectory: preempted, it starts again from its checkpoints.

    A bucket that its command line or its environment names may serve as well.
    """
    by_hand = any(
        "gs://" in text or "/gcs/" in text for pool in job.pools for _, text in pool.texts()
    )
    if job.strategy == "SPOT" and not job.output and not by_hand:
        what = "baseOutputDirectory is missing: a preempted job starts again from nothing"
        hint = "set it, and resume from AIP_CHECKPOINT_DIR"
        yield Finding(SPEC, what, "", hint, "baseOutputDirectory")
