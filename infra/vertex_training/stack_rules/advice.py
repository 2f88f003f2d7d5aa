"""Warnings about settings that are valid and probably not meant. Pure."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

from vertex_training.catalog import machines
from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import Path, Problem
from vertex_training.naming import MOST_LABELS
from vertex_training.plan.reservations import ReservationPlan
from vertex_training.settings.model import Settings
from vertex_training.stack_rules import extra_grants, retention, serving, teams
from vertex_training.stack_rules.names import MOST_OWN_LABELS

#: The shortest prefix in Google's table of jobs by range: training/using-private-ip.
SMALLEST_IN_TABLE: Final = 18


def warnings(
    settings: Settings,
    plans: Mapping[str, ReservationPlan],
    requests: Mapping[str, JobRequest],
) -> list[Problem]:
    """All of them. ``plans`` are the stack's reservations."""
    found = [
        *_network(settings),
        *_reservations(plans, requests),
        *_labels(settings, requests),
        *retention.warnings(settings),
        *extra_grants.warnings(settings),
        *teams.warnings(settings, requests),
        *serving.warnings(settings),
        *_region(settings),
    ]
    return [dataclasses.replace(problem, level="warning") for problem in found]


def _region(settings: Settings) -> Iterator[Problem]:
    if settings.region not in machines.regions():
        what = "runs no training jobs, as far as this release knows"
        yield Problem(what, settings.region, "`vt catalogue` lists regions", ("region",))


def _public(path: Path, block: str) -> Iterator[Problem]:
    """Addresses that belong to somebody on the internet: https://docs.cloud.google.com/vpc/docs/subnets#valid-ranges"""
    if ipaddress.IPv4Network(block, strict=False).is_global:
        what = "are public addresses: machines here no longer reach their owner on the internet"
        yield Problem(what, block, "private ones, such as 10.20.0.0/26", path)


def _network(settings: Settings) -> Iterator[Problem]:
    network = settings.network
    if (subnet := network.subnet) and subnet.range and not subnet.existing:
        yield from _public(("network", "subnet", "range"), subnet.range)
    for key, wanted in network.ranges.items():
        if wanted.address and wanted.prefix_length and not wanted.existing:
            block = f"{wanted.address}/{wanted.prefix_length}"
            yield from _public(("network", "ranges", key, "address"), block)
    if network.nat:
        # training/psc-i-egress; peered jobs run in Google's network, which this NAT does not serve
        what = "does not serve jobs: they reach the internet by Google's own gateways"
        hint = "with psc and a VPC Service Controls perimeter it does; else it is for your machines"
        yield Problem(what, "", hint, ("network", "nat"))
    for key, wanted in network.ranges.items():
        if wanted.prefix_length and wanted.prefix_length > SMALLEST_IN_TABLE:
            what = "is smaller than any range in Google's table of parallel jobs"
            yield Problem(
                what,
                str(wanted.prefix_length),
                "16 to 18",
                ("network", "ranges", key, "prefixLength"),
            )


def _reservations(
    plans: Mapping[str, ReservationPlan],
    requests: Mapping[str, JobRequest],
) -> Iterator[Problem]:
    used = {name for request in requests.values() for name in request.used}
    bodies = [rung.body for request in requests.values() for rung in request.rungs]
    for key, plan in plans.items():
        path, given = ("reservations", key), plan.settings
        named = {f"reservations.{key}", f"reservations.{key}.name"} & used
        if not named and not any(plan.path in body for body in bodies) and not given.existing:
            what = "no job of this stack names it, and it is paid for all the same"
            yield Problem(
                what, "", f"reservationAffinity: ${{reservations.{key}}} in a job file", path
            )


def _labels(settings: Settings, requests: Mapping[str, JobRequest]) -> Iterator[Problem]:
    """A job has the labels of its file, of the stack and of its team, and those of the program.

    Each alone is judged by a rule of its own.
    """
    given = max(map(len, settings.labels_by_team.values()))
    for key, request in requests.items():
        own = request.message.get("labels", {})
        if len(own) + given <= MOST_OWN_LABELS:
            continue  # whoever it belongs to
        count = len({*own, *settings.labels_of(settings.team_at(request.account))})
        if len(own) <= MOST_OWN_LABELS < count:
            what = "its labels with those of the stack and of its team are too many"
            hint = f"at most {MOST_OWN_LABELS}: a job has {MOST_LABELS}, some are the program's"
            yield Problem(what, str(count), hint, (request.kind.section, key))
