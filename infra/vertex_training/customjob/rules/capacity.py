"""Rules for reservations, persistent resources and scheduling."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from vertex_training.customjob.rules.job import SPEC, Job, Pool, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
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
#: Compute Engine offers these machine types only as Spot or Flex-start VMs.
NEVER_STANDARD: Final = ("a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g")
#: Accelerators for which Google recommends a shared reservation or Spot VMs.
SCARCE: Final = ("NVIDIA_H100_MEGA_80GB", "NVIDIA_H200_141GB", "NVIDIA_B200")


def _affinities(job: Job) -> Iterator[tuple[Pool, dict[str, Any], Path]]:
    for pool in job.pools:
        if pool.affinity is not None:
            yield pool, pool.affinity, (*pool.machine_path, "reservationAffinity")


@rule("reservation-type", AFFINITY_TYPES, of=_affinities)
def reservation_type(_pool: Pool, affinity: dict[str, Any], path: Path) -> Findings:
    """Check that a reservationAffinity has a reservationAffinityType."""
    kind = affinity.get("reservationAffinityType", "TYPE_UNSPECIFIED")
    if kind == "TYPE_UNSPECIFIED":
        hint = "write ANY_RESERVATION, SPECIFIC_RESERVATION or NO_RESERVATION"
        what = "reservationAffinityType is missing"
        yield Finding(path, what, "", hint, "reservationAffinityType")


@rule("reservation-specific", AFFINITY_TYPES, of=_affinities)
def reservation_specific(_pool: Pool, affinity: dict[str, Any], path: Path) -> Findings:
    """Check that a SPECIFIC_RESERVATION affinity has a key and names reservations."""
    if affinity.get("reservationAffinityType") != "SPECIFIC_RESERVATION":
        return
    for field, hint in (("key", KEY), ("values", "[projects/P/zones/Z/reservations/NAME]")):
        if not affinity.get(field):
            yield Finding(path, f"{field} is missing", "", f"add {field}: {hint}", field)


@rule("reservation-key", AFFINITY_TYPES, of=_affinities)
def reservation_key(_pool: Pool, affinity: dict[str, Any], path: Path) -> Findings:
    """Check that the key of a reservationAffinity is compute.googleapis.com/reservation-name."""
    if (key := affinity.get("key")) and key != KEY:
        what = "reservationAffinity does not support this key"
        yield Finding((*path, "key"), what, key, f"write {KEY}")


@rule("reservation-name", AFFINITY_TYPES, of=pools_of)
def reservation_name(pool: Pool) -> Findings:
    """Check that a reservation has its full name: projects/P/zones/Z/reservations/NAME."""
    for path, name in pool.reservations():
        if not RESERVATION.match(name):
            hint = "write projects/PROJECT/zones/ZONE/reservations/NAME"
            yield Finding(path, "the reservation must be written with its full name", name, hint)


@rule("reservation-values-unused", AFFINITY_TYPES, of=_affinities)
def reservation_values_unused(_pool: Pool, affinity: dict[str, Any], path: Path) -> Findings:
    """Check that only an affinity of type SPECIFIC_RESERVATION sets key and values."""
    kind = affinity.get("reservationAffinityType")
    for field in ("key", "values"):
        if kind in ("ANY_RESERVATION", "NO_RESERVATION") and affinity.get(field):
            what = f"{kind} does not use {field}"
            hint = f"remove {field}, or write SPECIFIC_RESERVATION"
            yield Finding((*path, field), what, "", hint)


@rule("reservation-zone", RESERVATIONS, "warning", of=pools_of)
def reservation_zone(pool: Pool) -> Findings:
    """Check that the zone of a reservation is in the job's region."""
    for path, name in pool.reservations():
        match = RESERVATION.match(name)
        if match and pool.job.region and match[1] != pool.job.region:
            what = f"the reservation is outside the job's region {pool.job.region}"
            yield Finding(path, what, name, f"name a reservation in a zone of {pool.job.region}")


@rule("reservation-flex-start", RESERVATIONS, of=_affinities)
def reservation_flex_start(pool: Pool, _affinity: dict[str, Any], path: Path) -> Findings:
    """Check that a FLEX_START job has no reservations."""
    if pool.job.strategy == "FLEX_START" and pool.reserved:
        hint = "remove reservationAffinity, or change scheduling.strategy"
        yield Finding(path, "a FLEX_START job cannot use a reservation", "", hint)


