"""``vt catalogue``: lists machine types. Exit code: 0 done, 2 unknown accelerator or region."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from vertex_training.catalog import machines
from vertex_training.catalog.machines import MachineType, Price
from vertex_training.errors import UnknownNameError, did_you_mean
from vertex_training_cli.options import Format

#: Number of columns of the output without a terminal, so that no cell of the table is cut.
WIDTH_OF_FILES: Final = 180
PRICES: Final = (
    "List prices in USD per hour, without Vertex AI's fee, boot disk and network. Add the value "
    "of 'per GPU' for each GPU of the machine."
)
#: Minimum terminal width of the table. A narrower terminal shows lines of text instead.
WIDTH_OF_TABLE: Final = 110


def catalogue(
    accelerator: Annotated[
        str,
        typer.Option(
            "--accelerator", "-a", help="Accelerator or a part of its name: L4, H100, A100."
        ),
    ] = "",
    region: Annotated[
        str, typer.Option("--region", "-r", help="List only machine types of this region.")
    ] = "",
    format_: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.TEXT,
) -> None:
    """List machine types for training jobs, with accelerators, regions and dated list prices.

    Example: `vt catalogue --region europe-west4 --accelerator L4`.
    """
    options = select(accelerator, region)
    if format_ is Format.JSON:
        print(json.dumps([as_dict(row, region) for row in options], indent=2))
    else:
        _table(options, region)


def _table(options: list[MachineOption], region: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES, highlight=False)
    if console.width < WIDTH_OF_TABLE:
        for row in options:
            console.print(_as_text(row, region), markup=False)
        console.print(PRICES)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("machine type", no_wrap=True)
    table.add_column("accelerator", no_wrap=True)
    table.add_column("count or topology")
    for heading in ("vCPU", "GB", "USD/h", "spot", "per GPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("region of price")
    table.add_column("regions" if not region else "also in")
    for row in options:
        table.add_row(*_cells(row, region))
    console.print(table)
    console.print(PRICES)


def _as_text(row: MachineOption, region: str) -> str:
    name, accelerator, counts, vcpus, memory, price, spot, per_gpu, of, regions = _cells(
        row, region
    )
    parts = [f"{accelerator} ({counts})"] if accelerator != "-" else []
    parts += [counts] if accelerator == "-" != counts else []
    parts += [f"{vcpus} vCPU"] * (vcpus != "-") + [f"{memory} GB"] * (memory != "-")
    lines = [f"{name}: {', '.join(parts)}"]
    if of == "-":
        lines.append(f"  {price}")
    else:
        more = [f"spot {spot}"] * (spot != "-") + [f"{per_gpu} per GPU"] * (per_gpu != "-")
        lines.append(f"  {price} USD/h{''.join(f', {value}' for value in more)} ({of})")
    lines.append(f"  {'also ' * bool(region)}in {regions or 'no other region'}")
    return "\n".join(lines)


def _cells(row: MachineOption, region: str) -> list[str]:
    machine, price = row.machine, row.price(region)
    counts = ", ".join(map(str, row.counts)) or ", ".join(machine.topologies)
    return [
        machine.name,
        row.accelerator or "-",
        counts or "-",
        "-" if machine.vcpus is None else f"{machine.vcpus:g}",
        "-" if machine.memory_gb is None else f"{machine.memory_gb:g}",
        _money(price, "no price"),
        "-" if price is None or price.spot is None else f"{price.spot:.2f}",
        _money(row.gpu_price(region)),
        f"{price.region}, {price.date}" if price else "-",
        _regions(row.regions - {region}),
    ]


def _money(price: Price | None, missing: str = "-") -> str:
    return f"{price.on_demand:.2f}" if price else missing


def _regions(regions: frozenset[str]) -> str:
    return ", ".join(sorted(regions)) if len(regions) <= 3 else f"{len(regions)} regions"


@dataclass(frozen=True, slots=True)
class MachineOption:
    """A machine type, alone or with one type of accelerator."""

    machine: MachineType
    accelerator: str
    counts: tuple[int, ...]

    def price(self, region: str) -> Price | None:
        """Return the machine's price, in ``region`` if a source lists the price in this region."""
        return next(iter(machines.machine_prices(self.machine, region)), None)

    def gpu_price(self, region: str) -> Price | None:
        """Return the price of one GPU; None if the machine's price includes the GPUs."""
        return next(iter(machines.accelerator_prices(self.accelerator, region)), None)

    @property
    def regions(self) -> frozenset[str]:
        """Return the regions that have both the machine type and the accelerator."""
        offered = machines.accelerators().get(self.accelerator)
        regions = self.machine.regions - self.machine.regions_without_shape
        return regions & offered.regions if offered and offered.regions else regions


def select(accelerator: str = "", region: str = "") -> list[MachineOption]:
    """Return machine types with an accelerator (a name or its part, like ``H100``) in a region."""
    names = sorted({row.accelerator for row in _all() if row.accelerator})
    part = accelerator.upper().replace("-", "_").strip("_")
    matches = {name for name in names if f"_{part}_" in f"_{name}_"}
    if accelerator and not matches:
        raise UnknownNameError(
            f"unknown accelerator {accelerator!r}; {did_you_mean(accelerator, names)}"
        )
    if region and region not in machines.regions():
        known = machines.regions()
        raise UnknownNameError(f"no region {region!r} with training; {did_you_mean(region, known)}")
    rows = [
        row
        for row in _all()
        if (not accelerator or row.accelerator in matches) and (not region or region in row.regions)
    ]
    return sorted(rows, key=_order)


def as_dict(row: MachineOption, region: str = "") -> dict[str, Any]:
    """Return a row as JSON. Prices are in USD per hour, null if no source lists a price."""
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


def _all() -> Iterator[MachineOption]:
    for machine in machines.machine_types().values():
        if not machine.accelerator_required and not machine.tpu:
            yield MachineOption(machine, "", ())
        for name, counts in machine.accelerators.items():
            yield MachineOption(machine, name, counts)
        if machine.tpu and not machine.accelerators:
            yield MachineOption(machine, "", ())


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


def _order(row: MachineOption) -> tuple[str, int, str, str]:
    return row.machine.family, row.machine.vcpus or 0, row.machine.name, row.accelerator
