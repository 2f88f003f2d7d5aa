"""Write machines, accelerators and regions of ``infra/vertex_training/catalog`` from facts.

    .venv/bin/python -m tools.generate.catalogue FACTS.yaml           show what would change
    .venv/bin/python -m tools.generate.catalogue FACTS.yaml --write   and write it

FACTS.yaml has facts from Google's pages and price lists, collected by hand: ``sources`` (key ->
where and when), ``training_regions``, ``accelerators``, ``families``, ``machine_types`` and
``not_supported``. Each row names its sources by key; an unknown source is an error. To refresh:
correct FACTS.yaml by the pages in ``infra/vertex_training/catalog/sources.yaml``, update their
dates, run this, read the diff, commit. Nothing is fetched from a network.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

TARGET: Final = Path(__file__).parents[2] / "infra/vertex_training/catalog"
DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
NO_PRICE: Final = "no price"


class Facts:
    """The facts, and the dates of their sources."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.dates = {
            key: dates[-1] if (dates := DATE.findall(text)) else "undated"
            for key, text in raw["sources"].items()
        }

    def files(self) -> dict[str, str]:
        """File name -> text."""
        return {
            "sources.yaml": self._sources(),
            "regions.yaml": self._regions(),
            "accelerators.yaml": self._accelerators(),
            "machines.yaml": self._machines(),
        }

    def dated(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """``source`` as a list of keys, and the newest date among them."""
        given = re.sub(r"\s*\(.*?\)", "", row["source"])
        keys = [key.strip() for key in re.split(r"[+;]", given)]
        known = [self.dates[key] for key in keys if key in self.dates]
        if not known and not keys[0].endswith(".py 2.7.0"):
            raise SystemExit(f"unknown source {row['source']!r} in {dict(row)}")
        dates = [date for date in known if date != "undated"]
        return {"source": keys, "date": max(dates) if dates else "undated"}

    def _sources(self) -> str:
        rows = {
            key: {"where": text, "date": self.dates[key]}
            for key, text in self.raw["sources"].items()
        }
        return _file("Where the rows of the other files come from, by the keys they use.", rows)

    def _regions(self) -> str:
        date = self.raw["generated"]
        rows = [
            {"region": region, "source": ["training-regions"], "date": date}
            for region in self.raw["training_regions"]
        ]
        return _file("Regions that run training jobs. `date`: when the list was read.", rows)

    def _accelerators(self) -> str:
        rows = {}
        for name, row in self.raw["accelerators"].items():
            price = row.get("usd_per_gpu_hour")
            rows[name] = _present(
                memory_gb=row.get("gpu_memory_gb"),
                regions=row.get("regions"),
                flex_start=row.get("flex_start"),
                vpc_peering=row.get("vpc_peering_supported"),
                status=row.get("status"),
                default_quota=row.get("default_quota"),
                price=self._price(price) if price else None,
                **self.dated(row),
            )
        head = (
            "Accelerators: regions that offer them for training, and what else is known.\n"
            "`price`: list price of one GPU, to be added to the machine's; none where a machine\n"
            "type has its GPUs in its own price."
        )
        return _file(head, rows)

    def _price(self, row: Mapping[str, Any] | None) -> Any:
        if not row:
            return NO_PRICE
        known = {key: row[key] for key in ("on_demand", "spot") if key in row}
        by_count = {key: value for key, value in row.items() if key.startswith("on_demand_")}
        if not known and not by_count:
            return NO_PRICE
        return {**known, **by_count, "region": row["region"], **self.dated(row)}

    def _machines(self) -> str:
        families = {
            name: _present(
                regions=row.get("regions"),
                regions_without_shape=row.get("regions_without_compute_shape"),
                flex_start=row.get("flex_start"),
                accelerator_required=row["accelerator_required"],
                reservation_required=row.get("reservation_required"),
                single_replica=row.get("single_pool_single_replica"),
                topology_required=row.get("tpu_topology_required"),
                default_boot_disk=row.get("default_boot_disk_type"),
                notes=row.get("notes"),
                **self.dated(row),
            )
            for name, row in self.raw["families"].items()
        }
        types = {row["name"]: self._machine(row) for row in self.raw["machine_types"]}
        refused = {
            row["name"]: {"reason": row["reason"], **self.dated(row)}
            for row in self.raw["not_supported"]
        }
        head = (
            "Machine types of training jobs. `families` holds what is the same for all types of\n"
            "a family. `accelerators`: type -> allowed counts. `price`: USD an hour, Compute\n"
            f"Engine list price with bundled GPUs, without Vertex AI's fee; '{NO_PRICE}' where\n"
            "none was found. `disks`: boot disks. `fee`: what Vertex AI adds."
        )
        content = {"families": families, "types": types, "refused": refused}
        return _file(head, content | self._disks_and_fee())

    def _disks_and_fee(self) -> dict[str, Any]:
        disk, fee = self.raw["boot_disk"], self.raw["vertex_management_fee"]
        return {
            "disks": {"types": disk["types"], "size_gb": disk["size_gb"], **self.dated(disk)},
            "fee": {
                "ratio": fee["ratio_over_compute_list"],
                "basis": fee["basis"],
                "source": ["n1-vertex-price"],
                "date": self.dates["n1-vertex-price"],
            },
        }

    def _machine(self, row: Mapping[str, Any]) -> dict[str, Any]:
        tpu = row.get("tpu") or {}
        accelerators = {item["type"]: item["counts"] for item in row.get("accelerators", [])}
        pods = {
            item["type"]: item["pod_regions"]
            for item in row.get("accelerators", [])
            if "pod_regions" in item
        }
        return _present(
            family=row["family"],
            vcpus=row.get("vcpus"),
            memory_gb=row.get("memory_gb"),
            accelerators=accelerators or None,
            pod_regions=pods or None,
            chips=tpu.get("chips_per_vm"),
            topologies=tpu.get("topologies"),
            regions=row.get("regions"),
            notes=row.get("notes"),
            price=self._price(row.get("usd_per_hour")),
            **self.dated(row),
        )


def _present(**row: Any) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _file(head: str, content: Any) -> str:
    """One row a line, so that a diff shows what changed."""
    origin = "Written by tools/generate/catalogue.py."
    lines = [f"# {line}" for line in [*head.splitlines(), origin]]
    if isinstance(content, list):
        lines += [f"- {_flow(row)}" for row in content]
        return "\n".join(lines) + "\n"
    for key, value in content.items():
        nested = isinstance(value, dict) and all(isinstance(item, dict) for item in value.values())
        if nested:
            lines += [f"{key}:", *(f"  {_flow(name)}: {_flow(row)}" for name, row in value.items())]
        else:
            lines.append(f"{key}: {_flow(value)}")
    return "\n".join(lines) + "\n"


def changes(files: Mapping[str, str]) -> Iterable[str]:
    """A unified diff between ``infra/vertex_training/catalog`` and ``files``."""
    for name, text in files.items():
        path = TARGET / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        yield from difflib.unified_diff(
            before.splitlines(), text.splitlines(), f"old/{name}", f"new/{name}", "", "", 0, ""
        )


def main() -> int:
    """Command line; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description="Refresh infra/vertex_training/catalog from a file of facts."
    )
    parser.add_argument("facts", type=Path)
    parser.add_argument("--write", action="store_true", help="write the files")
    options = parser.parse_args()
    files = Facts(yaml.safe_load(options.facts.read_text(encoding="utf-8"))).files()
    print("\n".join(changes(files)) or "nothing changes")
    if options.write:
        for name, text in files.items():
            (TARGET / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