@rule("reservation-spot", RESERVATIONS, "warning", of=_affinities)
def reservation_spot(pool: Pool, _affinity: dict[str, Any], path: Path) -> Findings:
    """Check that a SPOT job has no reservations: Spot VMs do not use them."""
    if pool.job.strategy == "SPOT" and pool.reserved:
        hint = "remove reservationAffinity, or change scheduling.strategy"
        yield Finding(path, "Spot VMs do not use reservations", "", hint)


@rule("reservation-persistent", RESERVATIONS, of=_affinities)
def reservation_persistent(pool: Pool, _affinity: dict[str, Any], path: Path) -> Findings:
    """Check that a job on a persistent resource has no reservationAffinity."""
    if pool.job.spec.get("persistentResourceId") and pool.reserved:
        what = "a job on a persistent resource cannot use a reservation"
        yield Finding(path, what, "", "remove reservationAffinity or persistentResourceId")


@rule("reservation-required", COMPUTE, of=pools_of)
def reservation_required(pool: Pool) -> Findings:
    """Check that a job on GB200 machines uses a shared reservation."""
    if pool.shape and pool.shape.reservation_required and pool.unreserved:
        what = f"reservationAffinity is missing; {pool.machine_type} needs a shared reservation"
        hint = "add reservationAffinity: {reservationAffinityType: ANY_RESERVATION}"
        yield Finding(pool.machine_path, what, "", hint, "reservationAffinity")


@rule(
    "spot-or-flex-start", "https://docs.cloud.google.com/compute/docs/gpus", "warning", of=pools_of
)
def spot_or_flex_start(pool: Pool) -> Findings:
    """Check that H100 machines with fewer than 8 GPUs use SPOT or FLEX_START."""
    if pool.machine_type in NEVER_STANDARD and pool.job.strategy == "STANDARD" and pool.unreserved:
        what = "this machine type is available only as Spot or Flex-start VMs"
        hint = "set scheduling.strategy to FLEX_START or SPOT"
        yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("scarce-accelerator", COMPUTE, "warning")
def scarce_accelerator(job: Job) -> Findings:
    """Check that H100 mega, H200 and B200 machines use a reservation or SPOT."""
    on_call = job.strategy == "STANDARD" and not job.spec.get("persistentResourceId")
    for pool in job.pools:
        if on_call and pool.accelerator in SCARCE and pool.unreserved:
            what = "Google recommends a shared reservation or SPOT for this accelerator"
            hint = "add reservationAffinity or strategy: SPOT; otherwise the job may wait long"
            path, got = pool.machine_path, pool.accelerator
            yield Finding(path, what, got, hint, missing="reservationAffinity")


@rule("persistent-resource", GUIDES + "training/persistent-resource-train", "warning")
def persistent_resource(job: Job) -> Findings:
    """Check that persistentResourceId is an id: lowercase letters, digits and hyphens."""
    id_ = job.spec.get("persistentResourceId")
    if id_ and not PERSISTENT_ID.match(id_):
        hint = "write the last part of the resource name: lowercase letters, digits and hyphens"
        what = "persistentResourceId must be the id of a persistent resource"
        yield Finding((*SPEC, "persistentResourceId"), what, id_, hint)


FLEX: Final = GUIDES + "training/schedule-jobs-dws"
PLACE: Final[Path] = ("jobSpec", "scheduling")
STRATEGY: Final[Path] = (*PLACE, "strategy")
WEEK: Final = 7 * 24 * 3600
NEW_NAMES: Final = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
#: Maximum of a protobuf Duration: about 10,000 years.
LONGEST: Final = 315_576_000_000


def _seconds(duration: str) -> Decimal:
    return Decimal(duration.removesuffix("s"))


@rule("duration-range", TYPES + "custom_job.py")
def duration_range(job: Job) -> Findings:
    """Check that a timeout is positive, and maxWaitDuration is not negative."""
    timeout, wait = job.scheduling.get("timeout"), job.scheduling.get("maxWaitDuration")
    if timeout and not 0 < _seconds(timeout) <= LONGEST:
        what, hint = "the timeout must be positive", "write 3600s, for example"
        yield Finding((*PLACE, "timeout"), what, timeout, hint)
    if wait and not 0 <= _seconds(wait) <= LONGEST:
        what, hint = "maxWaitDuration must not be negative", 'write "0s" to wait without a limit'
        yield Finding((*PLACE, "maxWaitDuration"), what, wait, hint)


