"""Rules about ``limits`` of a stack, and about ``jobDefaults``, ``rules`` and ladders of jobs.

Rules of single jobs are in ``customjob.rules.stack``.
"""

from __future__ import annotations

import datetime
import fnmatch
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vertex_training import naming
from vertex_training.catalog import costs, machines
from vertex_training.catalog.costs import EndpointCost
from vertex_training.customjob import rules
from vertex_training.customjob.request import job_file as requests
from vertex_training.customjob.request.job_file import JobFileResult, JobRequest
from vertex_training.customjob.request.message import resolve_references
from vertex_training.customjob.rules.capacity import RESERVATION
from vertex_training.errors import Path, Problem, UnknownReferenceError, did_you_mean
from vertex_training.plan import grants
from vertex_training.plan.network import affinity_to, monthly, plan_reservations
from vertex_training.settings.limits import Limits, Rung, TeamLimits
from vertex_training.settings.model import Settings
from vertex_training.settings.serving import Endpoint
from vertex_training.snapshots import estimate
from vertex_training.stack_rules import rule

#: Hints for exceeded limits.
SHORTER: Final = "shorten timeouts, use fewer machines, or raise the limit"
FEWER: Final = "use fewer replicas or versions or a smaller machine, or raise the limit"


@rule()
def limits_of_a_stack(settings: Settings) -> Iterator[Problem]:
    """Check that limits name known regions and machine types, and do not contradict each other."""
    limits = settings.limits
    for index, region in enumerate(limits.regions or ()):
        if region not in machines.regions():
            hint = did_you_mean(region, machines.regions())
            what = "no training jobs run in this region"
            yield Problem(what, region, hint, ("limits", "regions", index))
    yield from _members(settings)
    known = machines.machine_types() if limits.machine_types else ()
    for index, pattern in enumerate(limits.machine_types or ()):
        if not fnmatch.filter(known, pattern):
            what = "no machine type for training matches this pattern"
            path = ("limits", "machineTypes", index)
            yield Problem(what, pattern, did_you_mean(pattern, known), path)
    yield from _order(limits.max_usd_per_job, limits.max_usd_per_environment, ("limits",))
    month, total = limits.max_usd_per_month, limits.max_usd_per_month_in_total
    yield from _order(month, total, ("limits",), "endpoints", "maxUsdPerMonth")
    for name, team in settings.teams.items():
        path = ("teams", name, "limits")
        yield from _order(team.limits.max_usd_per_job, team.limits.max_usd_per_team, path)


def _order(
    one: float | None,
    every: float | None,
    path: Path,
    word: str = "jobs",
    key: str = "maxUsdPerJob",
) -> Iterator[Problem]:
    if one is not None and every is not None and one > every:
        what = f"{key} exceeds the limit of all {word} together, {costs.usd(every)}"
        yield Problem(what, costs.usd(one), f"write {every:g} or less", (*path, key))


def _members(settings: Settings) -> Iterator[Problem]:
    if settings.limits.member_domains is None:
        return
    allowed = settings.limits.member_domains
    domains = naming.own_domains(settings.project, settings.project_number, allowed)
    hint = f"remove the member; limits.memberDomains allows {', '.join(allowed)}"
    named: list[tuple[Path, str]] = [
        ((*path, index), member)
        for path, members in grants.member_lists(settings)
        for index, member in enumerate(members)
    ]
    # Owners of an account's project can act as the account and use its grants.
    named += [
        (("serviceAccounts", key, "existing"), account.existing)
        for key, account in settings.service_accounts.items()
        if account.existing
    ]
    for path, member in named:
        is_account = path[-1] == "existing"
        if not naming.is_of_domains(f"serviceAccount:{member}" if is_account else member, domains):
            what = "limits.memberDomains does not allow the domain of this member"
            yield Problem(what, member, hint, path, rule="limit-member-domain")


