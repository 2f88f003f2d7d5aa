"""Machine types and accelerators of jobs and endpoints, from ``machines.yaml``."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

from vertex_training import catalog

#: vCPU counts of machine types that endpoints support but training jobs may not:
#: https://docs.cloud.google.com/vertex-ai/docs/predictions/configure-compute
SMALLER_SIZES: Final = ("2", "4", "8")


@dataclass(frozen=True, slots=True)
class Price:
    """List price in USD per hour, without Vertex AI's fee."""

    on_demand: float
    spot: float | None
    region: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class MachineType:
    """Machine type with the properties of its family. None means unknown."""

    name: str
    family: str
    accelerators: Mapping[str, tuple[int, ...]]
    """Supported accelerators: type -> allowed counts."""
    accelerator_required: bool
    """True if acceleratorType and acceleratorCount are required."""
    regions: frozenset[str]
    regions_without_shape: frozenset[str]
    """Regions that offer the accelerator but do not list this machine type."""
    topologies: tuple[str, ...]
    """Allowed values of ``tpuTopology``, which is required."""
    pod_regions: Mapping[str, frozenset[str]]
    """TPU type -> regions with pods of this type."""
    price: Price | None
    source: str
    date: str
    vcpus: int | None = None
    memory_gb: float | None = None
    flex_start: bool = False
    reservation_required: bool = False
    single_replica: bool = False
    """True if a job must have a single pool with one replica (TPUs)."""
    chips: int | None = None
    """TPU chips of one machine."""

    @property
    def tpu(self) -> bool:
        return self.single_replica

    @property
    def choices(self) -> str:
        """Describe the supported accelerators and counts; empty without accelerators."""
        return ", ".join(
            f"{kind} with count {' or '.join(map(str, counts))}"
            for kind, counts in self.accelerators.items()
        )


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A type of GPU or TPU. ``regions`` is empty if the type is unavailable for training."""

    name: str
    regions: frozenset[str]
    price: Price | None
    """Price of one GPU in addition to the machine; None if the machine's price includes GPUs."""
    source: str
    date: str
    memory_gb: int | None = None
    flex_start: bool = False
    vpc_peering: bool = True
    status: str = ""


_Row = TypeVar("_Row", MachineType, Accelerator)


@functools.cache
def machine_types() -> Mapping[str, MachineType]:
    raw = catalog.load("machines.yaml")
    return {
        name: _machine(name, raw["families"][row["family"]] | row)
        for name, row in raw["types"].items()
    }


def machine_type(name: str) -> MachineType | None:
    """Return a machine type; None if training jobs cannot use it."""
    return machine_types().get(name)


def serving_machine_type(name: str) -> MachineType | None:
    """Return a machine type of endpoints; None for an unknown machine type.

    Endpoints also run on machines that are too small for jobs, like ``n1-standard-2``. Their
    properties derive from the smallest machine of the same shape, by number of vCPUs.
    """
    if result := machine_type(name):
        return result
    shape, _, size = name.rpartition("-")
    alike = [
        type_
        for type_ in machine_types().values()
        if type_.name.rpartition("-")[0] == shape and type_.vcpus and not type_.accelerator_required
    ]
    smallest = min(alike, key=lambda candidate: candidate.vcpus or 0, default=None)
    if smallest is None or smallest.vcpus is None or size not in SMALLER_SIZES:
        return None
    share, price = int(size) / smallest.vcpus, smallest.price
    if share > 1:
        return None
    if price:
        spot = None if price.spot is None else price.spot * share
        price = replace(price, on_demand=price.on_demand * share, spot=spot)
    memory = None if smallest.memory_gb is None else smallest.memory_gb * share
    return replace(smallest, name=name, vcpus=int(size), memory_gb=memory, price=price)


@functools.cache
def accelerators() -> Mapping[str, Accelerator]:
    rows = catalog.load("accelerators.yaml")
    return {name: _of_row(Accelerator, name, row) for name, row in rows.items()}


@functools.cache
def regions() -> frozenset[str]:
    """Return the regions that run training jobs."""
    return frozenset(row["region"] for row in catalog.load("regions.yaml"))


def machine_prices(machine: MachineType, region: str) -> list[Price]:
    """Return prices of a machine type, best for ``region`` first."""
    return _best_first(machine.price, _regional_machine_price(machine, region), region)


