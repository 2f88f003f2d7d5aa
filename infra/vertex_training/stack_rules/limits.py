"""The limits of a stack as a whole, and of its members.

``customjob.rules.stack.limits`` has those of single jobs.
"""

from __future__ import annotations

import datetime
import fnmatch
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from vertex_training import naming
from vertex_training.catalog import costs, machines
from vertex_training.customjob.request.job_file import JobFileResult
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan import stack_grants
from vertex_training.plan.reservations import monthly, plan_reservations
from vertex_training.settings.model import Settings


def problems(settings: Settings) -> Iterator[Problem]:
    """Limits that would limit nothing: of what does not exist, or above another one."""
    limits = settings.limits
    for index, region in enumerate(limits.regions or ()):
        if region not in machines.regions():
            hint = did_you_mean(region, machines.regions())
            yield Problem("no region for training", region, hint, ("limits", "regions", index))
    yield from _members(settings)
    known = machines.machine_types() if limits.machine_types else ()
    for index, pattern in enumerate(limits.machine_types or ()):
        if not fnmatch.filter(known, pattern):
            what = "no machine type for training is called that"
            path = ("limits", "machineTypes", index)
            yield Problem(what, pattern, did_you_mean(pattern, known), path)
    yield from _order(limits.max_usd_per_job, limits.max_usd_per_environment, ("limits",))
    for name, team in settings.teams.items():
        path = ("teams", name, "limits")
        yield from _order(team.limits.max_usd_per_job, team.limits.max_usd_per_team, path)


def _order(job: float | None, all_jobs: float | None, path: Path) -> Iterator[Problem]:
    """One job may cost no more than all of them: the higher limit would limit nothing."""
    if job is not None and all_jobs is not None and job > all_jobs:
        what = f"is more than all jobs together may cost: {costs.usd(all_jobs)}"
        yield Problem(what, costs.usd(job), "as much, or less", (*path, "maxUsdPerJob"))


def _members(settings: Settings) -> Iterator[Problem]:
    """Members of domains that the limits do not name."""
    if settings.limits.member_domains is None:
        return
    domains = naming.own_domains(
        settings.project, settings.project_number, settings.limits.member_domains
    )
    hint = f"limits.memberDomains allows {', '.join(settings.limits.member_domains)}"
    named: list[tuple[Path, str]] = [
        ((*path, index), member)
        for path, members in stack_grants.member_lists(settings)
        for index, member in enumerate(members)
    ]
    # Whoever owns the project of an account acts as it, and reaches what it is given.
    named += [
        (("serviceAccounts", key, "existing"), account.existing)
        for key, account in settings.service_accounts.items()
        if account.existing
    ]
    for path, member in named:
        is_account = path[-1] == "existing"
        if not naming.is_of_domains(f"serviceAccount:{member}" if is_account else member, domains):
            what = "a member of another domain"
            yield Problem(what, member, hint, path, rule="limit-member-domain")


def exceeded(settings: Settings, results: Mapping[str, JobFileResult]) -> list[Problem]:
    """What is over the limits in the stack as a whole.

    A job that is wrong by itself does not count towards the total: it is reported already.
    """
    costs_of = {
        key: (result.request, cost)
        for key, result in results.items()
        if result.request
        and (cost := costs.of_job(result.request.message, settings.region)).worst_case
    }
    bills = {
        key: _Bill(cost.worst_case, bool(cost.elsewhere)) for key, (_, cost) in costs_of.items()
    }
    found = [*_region(settings)]
    if (most := settings.limits.max_usd_per_environment) is not None:
        kept = dict(_reservations(settings))
        if not settings.limits.allow_unpriced:
            found += [_unpriced(key) for key, bill in kept.items() if bill.usd is None]
        kept = {f"reservation {key} (a month)": bill for key, bill in kept.items()}
        whose = "all jobs and reservations" if kept else "all jobs"
        found += _total(bills | kept, most, whose, ("limits", "maxUsdPerEnvironment"))
    for name, team in settings.teams.items():
        of_team = {
            key: bills[key]
            for key, (request, _) in costs_of.items()
            if settings.team_at(request.account) == name
        }
        path = ("teams", name, "limits", "maxUsdPerTeam")
        found += _total(of_team, team.limits.max_usd_per_team, f"all jobs of team {name}", path)
    return found


class _Bill(NamedTuple):
    """What a job or a reservation can cost; ``usd`` is None without a price."""

    usd: float | None
    elsewhere: bool
    """Whether the price is another region's."""


def _reservations(settings: Settings) -> Iterator[tuple[str, _Bill]]:
    """A month of each that the stack makes: it is paid for whether or not a job uses it."""
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, plan in plan_reservations(settings).items():
        if not plan.settings.existing:
            rate = plan.rate(settings.region)
            elsewhere = rate is not None and not rate.exact
            yield key, _Bill(monthly(plan, settings.region, now), elsewhere)


def _unpriced(key: str) -> Problem:
    what = "has no price, and cannot be held to limits.maxUsdPerEnvironment"
    hint = "limits.allowUnpriced: true lets it count as 0"
    return Problem(what, "", hint, ("reservations", key), rule="limit-price-unknown")


def _region(settings: Settings) -> Iterator[Problem]:
    allowed = settings.limits.regions
    if allowed is not None and settings.region not in allowed:
        hint = f"limits.regions allows {', '.join(allowed)}"
        what = "the limits do not allow this region"
        yield Problem(what, settings.region, hint, ("region",), rule="limit-region")


def _total(
    bills: Mapping[str, _Bill], most: float | None, whose: str, path: Path
) -> Iterator[Problem]:
    """Jobs and reservations, by name, that together cost more than ``most``."""
    known = {key: bill.usd or 0.0 for key, bill in bills.items()}
    total = math.fsum(known.values())
    if most is None or total <= most:
        return
    dearest = sorted(known, key=lambda key: -known[key])[:3]
    examples = ", ".join(f"{key} {costs.usd(known[key])}" for key in dearest)
    what = f"{whose} together may cost {costs.usd(total)}, the limit is {costs.usd(most)}"
    if foreign := [key for key, bill in bills.items() if bill.elsewhere]:
        what += f"; prices of the region of {', '.join(foreign)} are unknown, another's were taken"
    hint = f"shorten timeouts, use fewer machines, or raise the limit; the dearest: {examples}"
    yield Problem(what, "", hint, path, rule="limit-environment-cost")