def exceeded(settings: Settings, results: Mapping[str, JobFileResult]) -> list[Problem]:
    """Return a problem for each exceeded limit of the whole stack. Omits jobs with mistakes."""
    priced = {
        key: result.request
        for key, result in results.items()
        if result.request and result.request.cost.worst_case
    }
    bills = {key: _bill(settings, request) for key, request in priced.items()}
    of_schedules = {
        key: bills[key]
        for key, request in priced.items()
        if request.submission.job in settings.schedules
    }
    problems = list[Problem]()
    allowed = settings.limits.regions
    if allowed is not None and settings.region not in allowed:
        hint = f"use a region that limits.regions allows: {', '.join(allowed)}"
        what, path = "limits.regions does not allow this region", ("region",)
        problems.append(Problem(what, settings.region, hint, path, rule="limit-region"))
    problems += _endpoints(settings, of_schedules)
    for key, result in results.items():
        if result.request and result.request.submission.job in settings.schedules:
            problems += _schedule(settings, key, result.request, bills.get(key))
    if (most := settings.limits.max_usd_per_environment) is not None:
        kept = dict(_reservations(settings))
        if not settings.limits.allow_unpriced:
            place, limit = ("reservations",), "limits.maxUsdPerEnvironment"
            problems += [_unpriced((*place, key), limit) for key in kept if kept[key].usd is None]
        kept = {f"reservation {key} (a month)": bill for key, bill in kept.items()}
        parts = ["jobs", *(["reservations"] if kept else [])]
        parts += ["a month of schedules"] if of_schedules else []
        parts += ["queries of snapshots"] if settings.snapshots else []
        whose = f"all {', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else "all jobs"
        for key, snapshot in settings.snapshots.items():
            location = snapshot.location or settings.region
            most_of_one = estimate.usd(snapshot.max_bytes_billed, location)
            kept[f"snapshot {key}"] = _Bill(most_of_one, not estimate.is_priced(location))
        problems += _total(bills | kept, most, whose, ("limits", "maxUsdPerEnvironment"))
    for name, team in settings.teams.items():
        of_team = {
            key: bills[key]
            for key, request in priced.items()
            if settings.team_at(request.account) == name
        }
        path = ("teams", name, "limits", "maxUsdPerTeam")
        problems += _total(of_team, team.limits.max_usd_per_team, f"all jobs of team {name}", path)
    return problems


class _Bill(NamedTuple):
    """Cost of a job or a reservation; ``usd`` is None without a price."""

    usd: float | None
    elsewhere: bool
    """True if the price is a price of another region."""


def _reservations(settings: Settings) -> Iterator[tuple[str, _Bill]]:
    now = datetime.datetime.now(tz=datetime.UTC)
    for key, plan in plan_reservations(settings).items():
        if not plan.settings.existing:
            rate = plan.rate(settings.region)
            elsewhere = rate is not None and not rate.exact
            yield key, _Bill(monthly(plan, settings.region, now), elsewhere)


def _bill(settings: Settings, request: JobRequest) -> _Bill:
    """Return a job's part of the total: one run, or a month of its schedule."""
    cost, schedule = request.cost, settings.schedules.get(request.submission.job)
    count = 1 if schedule is None else 0 if schedule.paused else schedule.calendar.most_a_month
    return _Bill((cost.worst_case or 0.0) * count, bool(cost.elsewhere))


def _schedule(
    settings: Settings, key: str, request: JobRequest, bill: _Bill | None
) -> Iterator[Problem]:
    """Yield a problem if a schedule may cost more than a monthly limit."""
    path: Path = (request.kind.section, key, "schedule", "cron")
    usd = bill.usd if bill else None
    schedule = settings.schedules[request.submission.job]
    team = settings.team_at(request.account)
    for source, limits in _limits_by_source(settings, team).items():
        most = limits.max_usd_per_month
        if usd is None:
            in_usd = most is not None or settings.limits.max_usd_per_month_in_total is not None
            if in_usd and not settings.limits.allow_unpriced:
                yield _unpriced(path, "limits.maxUsdPerMonth")
                return
        elif most is not None and usd > most:
            slots = f"{schedule.calendar.most_a_month} jobs"
            limit = f"{source}.maxUsdPerMonth is {costs.usd(most)}"
            what = f"this schedule may cost {costs.usd(usd)} a month ({slots}), {limit}"
            hint = "use fewer jobs, a shorter timeout or a smaller machine, or raise the limit"
            yield Problem(what, schedule.cron, hint, path, rule="limit-schedule-cost")


