"""Endpoints on TPUs: which machines there are, where, and what is not known of them. Pure.

Source: predictions/use-tpu and general/locations#accelerators (``catalog/serving_tpus.yaml``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vertex_training import catalog
from vertex_training.catalog import machines
from vertex_training.errors import Path, Problem
from vertex_training.settings.serving import Endpoint


def problems(endpoint: Endpoint, region: str, path: Path) -> Iterator[Problem]:
    """What endpoints cannot have."""
    name, given = endpoint.machine, endpoint.accelerator
    if any(name.startswith(each) for each in _facts()["refused"]["prefixes"]):
        hint = f"machines with TPUs: {', '.join(_machines())}"
        what = "endpoints do not run on TPUs of this generation"
        yield Problem(what, name, hint, (*path, "machine"))
        return
    row = _row(name)
    if row is None:
        return
    if region not in (*row["regions"], *row.get("allowlist", ())):
        hint = f"regions: {', '.join(row['regions'])}"
        what = f"endpoints have no machines like this in {region}"
        yield Problem(what, name, hint, (*path, "machine"))
    if given is not None and not given.type.startswith("TPU_"):
        what = f"{name} has TPUs built in, and nothing else"
        yield Problem(what, given.type, "remove it", (*path, "accelerator", "type"))


def warnings(endpoint: Endpoint, region: str, path: Path) -> Iterator[Problem]:
    """What the service ignores, and what no source tells."""
    name, given, replicas = endpoint.machine, endpoint.accelerator, endpoint.replicas
    row = _row(name)
    if row is None:
        return
    if region in row.get("allowlist", ()):
        what = f"endpoints have it in {region} for projects on Google's allowlist alone"
        hint = f"ask Google, or regions: {', '.join(row['regions'])}"
        yield Problem(what, name, hint, (*path, "machine"))
    if given is not None and given.type.startswith("TPU_"):
        what = f"{name} has its TPUs built in: whether the service takes a type is not known"
        yield Problem(what, given.type, "remove it", (*path, "accelerator"))
    if replicas.most > replicas.min:
        what = "is ignored: endpoints on TPUs always have the least replicas"
        hint = f"set min to what you need, or remove max: there will be {replicas.min}"
        yield Problem(what, str(replicas.most), hint, (*path, "replicas", "max"))


def _facts() -> dict[str, Any]:
    return catalog.load("serving_tpus.yaml")


def _row(name: str) -> dict[str, Any] | None:
    """What is known of a machine of endpoints, if it has TPUs."""
    machine = machines.machine_type(name)
    return _facts()["families"].get(machine.family) if machine else None


def _machines() -> list[str]:
    known = machines.machine_types()
    return [name for name, each in known.items() if each.family in _facts()["families"]]
