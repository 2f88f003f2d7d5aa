"""The catalogue as rows: one for each machine type and accelerator it may carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vertex_training.catalog import machines
from vertex_training.catalog.machines import MachineType, Price
from vertex_training.errors import UnknownNameError, did_you_mean


@dataclass(frozen=True, slots=True)
class Row:
    """A machine type with one accelerator, or with none."""

    machine: MachineType
    accelerator: str
    counts: tuple[int, ...]

    def price(self, region: str = "") -> Price | None:
        """Price of the machine, of ``region`` where a source has it."""
        return next(iter(machines.machine_prices(self.machine, region)), None)

    def gpu_price(self, region: str = "") -> Price | None:
        """Price of one GPU where the machine's price does not include it."""
        return next(iter(machines.accelerator_prices(self.accelerator, region)), None)

    @property
    def regions(self) -> frozenset[str]:
        """Regions that have both the machine type and the accelerator."""
        found = machines.accelerators().get(self.accelerator)
        regions = self.machine.regions - self.machine.regions_without_shape
        return regions & found.regions if found and found.regions else regions


def select(accelerator: str = "", region: str = "") -> list[Row]:
    """Rows of an accelerator (its name or a part of it, like ``H100``) in a region.

    Raises:
        UnknownNameError: the catalogue has no such thing.
    """
    names = sorted({row.accelerator for row in _all() if row.accelerator})
    wanted = {name for name in names if _matches(name, accelerator)}
    if accelerator and not wanted:
        raise UnknownNameError(
            f"no accelerator {accelerator!r}; {did_you_mean(accelerator, names)}"
        )
    if region and region not in machines.regions():
        known = machines.regions()
        raise UnknownNameError(f"no training region {region!r}; {did_you_mean(region, known)}")
    rows = [
        row
        for row in _all()
        if (not accelerator or row.accelerator in wanted) and (not region or region in row.regions)
    ]
    return sorted(rows, key=_order)


def as_dict(row: Row, region: str = "") -> dict[str, Any]:
    """A row for programs. Prices are USD an hour; null means that no source has one.

    They are those of ``region`` where a source has it."""
    return {
        "machineType": row.machine.name,
        "vcpus": row.machine.vcpus,
        "memoryGb": row.machine.memory_gb,
        "acceleratorType": row.accelerator or None,
        "acceleratorCounts": list(row.counts),
        "acceleratorRequired": row.machine.accelerator_required,
        "tpuTopologies": list(row.machine.topologies),
        "regions": sorted(row.regions),
        "flexStart": row.machine.flex_start,
        "reservationRequired": row.machine.reservation_required,
        "price": _price(row.price(region)),
        "pricePerGpu": _price(row.gpu_price(region)),
        "source": row.machine.source,
        "date": row.machine.date,
    }


def _price(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    return {
        "onDemand": price.on_demand,
        "spot": price.spot,
        "region": price.region,
        "source": price.source,
        "date": price.date,
    }


def _all() -> Iterator[Row]:
    for machine in machines.machine_types().values():
        if not machine.accelerator_required and not machine.tpu:
            yield Row(machine, "", ())
        for name, counts in machine.accelerators.items():
            yield Row(machine, name, counts)
        if machine.tpu and not machine.accelerators:
            yield Row(machine, "", ())


def _matches(name: str, wanted: str) -> bool:
    """Whether ``wanted`` is the name or some of its words: H100 is in NVIDIA_H100_80GB."""
    asked = wanted.upper().replace("-", "_").strip("_")
    return f"_{asked}_" in f"_{name}_"


def _order(row: Row) -> tuple[str, int, str, str]:
    return row.machine.family, row.machine.vcpus or 0, row.machine.name, row.accelerator
