"""Costs of jobs and endpoints: an estimate from list prices, and the maximum.

The price of a machine is Compute Engine's list price with the GPUs it carries, and the fee that
Vertex AI adds (``machines.fee_share``): a share of the price on demand, also where the machine is
paid for at the spot price. The worst case of a job is rate x machines x timeout, summed over its
worker pools. A boot disk counts above the default size, by the dearest region's price. Boot disks
up to that size, local SSDs that are not part of a machine type, storage, network traffic and
discounts are not in it.

Google Batch takes no fee (batch/pricing): its machines cost Compute Engine's price. Its timeout is
that of an attempt, so the worst case counts every attempt.

The fee was seen on one bill: a3-highgpu-8g in us-central1, 2025. Its STANDARD price had the fee
inside, of flex-start it was 15 % of the price on demand, beside the discounted machine. No source
has it for Spot of other families, and no price list here has flex-start: it counts as on demand,
which is more than is paid.

An endpoint is paid for by the month, with or without traffic: each deployed version has machines of
its own. That it pays the same fee was seen for n1-standard-4 (Singapore, 2026) and a3-highgpu-1g
(us-central1, 2025) alone.

A machine without a price in any source has ``None``, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.catalog.machines import MachineType, Price

#: Seconds that a job without a timeout may run: 7 days, by google-cloud-aiplatform 2.7.0,
#: google/cloud/aiplatform_v1/types/custom_job.py, Scheduling.timeout.
DEFAULT_TIMEOUT: Final = 7 * 24 * 3600.0
#: Strategies that pay the spot price; LOW_COST is the deprecated name. All others pay the full
#: one: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/use-reservations
SPOT: Final = frozenset({"SPOT", "LOW_COST"})
#: How often a job on Batch is tried again where Google took or lost a machine, by strategy: as
#: Vertex AI does (training/understanding-training-service). We set it; Batch has at most 10.
BATCH_RETRIES: Final = {"SPOT": 6, "LOW_COST": 6}
OTHER_BATCH_RETRIES: Final = 3
#: Hours of a month, as price lists count them: 365 days / 12.
HOURS_A_MONTH: Final = 730
#: A duration that is not negative, as JSON writes it.
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]{1,9})?)s")
#: Longer than any duration can be.
MOST_SECONDS: Final = 1e15
#: Why the figures are no invoice; shown wherever they are.
NOT_INCLUDED: Final = (
    "Estimates: list prices, GPUs included, on Vertex with its fee of 15 % of the price on demand, "
    "on Batch without one. Boot disks up to 100 GB, local SSDs that are added, storage, network "
    "traffic and discounts are not in them."
)
#: Strategy -> what no source has of its price, in a sentence.
THIN: Final = {
    "SPOT": "That Vertex's fee beside Spot machines is of the price on demand is concluded from a "
    "bill of flex start.",
    "FLEX_START": "No source has prices of flex start: it counts as on demand, which is more.",
}


def usd(amount: float | None) -> str:
    """An amount as people read it, or ``no price``."""
    return "no price" if amount is None else f"${amount:,.2f}"


def hours(seconds: float) -> str:
    """A duration in hours, as people read it: ``0.5 h``."""
    value = seconds / 3600
    return f"{value:,.3g} h" if value < 1000 else f"{value:,.0f} h"


def thin_sources(strategies: Iterable[str]) -> list[str]:
    """Return the caveats about the prices of these strategies, each sentence once."""
    spelt = ("SPOT" if strategy in SPOT else strategy for strategy in strategies)
    return [THIN[fromkey] for fromkey in dict.fromkeys(spelt) if fromkey in THIN]


@dataclass(frozen=True, slots=True)
class Rate:
    """Price of one machine per hour."""

    usd: float
    """USD an hour, Vertex AI's fee included unless it was asked for without."""
    source: str
    """Keys of ``infra/vertex_training/catalog/sources.yaml``, joined with ``+``."""
    date: str
    """Of the older price in it; ``undated`` if a source has no date."""
    region: str
    """The region the price was found for."""
    exact: bool
    """True if the price is of the requested region; other regions have other prices."""


@dataclass(frozen=True, slots=True)
class PoolCost:
    """Cost of a worker pool. ``rate`` is None if the machine has no price."""

    index: int
    machine_type: str
    accelerator: str
    """acceleratorType, empty if it has none."""
    count: int
    """Accelerators of one machine."""
    machines: int
    """Replicas; a TPU slice counts as several machines."""
    rate: Rate | None
    disk: float = 0.0
    """USD an hour of one machine's boot disk, at most, above one of the default size."""

    @property
    def hourly(self) -> float | None:
        """USD an hour of the whole pool."""
        return None if self.rate is None else (self.rate.usd + self.disk) * self.machines


