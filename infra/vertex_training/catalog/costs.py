"""Estimated and maximum costs of jobs and endpoints, from list prices.

The price of a machine is Compute Engine's list price, including its GPUs, plus Vertex AI's fee
(``machines.fee_share``): a share of the on-demand price, also for Spot machines. The maximum cost
of a job is rate x machines x timeout, summed over its worker pools. Google Batch has no fee
(batch/pricing), and its timeout applies to each attempt. Boot disks cost the price of the most
expensive region for the size above the default.

The fee is known from one bill (a3-highgpu-8g, us-central1, 2025): 15 % of the on-demand price, also
with flex-start. No source has flex-start prices: flex-start counts as on demand, which is too high.
The same fee for endpoints is known for n1-standard-4 (Singapore, 2026) and a3-highgpu-1g
(us-central1, 2025). A machine without a known price has ``None``, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog import machines
from vertex_training.catalog.machines import MachineType, Price

#: Seconds that a job without a timeout may run: 7 days, by google-cloud-aiplatform 2.7.0,
#: google/cloud/aiplatform_v1/types/custom_job.py, Scheduling.timeout.
DEFAULT_TIMEOUT: Final = 7 * 24 * 3600.0
#: Scheduling strategies with the Spot price; LOW_COST is the deprecated name of SPOT. Other
#: strategies have the on-demand price:
#: https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/use-reservations
SPOT: Final = frozenset({"SPOT", "LOW_COST"})
#: Scheduling strategy -> retries of a Batch job after Google stopped or lost a machine. The numbers
#: equal those of Vertex AI (training/understanding-training-service). The maximum of Batch is 10.
BATCH_RETRIES: Final = {"SPOT": 6, "LOW_COST": 6}
OTHER_BATCH_RETRIES: Final = 3
#: Hours of a month in price lists: 365 days / 12.
HOURS_A_MONTH: Final = 730
#: A duration in JSON, like ``3600s``.
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]{1,9})?)s")
#: Upper bound of durations.
MOST_SECONDS: Final = 1e15
#: Note for all cost estimates: included and excluded costs.
NOT_INCLUDED: Final = (
    "Estimates use list prices including GPUs. Vertex AI adds a fee of 15 % of the on-demand "
    "price, Batch adds no fee. Boot disks up to 100 GB, added local SSDs, storage, network traffic "
    "and discounts are not included."
)
#: Scheduling strategy -> limitation of its price estimate.
THIN: Final = {
    "SPOT": "For Spot machines, the fee of 15 % of the on-demand price is inferred from a bill of "
    "flex-start.",
    "FLEX_START": "No source has flex-start prices: estimates use the higher on-demand price.",
}


def usd(amount: float | None) -> str:
    """Format an amount, like ``$1,234.50``; ``no price`` for None."""
    return "no price" if amount is None else f"${amount:,.2f}"


def hours(seconds: float) -> str:
    """Format a duration in hours, like ``0.5 h``."""
    value = seconds / 3600
    return f"{value:,.3g} h" if value < 1000 else f"{value:,.0f} h"


def thin_sources(strategies: Iterable[str]) -> list[str]:
    """Return the limitations of price estimates for these strategies, without duplicates."""
    spelt = ("SPOT" if strategy in SPOT else strategy for strategy in strategies)
    return [THIN[strategy] for strategy in dict.fromkeys(spelt) if strategy in THIN]


@dataclass(frozen=True, slots=True)
class Rate:
    """Price of one machine per hour."""

    usd: float
    """USD per hour; reservations and Batch pay no fee of Vertex AI."""
    source: str
    """Keys of ``infra/vertex_training/catalog/sources.yaml``, joined with ``+``."""
    date: str
    """Date of the oldest price; ``undated`` if a source has no date."""
    region: str
    exact: bool
    """True if the price is for the requested region."""


@dataclass(frozen=True, slots=True)
class PoolCost:
    """Cost of a worker pool. ``rate`` is None if the machine has no price."""

    index: int
    machine_type: str
    accelerator: str
    """``acceleratorType``; empty without accelerators."""
    count: int
    """Number of accelerators per machine."""
    machines: int
    """Number of machines; a TPU slice counts as several."""
    rate: Rate | None
    disk: float = 0.0
    """Maximum USD per hour for a machine's boot disk above the default size."""

    @property
    def hourly(self) -> float | None:
        """Return USD per hour of the whole pool; None without a price."""
        return None if self.rate is None else (self.rate.usd + self.disk) * self.machines