@rule("timeout-missing", TYPES + "custom_job.py", "note")
def timeout_missing(job: Job) -> Findings:
    """Check that a job with accelerators has a timeout; the default is 7 days."""
    if "timeout" in job.scheduling or not any(pool.accelerator for pool in job.pools):
        return
    path = PLACE if "scheduling" in job.spec else SPEC
    missing = "timeout" if "scheduling" in job.spec else "scheduling"
    hint = 'set scheduling: {timeout: "86400s"} to limit the job to one day'
    yield Finding(path, "timeout is missing: the job may run for 7 days", "", hint, missing)


@rule("strategy-deprecated", TYPES + "custom_job.py", "warning")
def strategy_deprecated(job: Job) -> Findings:
    """Check that scheduling.strategy uses a current name, not a deprecated one."""
    name = job.scheduling.get("strategy")
    if name in NEW_NAMES:
        what = "this strategy name is deprecated"
        yield Finding(STRATEGY, what, name, f"write {NEW_NAMES[name]}")


@rule("retries-contradict", TYPES + "custom_job.py")
def retries_contradict(job: Job) -> Findings:
    """Check that disableRetries and restartJobOnWorkerRestart are not both true."""
    if job.scheduling.get("disableRetries") and job.scheduling.get("restartJobOnWorkerRestart"):
        what = "disableRetries and restartJobOnWorkerRestart contradict each other"
        path = (*PLACE, "restartJobOnWorkerRestart")
        yield Finding(path, what, "true", "remove disableRetries or restartJobOnWorkerRestart")


@rule("max-wait-unused", TYPES + "custom_job.py", "warning")
def max_wait_unused(job: Job) -> Findings:
    """Check that only FLEX_START jobs set maxWaitDuration."""
    wait = job.scheduling.get("maxWaitDuration")
    if wait and job.strategy in ("STANDARD", "SPOT"):
        path, what = (*PLACE, "maxWaitDuration"), "only FLEX_START jobs use maxWaitDuration"
        yield Finding(path, what, wait, "remove maxWaitDuration, or write strategy: FLEX_START")


@rule("flex-start-gpu", FLEX, of=pools_of)
def flex_start_gpu(pool: Pool) -> Findings:
    """Check that every pool of a FLEX_START job has L4, A100, H100, H200 or B200 machines."""
    if pool.job.strategy == "FLEX_START" and pool.shape and not pool.shape.flex_start:
        what = "FLEX_START supports only L4, A100, H100, H200 and B200 machines"
        hint = "use SPOT or STANDARD, or change the machine type"
        yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("flex-start-timeout", FLEX)
def flex_start_timeout(job: Job) -> Findings:
    """Check that a FLEX_START job has a timeout of at most 7 days."""
    timeout = job.scheduling.get("timeout")
    if job.strategy == "FLEX_START" and timeout and _seconds(timeout) > WEEK:
        what = "a FLEX_START job can run for at most 7 days"
        yield Finding((*PLACE, "timeout"), what, timeout, 'write "604800s" or less')


@rule("flex-start-same-machines", FLEX)
def flex_start_same_machines(job: Job) -> Findings:
    """Check that all pools of a FLEX_START job have the same machines."""
    fields = ("machineType", "acceleratorType", "acceleratorCount")
    for pool in job.pools[1:] if job.strategy == "FLEX_START" else ():
        first = job.pools[0]
        if [pool.machine.get(f) for f in fields] != [first.machine.get(f) for f in fields]:
            what = "FLEX_START requires equal machines in all pools"
            hint = f"use {first.machine_type}, as in the first pool, and no reduction server"
            yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("spot-output", GUIDES + "training/use-spot-vms", "warning")
def spot_output(job: Job) -> Findings:
    """Check that a SPOT job has a baseOutputDirectory for the checkpoints from which it resumes."""
    texts = [text for pool in job.pools for _, text in pool.texts()]
    has_bucket = any("gs://" in text or "/gcs/" in text for text in texts)
    if job.strategy == "SPOT" and not job.output and not has_bucket:
        what = "baseOutputDirectory is missing: a preempted job would lose its progress"
        hint = "set baseOutputDirectory, and resume from AIP_CHECKPOINT_DIR"
        yield Finding(SPEC, what, "", hint, "baseOutputDirectory")