def _limits_by_source(settings: Settings, team: str | None) -> dict[str, Limits | TeamLimits]:
    """Return the limits of the stack and of a team by their paths in the stack file."""
    owner = settings.teams.get(team or "")
    return {"limits": settings.limits} | ({f"teams.{team}.limits": owner.limits} if owner else {})


def _endpoints(settings: Settings, of_schedules: Mapping[str, _Bill]) -> Iterator[Problem]:
    total = settings.limits.max_usd_per_month_in_total
    bills = {f"schedule of {key}": bill for key, bill in of_schedules.items()}
    for key, endpoint in settings.endpoints.items():
        cost, path = endpoint_cost(endpoint, settings.region), ("endpoints", key, "machine")
        bills[key] = _Bill(cost.most, cost.rate is not None and not cost.rate.exact)
        sources = _limits_by_source(settings, endpoint.team)
        in_usd = total is not None or any(s.max_usd_per_month is not None for s in sources.values())
        if cost.most is None and in_usd and not settings.limits.allow_unpriced:
            yield _unpriced(path, "limits.maxUsdPerMonth", endpoint.machine)
        for source, limits in sources.items():
            most, allowed = limits.max_usd_per_month, limits.machine_types
            if most is not None and cost.most is not None and cost.most > most:
                limit = f"{source}.maxUsdPerMonth is {costs.usd(most)}"
                what = f"this endpoint may cost {cost.at_most}, {limit}"
                yield Problem(what, endpoint.machine, FEWER, path, rule="limit-endpoint-cost")
            if allowed and not any(fnmatch.fnmatchcase(endpoint.machine, p) for p in allowed):
                hint = f"use a machine type that {source}.machineTypes allows: {', '.join(allowed)}"
                what = "limits.machineTypes does not allow this machine type"
                yield Problem(what, endpoint.machine, hint, path, rule="limit-machine-type")
    path = ("limits", "maxUsdPerMonthInTotal")
    whose = "all endpoints and schedules" if of_schedules else "all endpoints"
    yield from _total(bills, total, f"{whose} in a month", path, FEWER)


def endpoint_cost(endpoint: Endpoint, region: str) -> EndpointCost:
    """Return the monthly cost of an endpoint of a stack file."""
    accelerator, replicas = endpoint.accelerator, endpoint.replicas
    return costs.of_endpoint(
        endpoint.machine,
        accelerator.type if accelerator else None,
        accelerator.count if accelerator else 0,
        (replicas.min, replicas.most),
        len(endpoint.split),
        region,
    )


def _unpriced(path: Path, limit: str, value: str = "") -> Problem:
    what = f"{limit} cannot be checked: no price is known"
    hint = "set limits.allowUnpriced: true to count the unknown price as 0"
    return Problem(what, value, hint, path, rule="limit-price-unknown")


def _total(
    bills: Mapping[str, _Bill], most: float | None, whose: str, path: Path, fix: str = SHORTER
) -> Iterator[Problem]:
    known = {key: bill.usd or 0.0 for key, bill in bills.items()}
    total = math.fsum(known.values())
    if most is None or total <= most:
        return
    dearest = sorted(known, key=lambda key: -known[key])[:3]
    examples = ", ".join(f"{key} {costs.usd(known[key])}" for key in dearest)
    what = f"{whose} together may cost {costs.usd(total)}, the limit is {costs.usd(most)}"
    if foreign := [key for key, bill in bills.items() if bill.elsewhere]:
        what += f" (prices of another region for {', '.join(foreign)})"
    hint = f"{fix}; most expensive: {examples}"
    yield Problem(what, "", hint, path, rule="limit-environment-cost")


