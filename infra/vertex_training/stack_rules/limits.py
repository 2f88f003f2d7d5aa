"""The limits of a stack as a whole, and of its members.

``customjob.rules.stack.limits`` has those of single jobs.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping

from vertex_training import naming
from vertex_training.catalog import costs, machines
from vertex_training.customjob.request.job_file import JobFileResult
from vertex_training.errors import Path, Problem, did_you_mean
from vertex_training.plan import stack_grants
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
    for path, members in stack_grants.member_lists(settings):
        for index, member in enumerate(members):
            if not naming.is_of_domains(member, domains):
                what = "a member of another domain"
                yield Problem(what, member, hint, (*path, index), rule="limit-member-domain")


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
    everything = {key: cost for key, (_, cost) in costs_of.items()}
    most = settings.limits.max_usd_per_environment
    found = [*_region(settings)]
    found += _total(everything, most, "all jobs", ("limits", "maxUsdPerEnvironment"))
    for name, team in settings.teams.items():
        of_team = {
            key: cost
            for key, (request, cost) in costs_of.items()
            if settings.team_at(request.account) == name
        }
        path = ("teams", name, "limits", "maxUsdPerTeam")
        found += _total(of_team, team.limits.max_usd_per_team, f"all jobs of team {name}", path)
    return found


def _region(settings: Settings) -> Iterator[Problem]:
    allowed = settings.limits.regions
    if allowed is not None and settings.region not in allowed:
        hint = f"limits.regions allows {', '.join(allowed)}"
        what = "the limits do not allow this region"
        yield Problem(what, settings.region, hint, ("region",), rule="limit-region")


def _total(
    jobs: Mapping[str, costs.JobCost], most: float | None, whose: str, path: Path
) -> Iterator[Problem]:
    """Jobs, by name, that together cost more than ``most``."""
    known = {key: cost.worst_case or 0.0 for key, cost in jobs.items()}
    total = math.fsum(known.values())
    if most is None or total <= most:
        return
    dearest = sorted(known, key=lambda key: -known[key])[:3]
    examples = ", ".join(f"{key} {costs.usd(known[key])}" for key in dearest)
    what = f"{whose} together may cost {costs.usd(total)}, the limit is {costs.usd(most)}"
    if foreign := [key for key, cost in jobs.items() if cost.elsewhere]:
        what += f"; prices of the region of {', '.join(foreign)} are unknown, another's were taken"
    hint = f"shorten timeouts, use fewer machines, or raise the limit; the dearest: {examples}"
    yield Problem(what, "", hint, path, rule="limit-environment-cost")