@dataclass(frozen=True, slots=True)
class JobCost:
    """Hourly cost of a job, and the limits of its run time."""

    pools: tuple[PoolCost, ...]
    """Worker pools; those of one trial for a tuning job."""
    timeout: float
    """Timeout in seconds, of the job or of each trial."""
    default_timeout: bool
    """True if the job sets no valid timeout."""
    trials: int | None = None
    """Maximum number of trials of a tuning job; None for other jobs."""
    parallel: int = 1
    attempts: int = 1
    """Number of attempts with the whole timeout each; 1 on Vertex AI."""

    @property
    def trial_hourly(self) -> float | None:
        """Return USD per hour of all pools; None without pools, or if a pool has no price."""
        rates = [pool.hourly for pool in self.pools if pool.hourly is not None]
        return math.fsum(rates) if rates and len(rates) == len(self.pools) else None

    @property
    def hourly(self) -> float | None:
        """Return USD per hour with all parallel trials; None if a pool has no price."""
        return None if self.trial_hourly is None else self.trial_hourly * self.parallel

    @property
    def worst_case(self) -> float | None:
        """Return the cost in USD if the job runs until its timeout; None if a pool has no price."""
        if self.trial_hourly is None:
            return None
        times = self.attempts * (1 if self.trials is None else self.trials)
        return self.trial_hourly * self.timeout / 3600 * times

    @property
    def span(self) -> str:
        """Describe the maximum run time, like ``0.5 h`` or ``4 trials of 1 h``."""
        trials = "" if self.trials is None else f"{self.trials} trials of "
        attempts = f"{self.attempts} attempts of " if self.attempts > 1 else ""
        return f"{trials}{attempts}{hours(self.timeout)}"

    def __str__(self) -> str:
        """Format the maximum cost with the run time, like ``$0.11 in 0.5 h``."""
        return f"{usd(self.worst_case)} in {self.span}{self.elsewhere}"

    @property
    def elsewhere(self) -> str:
        """Return a note if a price is another region's; empty if all prices are for the region."""
        rates = [pool.rate for pool in self.pools if pool.rate]
        regions = dict.fromkeys(rate.region for rate in rates if not rate.exact)
        if not regions:
            return ""
        return f", at prices of {' and '.join(regions)}, since the job's region has no known prices"

    @property
    def unpriced(self) -> tuple[PoolCost, ...]:
        """Return the pools without a price."""
        return tuple(pool for pool in self.pools if pool.rate is None)


@dataclass(frozen=True, slots=True)
class EndpointCost:
    """Monthly cost of the machines of an endpoint, independent of its traffic."""

    versions: int
    """Number of deployed versions, which do not share machines."""
    replicas: tuple[int, int]
    """Minimum and maximum number of machines of one version."""
    rate: Rate | None
    """Price of one machine; None without a known price."""

    @property
    def monthly(self) -> tuple[float, float] | None:
        """Return USD per month with minimum and maximum replicas; None without a price."""
        if self.rate is None:
            return None
        least, most = (
            self.rate.usd * self.versions * replicas * HOURS_A_MONTH for replicas in self.replicas
        )
        return least, most

    @property
    def most(self) -> float | None:
        """Return USD per month with maximum replicas; None without a price."""
        return self.monthly[1] if self.monthly else None

    @property
    def at_most(self) -> str:
        """Format the maximum, like ``$159.50 a month``; appends the region if it differs."""
        where = "" if self.rate is None or self.rate.exact else f", at prices of {self.rate.region}"
        return f"{usd(self.most)} a month{where}" if self.monthly else usd(None)

    def __str__(self) -> str:
        """Format the range, like ``$79.75 to $159.50 a month``; one figure for fixed replicas."""
        if self.monthly is None or self.replicas[0] == self.replicas[1]:
            return self.at_most
        return f"{usd(self.monthly[0])} to {self.at_most}"