#: References whose value differs for each job. ``jobDefaults`` may contain these references.
OF_A_JOB = {"job.name": "name", "job.run": "1", "job.requestId": "id"}


@rule()
def levels_of_rules(settings: Settings) -> Iterator[Problem]:
    """Check that section ``rules`` names existing rules of job files, and lowers no error."""
    known = {job_rule.id: job_rule for job_rule in rules.ALL}
    for name, level in settings.rules.items():
        known_rule = known.get(name)
        path = ("rules", name)
        if known_rule is None:
            what = "no rule of job files has this id"
            yield Problem(what, name, did_you_mean(name, list(known)), path)
        elif known_rule.level == "error" and level != "error":
            hint = "remove the entry, or write `# vt: ignore[rule] reason` in one job file"
            what = "the level of a rule that is an error cannot be lowered"
            yield Problem(what, level, hint, path)


@rule()
def ladders(settings: Settings) -> Iterator[Problem]:
    """Check that ladders name known reservations, and that tuning jobs have no ladder."""
    for section, key, job in settings.jobs_by_section():
        path = (section, key, "ladder")
        if job.ladder and section == "tuning":
            what = "tuning jobs do not support ladder: they continue after a failed trial"
            yield Problem(what, hint="remove ladder", path=path)
        for index, rung in enumerate(job.ladder):
            yield from unknown_reservation(rung, settings.reservations, (*path, index))


@rule()
def backends(settings: Settings) -> Iterator[Problem]:
    """Check that tuning jobs run on Vertex AI."""
    for name, job in settings.tuning.items():
        if job.backend != "vertex":
            hint = "remove backend: only Vertex AI runs trials"
            path = ("tuning", name, "backend")
            yield Problem("tuning jobs run only on Vertex AI", job.backend, hint, path)


#: ``timeout-minutes`` of the workflow that deploys (``deploy.yml``).
DEPLOYMENT_MINUTES: Final = 60


@rule("deployment")
def deadlines(settings: Settings) -> Iterator[Problem]:
    """Warn if workflow ``deploy.yml`` ends before the deadline of a job with ``wait``."""
    most = DEPLOYMENT_MINUTES
    for section, key, job in settings.jobs_by_section():
        if job.wait and job.deadline_seconds > most * 60:
            what = f"workflow deploy.yml ends after {most} minutes, before this deadline"
            hint = f"write {most}m, raise timeout-minutes of the workflow, or remove wait"
            yield Problem(what, str(job.deadline), hint, (section, key, "deadline"))


def unknown_references(settings: Settings, table: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield references in ``jobDefaults`` that the stack does not define."""
    defaults = settings.job_defaults
    texts = {
        "serviceAccount": defaults.service_account,
        "outputDirectory": defaults.output_directory,
    }
    for key, text in texts.items():
        try:
            resolve_references(text or "", {**table, **OF_A_JOB})
        except UnknownReferenceError as unknown:
            what, shown = "this reference names no resource of the stack", "${" + unknown.name + "}"
            yield Problem(what, shown, unknown.hint, ("jobDefaults", key))


def unknown_reservation(
    rung: Rung, known: Mapping[str, object], path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield a problem if the reservation in a ladder is neither a key nor a full name."""
    name = rung.reservation
    if name is not None and name not in known and not RESERVATION.match(name):
        hint = did_you_mean(name, known) or "projects/PROJECT/zones/ZONE/reservations/NAME"
        yield Problem("the stack declares no such reservation", name, hint, (*path, "reservation"))


def rungs(
    given: Sequence[Rung], reservations: Mapping[str, object], table: Mapping[str, Any]
) -> tuple[requests.RungOverrides, ...]:
    """Convert the rungs of a ladder for a request. ``table``: values of references."""

    def affinity(name: str) -> Mapping[str, Any]:
        return table[f"reservations.{name}"] if name in reservations else affinity_to(name)

    return tuple(
        requests.RungOverrides(
            rung.model_dump(by_alias=True, exclude_none=True),
            None if rung.reservation is None else affinity(rung.reservation),
        )
        for rung in given
    )