def accelerator_prices(name: str, region: str) -> list[Price]:
    """Return prices of one GPU without its machine, the best for ``region`` first."""
    accelerator = accelerators().get(name)
    row = catalog.load("regional_prices.yaml")["accelerators"].get(name, {})
    pair = row.get("regions", {}).get(region)
    regional = Price(pair[0], pair[1], region, row["source"], row["date"]) if pair else None
    return _best_first(accelerator.price if accelerator else None, regional, region)


def _best_first(own: Price | None, regional: Price | None, region: str) -> list[Price]:
    """Order prices for a region: ``own`` is newer, but comes second in other regions."""
    ordered = (own, regional) if own and own.region == region else (regional, own)
    return [price for price in ordered if price]


def _regional_machine_price(machine: MachineType, region: str) -> Price | None:
    row = catalog.load("regional_prices.yaml")["machines"].get(machine.family, {})
    units = row.get("regions", {}).get(region)
    if not units:
        return None
    gpus = [count for counts in machine.accelerators.values() for count in counts]
    have = {"vcpus": machine.vcpus, "memory_gb": machine.memory_gb, "gpus": max(gpus, default=0)}
    on_demand, spot = (
        [(prices[which], have[unit]) for unit, prices in units.items()] for which in (0, 1)
    )
    total = _total(on_demand)
    return None if total is None else Price(total, _total(spot), region, row["source"], row["date"])


def _total(parts: list[tuple[float | None, float | None]]) -> float | None:
    known = [price * number for price, number in parts if price is not None and number]
    return round(math.fsum(known), 6) if len(known) == len(parts) else None


def unavailable_reason(name: str) -> str:
    """Return the reason why jobs cannot use a machine type; empty if unknown."""
    refused = catalog.load("machines.yaml")["refused"]
    family = name.split("-")[0]
    row = refused.get(name) or refused.get(family)
    return row["reason"] if row else ""


def bandwidth(name: str) -> int | None:
    """Return the network bandwidth of a machine in Gbps; None if unknown."""
    row = catalog.load("bandwidth.yaml").get(name)
    return row["gbps"] if row else None


def boot_disk_types() -> tuple[str, ...]:
    return tuple(catalog.load("machines.yaml")["disks"]["types"])


def boot_disk_sizes() -> range:
    size = catalog.load("machines.yaml")["disks"]["size_gb"]
    return range(size["min"], size["max"] + 1)


def boot_disk_cost(kind: str, size_gb: int) -> float:
    """Return the maximum USD per month of a boot disk above the default size."""
    dearest = catalog.load("regional_prices.yaml")["disks"]["dearest"]
    default = catalog.load("machines.yaml")["disks"]["size_gb"]["default"]
    return max(0, size_gb - default) * dearest.get(kind, max(dearest.values()))


def fee_share() -> float:
    """Return Vertex AI's fee as a share of the on-demand list price: 0.15.

    Known in us-central1 for n1-standard-4 (source of the row ``fee`` in ``machines.yaml``), and for
    H100 machines on demand and with flex-start (bills of 2025). The fee for SPOT machines is not
    documented.
    """
    return catalog.load("machines.yaml")["fee"]["ratio"] - 1


def _machine(name: str, row: Mapping[str, Any]) -> MachineType:
    return _of_row(
        MachineType,
        name,
        row,
        accelerators={kind: tuple(counts) for kind, counts in row.get("accelerators", {}).items()},
        regions_without_shape=frozenset(row.get("regions_without_shape", ())),
        topologies=tuple(row.get("topologies", ())),
        pod_regions={kind: frozenset(where) for kind, where in row.get("pod_regions", {}).items()},
    )


def _of_row(kind: type[_Row], name: str, row: Mapping[str, Any], **converted: Any) -> _Row:
    """Build a machine type or an accelerator. Columns without a field are notes for readers."""
    columns = {field.name: row[field.name] for field in fields(kind) if field.name in row}
    own = {"name": name, "regions": frozenset(row.get("regions", ()))}
    source = {"price": _price(row.get("price")), "source": "+".join(row["source"])}
    return kind(**columns | own | source | converted)


def _price(row: Any) -> Price | None:
    if not isinstance(row, dict) or "on_demand" not in row:
        return None  # "no price", or a price by accelerator (cloud-tpu)
    source = "+".join(row["source"])
    return Price(row["on_demand"], row.get("spot"), row["region"], source, row["date"])