def of_dearest(
    messages: Iterable[Mapping[str, Any]], region: str, backend: str = "vertex"
) -> JobCost:
    """Return the cost of the most expensive request of a job, such as a rung of its ladder."""
    estimates = (of_job(message, region, backend) for message in messages)
    return max(estimates, key=lambda cost: cost.worst_case or 0.0)


def of_endpoint(
    machine_type: str,
    accelerator: str | None,
    count: int,
    replicas: tuple[int, int],
    versions: int,
    region: str,
) -> EndpointCost:
    """Return the monthly cost of an endpoint in ``region``, the same with or without traffic."""
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
    """Return the hourly price of one machine in ``region``; None without a known price.

    Prices of the region take precedence (:attr:`Rate.exact`). Without ``fee`` the result is Compute
    Engine's price, which reservations pay. ``accelerator`` and ``count`` add to the price only if
    the machine type's price does not include accelerators. A SPOT machine without a Spot price has
    no price, and neither has a machine with accelerators that it does not support.
    """
    # Other rules check that jobs can use the machine type.
    machine = machines.serving_machine_type(machine_type)
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
    if len(parts) != len(wanted):
        return None
    dates = sorted({price.date for price, _ in parts})
    return Rate(
        usd=math.fsum(usd for _, usd in parts),
        source="+".join(dict.fromkeys(price.source for price, _ in parts)),
        date="undated" if "undated" in dates else dates[0],
        region="+".join(dict.fromkeys(price.region for price, _ in parts)),
        exact=all(price.region == region for price, _ in parts),
    )


def batch_retries(scheduling: Mapping[str, Any]) -> int:
    """Return the number of retries of a Batch job's task."""
    if scheduling.get("disableRetries"):
        return 0
    return BATCH_RETRIES.get(scheduling.get("strategy", ""), OTHER_BATCH_RETRIES)


def of_job(message: Mapping[str, Any], region: str, backend: str = "vertex") -> JobCost:
    """Return the cost of a valid CustomJob or HyperparameterTuningJob on Vertex AI or Batch."""
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
    """Return the timeout of a job in seconds, rounded up; 0 if unset, invalid or below 1."""
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
    disk, share = pool.get("diskSpec", {}), machines.fee_share() if fee else 0
    size = int(disk.get("bootDiskSizeGb", 0))
    month = machines.boot_disk_cost(disk.get("bootDiskType", ""), size)
    hosts = _hosts(machines.machine_type(machine_type), spec.get("tpuTopology", ""))
    return PoolCost(
        index=index,
        machine_type=machine_type,
        accelerator=accelerator,
        count=count,
        machines=int(pool.get("replicaCount", 1)) * hosts,
        rate=hourly(machine_type, accelerator, count, region, strategy, fee=fee),
        disk=month / HOURS_A_MONTH * (1 + share),
    )


def _hosts(machine: MachineType | None, topology: str) -> int:
    """Return the number of machines of a replica: a TPU slice of 4x4 chips has four machines."""
    if machine is None or not machine.chips or topology not in machine.topologies:
        return 1
    return max(1, math.prod(map(int, topology.split("x"))) // machine.chips)


def _first_with(prices: Iterable[Price], strategy: str, share: float) -> list[tuple[Price, float]]:
    for price in prices:
        unit = price.spot if strategy in SPOT else price.on_demand
        if unit is not None:
            return [(price, unit + share * price.on_demand)]
    return []