@dataclass(frozen=True, slots=True)
class JobCost:
    """Cost of a running job per hour, and the limits of its run time."""

    pools: tuple[PoolCost, ...]
    """Of one trial, if the job is a tuning job."""
    timeout: float
    """Seconds it may run; of a tuning job, each trial."""
    default_timeout: bool
    """True if the job sets no timeout of a second or more."""
    trials: int | None = None
    """Maximum number of trials of a tuning job; None for other jobs."""
    parallel: int = 1
    """Number of trials that run at once."""
    attempts: int = 1
    """Number of times that the timeout can begin; 1 on Vertex AI: it covers all attempts."""

    @property
    def trial_hourly(self) -> float | None:
        """USD an hour of all pools; None if one of them has no price, or if there is none."""
        rates = [pool.hourly for pool in self.pools if pool.hourly is not None]
        return math.fsum(rates) if rates and len(rates) == len(self.pools) else None

    @property
    def hourly(self) -> float | None:
        """USD an hour of all that runs at once; None without a price."""
        return None if self.trial_hourly is None else self.trial_hourly * self.parallel

    @property
    def worst_case(self) -> float | None:
        """USD if it, or every trial, runs until its timeout; None if a pool has no price."""
        if self.trial_hourly is None:
            return None
        times = self.attempts * (1 if self.trials is None else self.trials)
        return self.trial_hourly * self.timeout / 3600 * times

    @property
    def span(self) -> str:
        """Return the worst case's basis: ``0.5 h``, ``4 trials of 1 h``, ``7 attempts of 1 h``."""
        trials = "" if self.trials is None else f"{self.trials} trials of "
        attempts = f"{self.attempts} attempts of " if self.attempts > 1 else ""
        return f"{trials}{attempts}{hours(self.timeout)}"

    def __str__(self) -> str:
        """The most it can come to, and in how long: ``$0.11 in 0.5 h``."""
        return f"{usd(self.worst_case)} in {self.span}{self.elsewhere}"

    @property
    def elsewhere(self) -> str:
        """Return the region of the prices if no source has the job's region; else empty."""
        rates = [pool.rate for pool in self.pools if pool.rate]
        regions = dict.fromkeys(rate.region for rate in rates if not rate.exact)
        if not regions:
            return ""
        return f", at prices of {' and '.join(regions)}: those of the job's region are unknown"

    @property
    def unpriced(self) -> tuple[PoolCost, ...]:
        """Pools without a price."""
        return tuple(pool for pool in self.pools if pool.rate is None)


@dataclass(frozen=True, slots=True)
class EndpointCost:
    """Monthly cost of the machines of an endpoint, independent of its traffic."""

    versions: int
    """Deployed versions; each has machines of its own."""
    replicas: tuple[int, int]
    """Machines of one version, at least and at most."""
    rate: Rate | None
    """Of one machine; None where no source has a price."""

    @property
    def monthly(self) -> tuple[float, float] | None:
        """USD a month at the least and at the most replicas; None without a price."""
        if self.rate is None:
            return None
        least, most = (
            self.rate.usd * self.versions * replicas * HOURS_A_MONTH for replicas in self.replicas
        )
        return least, most

    @property
    def most(self) -> float | None:
        """USD a month at the most replicas; None without a price."""
        return self.monthly[1] if self.monthly else None

    @property
    def at_most(self) -> str:
        """``$159.50 a month``, and whose prices these are where the region's own are unknown."""
        where = "" if self.rate is None or self.rate.exact else f", at prices of {self.rate.region}"
        return f"{usd(self.most)} a month{where}" if self.monthly else usd(None)

    def __str__(self) -> str:
        """``$79.75 to $159.50 a month``; one figure where the number of replicas is fixed."""
        if self.monthly is None or self.replicas[0] == self.replicas[1]:
            return self.at_most
        return f"{usd(self.monthly[0])} to {self.at_most}"


def of_dearest(
    messages: Iterable[Mapping[str, Any]], region: str, backend: str = "vertex"
) -> JobCost:
    """The cost of the dearest of several messages, of which one runs: the rungs of a job."""
    found = (of_job(message, region, backend) for message in messages)
    return max(found, key=lambda cost: cost.worst_case or 0.0)


def of_endpoint(
    machine_type: str,
    accelerator: str | None,
    count: int,
    replicas: tuple[int, int],
    versions: int,
    region: str,
) -> EndpointCost:
    """Return the cost of an endpoint in ``region`` with this number of deployed versions."""
    return EndpointCost(versions, replicas, hourly(machine_type, accelerator, count, region))


def hourly(
    machine_type: str,
    accelerator: str | None,
    count: int,
    region: str,
    strategy: str = "STANDARD",
    *,
    fee: bool = True,
) -> Rate | None:
    """Return the hourly price of one machine in ``region``, or None if no source has one.

    A price of the region is taken before one of another; :attr:`Rate.exact` says which it is.

    Without ``fee`` it is Compute Engine's price alone, which a reservation is paid for with.

    ``accelerator`` and ``count`` are the job's; they add to the price only where the machine
    type's price does not include its accelerators. A price is never taken from another strategy:
    a SPOT machine without a spot price has no price. Nor has a machine with accelerators that it
    cannot have.
    """
    machine = machines.serving_machine_type(machine_type)  # whether a job may use it, rules say
    if machine is None:
        return None
    wanted = [(machines.machine_prices(machine, region), 1)]
    if accelerator:
        counts = machine.accelerators.get(accelerator, ())
        if not counts or (count and not machine.tpu and count not in counts):
            return None
        if not machine.accelerator_required:
            wanted.append((machines.accelerator_prices(accelerator, region), count))
    share = machines.fee_share() if fee else 0
    parts = [
        (price, unit * times)
        for prices, times in wanted
        for price, unit in _first_with(prices, strategy, share)
    ]
    return _rate(parts, region) if len(parts) == len(wanted) else None


