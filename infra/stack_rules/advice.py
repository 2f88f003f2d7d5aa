"""What stands in a stack file, is no mistake, and would still surprise its owner. Pure.

Warnings about networks and reservations, each with its place; ``network_rules`` and
``reservation_rules`` have what cannot be.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.customjob.request.job_file import JobRequest
from infra.errors import Problem, Row
from infra.plan import reservations as reservation_plan
from infra.settings import locations as stack_places
from infra.settings.model import Settings

#: The shortest prefix in Google's table of jobs by range: training/using-private-ip.
SMALLEST_IN_TABLE = 18


def warnings(
    settings: Settings, requests: Mapping[str, JobRequest], root: Path, now: datetime.datetime
) -> list[Problem]:
    """All of them, at their places in the stack file below ``root``."""
    file = f"Pulumi.{settings.stack}.yaml"
    rows = [*_network(settings), *_reservations(settings, requests, now)]
    found = [
        Problem(f"{file}: vertex-training:{path}", what, got, hint, level="warning")
        for path, what, got, hint in rows
    ]
    return stack_places.locate(found, root)


def _network(settings: Settings) -> Iterator[Row]:
    network = settings.network
    if network.nat:
        # training/psc-i-egress; peered jobs run in Google's network, which this NAT does not serve
        what = "does not serve jobs: they reach the internet by Google's own gateways"
        hint = "with psc and a VPC Service Controls perimeter it does; else it is for your machines"
        yield "network.nat", what, "", hint
    for key, wanted in network.ranges.items():
        if wanted.prefix_length and wanted.prefix_length > SMALLEST_IN_TABLE:
            what = "is smaller than any range in Google's table of parallel jobs"
            yield f"network.ranges.{key}.prefixLength", what, str(wanted.prefix_length), "16 to 18"


def _reservations(
    settings: Settings, requests: Mapping[str, JobRequest], now: datetime.datetime
) -> Iterator[Row]:
    used = {name for request in requests.values() for name in request.used}
    bodies = [request.body for request in requests.values()]
    for key, plan in reservation_plan.plans(settings).items():
        path, given = f"reservations.{key}", plan.settings
        named = {f"reservations.{key}", f"reservations.{key}.name"} & used
        if not named and not any(plan.path in body for body in bodies) and not given.existing:
            what = "no job of this stack names it, and it is paid for all the same"
            yield path, what, "", f"reservationAffinity: ${{reservations.{key}}} in a job file"
        if given.delete_at_time and given.delete_at_time <= now:
            what = "has passed: Google has deleted the reservation, and would refuse it anew"
            yield f"{path}.deleteAtTime", what, given.delete_at_time.isoformat(), "remove it"
