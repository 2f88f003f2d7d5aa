"""The command line of ``vt catalogue``. Exit code: 0 done, 2 no such accelerator or region."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Final

import typer

from vertex_training.catalog.machines import Price
from vertex_training_cli.catalogue import rows
from vertex_training_cli.catalogue.rows import Row
from vertex_training_cli.options import Format

#: Columns of a table that is not written to a terminal: wide enough that nothing is cut.
WIDTH_OF_FILES: Final = 180


PRICES: Final = (
    "List prices in USD an hour without Vertex AI's fee, boot disk and network; 'per GPU' is "
    "added to the machine's price, where it stands."
)
#: Columns that the table needs: in a narrower terminal a machine type has lines of its own.
WIDTH_OF_TABLE: Final = 110


def catalogue(
    accelerator: Annotated[
        str, typer.Option("--accelerator", "-a", help="A type or a part of it: L4, H100, A100.")
    ] = "",
    region: Annotated[str, typer.Option("--region", "-r", help="Only what this region has.")] = "",
    format_: Annotated[
        Format, typer.Option("--format", "-f", help="How the catalogue is written.")
    ] = Format.TEXT,
) -> None:
    """Machine types for training jobs: accelerators, regions and list prices, with their dates."""
    found = rows.select(accelerator, region)
    if format_ is Format.JSON:
        print(json.dumps([rows.as_dict(row, region) for row in found], indent=2))
    else:
        _table(found, region)


def _table(found: list[Row], region: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES, highlight=False)
    if console.width < WIDTH_OF_TABLE:
        for row in found:
            console.print(_as_text(row, region), markup=False)
        console.print(PRICES)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("machine type", no_wrap=True)
    table.add_column("accelerator", no_wrap=True)
    table.add_column("count or topology")
    for heading in ("vCPU", "GB", "USD/h", "spot", "per GPU"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("price of")
    table.add_column("regions" if not region else "also in")
    for row in found:
        table.add_row(*_cells(row, region))
    console.print(table)
    console.print(PRICES, soft_wrap=not sys.stdout.isatty())


def _as_text(row: Row, region: str) -> str:
    """What the table says of a machine type, in lines that may be folded anywhere."""
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
        lines.append(f"  {price} USD/h{''.join(f', {each}' for each in more)} ({of})")
    lines.append(f"  {'also ' * bool(region)}in {regions or 'no other region'}")
    return "\n".join(lines)


def _cells(row: Row, region: str) -> list[str]:
    machine, price = row.machine, row.price(region)
    counts = ", ".join(map(str, row.counts)) or ", ".join(machine.topologies)
    return [
        machine.name,
        row.accelerator or "-",
        counts or "-",
        _number(machine.vcpus),
        _number(machine.memory_gb),
        _money(price, "no price"),
        "-" if price is None or price.spot is None else f"{price.spot:.2f}",
        _money(row.gpu_price(region)),
        f"{price.region}, {price.date}" if price else "-",
        _regions(row.regions - {region}),
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"


def _money(price: Price | None, missing: str = "-") -> str:
    return f"{price.on_demand:.2f}" if price else missing


def _regions(regions: frozenset[str]) -> str:
    return ", ".join(sorted(regions)) if len(regions) <= 3 else f"{len(regions)} regions"