def _rate(parts: Sequence[tuple[Price, float]], region: str) -> Rate:
    """The sum of prices, each with its amount."""
    return Rate(
        usd=math.fsum(usd for _, usd in parts),
        source="+".join(dict.fromkeys(price.source for price, _ in parts)),
        date=_oldest(price.date for price, _ in parts),
        region="+".join(dict.fromkeys(price.region for price, _ in parts)),
        exact=all(price.region == region for price, _ in parts),
    )


def batch_retries(scheduling: Mapping[str, Any]) -> int:
    """Return the number of retries of a task of a job on Batch."""
    if scheduling.get("disableRetries"):
        return 0
    return BATCH_RETRIES.get(scheduling.get("strategy", ""), OTHER_BATCH_RETRIES)


def of_job(message: Mapping[str, Any], region: str, backend: str = "vertex") -> JobCost:
    """Return the cost of a CustomJob or HyperparameterTuningJob message in ``region`` on a service.

    The message is one that passed the checks (``customjob.request``); a pool without a machine type
    has no price.
    """
    trials = int(message.get("maxTrialCount", 0)) if "trialJobSpec" in message else None
    spec = message.get("jobSpec" if trials is None else "trialJobSpec", {})
    scheduling = spec.get("scheduling", {})
    strategy, timeout = scheduling.get("strategy", "STANDARD"), whole_seconds(scheduling)
    return JobCost(
        pools=tuple(
            _pool(index, pool, region, strategy, fee=backend == "vertex")
            for index, pool in enumerate(spec.get("workerPoolSpecs", ()))
            if pool
        ),
        timeout=timeout or DEFAULT_TIMEOUT,
        default_timeout=not timeout,
        trials=trials,
        parallel=1 if trials is None else min(trials, int(message.get("parallelTrialCount", 1))),
        attempts=1 + batch_retries(scheduling) if backend == "batch" else 1,
    )


def whole_seconds(scheduling: Mapping[str, Any]) -> float:
    """The timeout of a job, rounded up; 0 if it sets none.

    What is shorter than a second, or no duration, is none: whoever counts whole seconds reads 0,
    which is how the API writes a timeout that is not set.
    """
    match = _DURATION.fullmatch(str(scheduling.get("timeout")))
    seconds = float(match[1]) if match else 0.0
    return math.ceil(min(seconds, MOST_SECONDS)) if seconds >= 1 else 0.0


def _pool(
    index: int, pool: Mapping[str, Any], region: str, strategy: str, *, fee: bool
) -> PoolCost:
    spec = pool.get("machineSpec", {})
    machine_type, accelerator = spec.get("machineType", ""), spec.get("acceleratorType", "")
    if accelerator.endswith("_UNSPECIFIED"):
        accelerator = ""
    count = int(spec.get("acceleratorCount", 0))
    hosts = _hosts(machines.machine_type(machine_type), spec.get("tpuTopology", ""))
    return PoolCost(
        index=index,
        machine_type=machine_type,
        accelerator=accelerator,
        count=count,
        machines=int(pool.get("replicaCount", 1)) * hosts,
        rate=hourly(machine_type, accelerator, count, region, strategy, fee=fee),
        disk=_disk(pool.get("diskSpec", {}), machines.fee_share() if fee else 0),
    )


def _disk(spec: Mapping[str, Any], share: float) -> float:
    month = machines.boot_disk_cost(
        spec.get("bootDiskType", ""), int(spec.get("bootDiskSizeGb", 0))
    )
    return month / HOURS_A_MONTH * (1 + share)


def _hosts(machine: MachineType | None, topology: str) -> int:
    """Machines of one replica: a TPU slice of 4x4 chips is four machines with four chips each."""
    if machine is None or not machine.chips or topology not in machine.topologies:
        return 1
    return max(1, math.prod(map(int, topology.split("x"))) // machine.chips)


def _first_with(prices: Iterable[Price], strategy: str, share: float) -> list[tuple[Price, float]]:
    """The first price that the strategy pays, with its amount and fee; empty if there is none."""
    for price in prices:
        unit = price.spot if strategy in SPOT else price.on_demand
        if unit is not None:
            return [(price, unit + share * price.on_demand)]
    return []


def _oldest(dates: Iterable[str]) -> str:
    """The oldest of ISO dates; what has no date could be older than any."""
    known = sorted(set(dates))
    return "undated" if "undated" in known else known[0]
