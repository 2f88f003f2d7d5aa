"""Limits of the stack: what its jobs may cost, and what they may run on."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import PoolCost
from vertex_training.customjob.rules.context import JobLimits
from vertex_training.customjob.rules.job import SPEC, Job
from vertex_training.customjob.rules.registry import Finding, rule

DOCS: Final = "docs/networks.md#limits"
STRATEGY: Final = ("jobSpec", "scheduling", "strategy")
TIMEOUT: Final = ("jobSpec", "scheduling", "timeout")


def _limits(job: Job) -> Iterator[JobLimits]:
    """Those of the stack, and those of the team whose account the job runs as."""
    found = (job.context.limits, job.context.account_limits.get(job.account))
    yield from (limits for limits in found if limits is not None)


@rule("limit-job-cost", DOCS)
def limit_job_cost(job: Job) -> Iterator[Finding]:
    """A job costs at most limits.maxUsdPerJob if it runs until its timeout."""
    given = [limits.usd for limits in _limits(job) if limits.usd is not None]
    if not given or job.strategy == "?" or not job.region:
        return
    most = min(given)
    cost = costs.of_job(job.tuning or job.request, job.region, job.context.backend)
    if cost.worst_case is None or cost.worst_case <= most or cost.trial_hourly is None:
        return
    runs = cost.attempts * (1 if cost.trials is None else cost.trials)
    what = (
        f"may cost {costs.usd(cost.worst_case)} ({_rate(cost)}), "
        f"the limit of a job is {costs.usd(most)}"
    )
    seconds = int(most / runs / cost.trial_hourly * 3600)
    fewer = "fewer or cheaper machines" if cost.trials is None else "fewer trials"
    hint = f'timeout: "{seconds}s" keeps the limit; so do {fewer}'
    if cost.default_timeout:
        given = job.scheduling.get("timeout", "")
        path = TIMEOUT if given else TIMEOUT[:2] if "scheduling" in job.spec else SPEC
        none = (
            "a timeout below a second may count as none, which is"
            if given
            else "without a timeout it may run for"
        )
        yield Finding(path, f"{what}: {none} 7 days", given, hint)
    else:
        yield Finding(TIMEOUT, what, job.scheduling["timeout"], hint)


def _rate(cost: costs.JobCost) -> str:
    """What is paid an hour, and in how many trials."""
    attempts = f" in {cost.attempts} attempts" if cost.attempts > 1 else ""
    rate = f"{costs.usd(cost.hourly)} an hour{attempts}{cost.elsewhere}"
    return (
        rate if cost.trials is None else f"{rate}, {cost.parallel} of {cost.trials} trials at once"
    )


@rule("limit-price-unknown", DOCS)
def limit_price_unknown(job: Job) -> Iterator[Finding]:
    """Where a stack limits costs, every machine has a price, or limits.allowUnpriced is true."""
    priced = any(limits.priced for limits in _limits(job))
    if not priced or job.strategy == "?" or not job.region:
        return
    for pool in costs.of_job(job.request, job.region).unpriced:
        path = ("jobSpec", "workerPoolSpecs", pool.index, "machineSpec")
        what = "no source has a price for this machine, and the stack limits costs"
        spot = " as a spot machine" if job.strategy == "SPOT" else ""
        hint = "take another one (vt catalogue), or set limits.allowUnpriced: true"
        if job.strategy == "SPOT" and _has_full_price(pool, job.region):
            hint = f"strategy: STANDARD has a price; or {hint}"
        yield Finding((*path, "machineType"), what, f"{pool.machine_type}{spot}", hint)


@rule("limit-machine-type", DOCS)
def limit_machine_type(job: Job) -> Iterator[Finding]:
    """Every pool runs on a machine type that limits.machineTypes allows."""
    for limits in _limits(job):
        allowed = limits.machine_types
        if allowed is None:
            continue
        for pool in job.pools:
            if not any(fnmatch.fnmatchcase(pool.machine_type, each) for each in allowed):
                hint = f"{limits.source}.machineTypes allows {', '.join(allowed)}"
                what = "the limits do not allow this machine type"
                yield Finding((*pool.machine_path, "machineType"), what, pool.machine_type, hint)


@rule("limit-strategy", DOCS)
def limit_strategy(job: Job) -> Iterator[Finding]:
    """A job is scheduled with a strategy that limits.strategies allows."""
    for limits in _limits(job):
        if limits.strategies is None or job.strategy in (*limits.strategies, "?"):
            continue
        given = "strategy" in job.scheduling
        place = STRATEGY if given else (STRATEGY[:2] if "scheduling" in job.spec else SPEC)
        hint = f"{limits.source}.strategies allows {', '.join(limits.strategies)}"
        yield Finding(place, "the limits do not allow this strategy", job.strategy, hint)


def _has_full_price(pool: PoolCost, region: str) -> bool:
    """Whether the machine of a pool has a price where it is not a spot machine."""
    machine = pool.machine_type, pool.accelerator or None, pool.count
    return costs.hourly(*machine, region) is not None
