"""How long a job runs, how it gets its machines, and what happens when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Path

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
