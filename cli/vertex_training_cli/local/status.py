"""``vt local status``: prints the state of the local cloud."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

import typer
from rich.console import Console

from localgcp import alerting, lifecycle
from localgcp.faults.table import FaultTable
from localgcp.home import Home
from localgcp.inventory.machines import all_reservations
from localgcp.inventory.store import ALERT_POLICY, BUDGET, ENDPOINT, Store
from localgcp.runner.allotment import GpuShortage
from localgcp.runner.executors import read_wait, takes_nearest
from localgcp.system import processes
from localgcp.vertex.records import JobTable
from vertex_training_cli.console import console, table
from vertex_training_cli.local import results
from vertex_training_cli.local.commands import private_files

LAST: Final = 5


def status() -> None:
    """Show the server, its ports, resources and jobs.

    Exit code: 1 if the server does not run.
    """
    with private_files():
        raise typer.Exit(0 if show(Home.find()) else 1)


def show(home: Home) -> bool:
    """Print the local cloud's state. Return True if its server runs and responds."""
    out = console()
    info = lifecycle.running(home)
    up = info is not None and lifecycle.healthy(info)
    if info and up:
        out.print(f"server: running (process {info.pid}, since {info.started})")
        out.print(f"vertex: 127.0.0.1:{info.vertex_port}")
        out.print(f"storage: http://127.0.0.1:{info.storage_port}")
        registry = f"127.0.0.1:{info.registry_port}" if info.registry_port else "not installed"
        out.print(f"registry: {registry}")
    else:
        out.print("server: " + ("not responding; run `vt local start`" if info else "not running"))
        for child in processes.live_children(home.children):
            out.print(
                f"process {child.pid} of a killed run ({child.role}): `vt local down` ends it"
            )
    out.print(f"files: {home.root}")
    if takes_nearest(home):
        nearest = "the nearest version is used (set by --prebuilt nearest)"
        out.print(f"prebuilt images that are not installed: {nearest}")
    if (shortage := GpuShortage.of(home)) is not GpuShortage.AUTO:
        action = "wait" if shortage is GpuShortage.WAIT else "run on CPUs"
        out.print(f"jobs without enough free GPUs {action} (set by --gpus {shortage})")
    if active := sum(not entry.spent for entry in FaultTable(home.faults).entries()):
        out.print(f"faults: {active} active (`vt local fault list` shows them)")
    if not home.database.exists():
        return up
    counts = Counter(resource.type for resource in Store(home.database).list())
    rows = [(type_, str(count)) for type_, count in sorted(counts.items())]
    out.print(table("RESOURCES", "COUNT", rows=rows))
    _show_reservations(home, out)
    _show_endpoints(home, out)
    _show_notifications(home, out)
    _show_jobs(home, out)
    return up


def _show_jobs(home: Home, out: Console) -> None:
    records = results.JobRecords(home)
    rows = [
        (
            job.display_name,
            results.noun(job),
            job.state.word,
            records.progress(job),
            job.create_time[:19],
            results.why(job) or read_wait(home, job.job_id),
            job.job_id,
        )
        for job in records.list()
    ]
    if rows:
        out.print(table("JOB", "KIND", "STATE", "DONE", "CREATED", "WHY", "ID", rows=rows))


def _show_endpoints(home: Home, out: Console) -> None:
    rows: list[tuple[str, ...]] = []
    for endpoint in Store(home.database).list(ENDPOINT):
        split = json.loads(endpoint.outputs.get("trafficSplit") or "{}")
        deployed = [
            f"{model['id']} (version {model.get('modelVersionId', '?')}): "
            f"{split.get(model['id'], 0)} %"
            for model in endpoint.outputs.get("deployedModels") or []
        ]
        id_, title = endpoint.id.rpartition("/")[2], str(endpoint.outputs.get("displayName", ""))
        rows.append((title, id_, "\n".join(deployed) or "nothing"))
    if rows:
        out.print(table("ENDPOINT", "ID", "DEPLOYED", rows=rows))


def _show_notifications(home: Home, out: Console) -> None:
    store, messages = Store(home.database), alerting.read_notifications(home.notifications)
    if messages:
        out.print(f"notifications: {len(messages)} in {home.notifications} ({alerting.STAND_IN})")
        rows = [
            (f"{n.time:%Y-%m-%d %H:%M:%S}", n.title, n.channel, n.labels.get("job_id", ""))
            for n in messages[-LAST:]
        ]
        out.print(table("TIME", "ALERT", "CHANNEL", "JOB", rows=rows))
    _, others = alerting.read_alerts([*store.list(ALERT_POLICY), *store.list(BUDGET)])
    for title, reason in others.items():
        out.print(f"alert not evaluated locally: {title} ({reason})", markup=False)


def _show_reservations(home: Home, out: Console) -> None:
    store, jobs = Store(home.database), JobTable(home.database)
    rows = [
        (
            reservation.path,
            str(reservation.shape),
            f"{jobs.used(reservation.path)}/{reservation.count}",
        )
        for reservation in all_reservations(store)
    ]
    if rows:
        out.print(table("RESERVATION", "MACHINE", "USED", rows=rows))
