"""What the limits of a stack say of the stack as a whole; of single jobs see ``rules.limits``."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from infra.catalog import costs, machines
from infra.customjob.request.job_file import Verdict
from infra.customjob.rules.context import JobLimits
from infra.errors import Problem, Row, did_you_mean
from infra.settings import locations as stack_places
from infra.settings.model import Settings


def rows(settings: Settings) -> list[Row]:
    """Regions and machine types among the limits that do not exist: they would limit nothing."""
    limits, found = settings.limits, list[Row]()
    for index, region in enumerate(limits.regions or ()):
        if region not in machines.regions():
            hint = did_you_mean(region, machines.regions())
            found.append((f"limits.regions[{index}]", "no region for training", region, hint))
    for index, pattern in enumerate(limits.machine_types or ()):
        known = machines.machine_types()
        if not fnmatch.filter(known, pattern):
            what = "no machine type for training is called that"
            found.append(
                (f"limits.machineTypes[{index}]", what, pattern, did_you_mean(pattern, known))
            )
    return found


def of_jobs(settings: Settings) -> JobLimits:
    """The limits as the rules of single jobs take them."""
    limits = settings.limits
    return JobLimits(
        usd=limits.max_usd_per_job,
        priced=limits.in_usd and not limits.allow_unpriced,
        machine_types=None if limits.machine_types is None else tuple(limits.machine_types),
        strategies=None if limits.strategies is None else tuple(limits.strategies),
    )


def problems(settings: Settings, verdicts: Mapping[str, Verdict], root: Path) -> list[Problem]:
    """What is over the limits in the stack as a whole, at its place in the stack file in ``root``.

    A job that is wrong by itself does not count towards the total: it is told already.
    """
    return stack_places.locate([*_region(settings), *_total(settings, verdicts)], root)


def _region(settings: Settings) -> Iterator[Problem]:
    allowed = settings.limits.regions
    if allowed is not None and settings.region not in allowed:
        where = f"Pulumi.{settings.stack}.yaml: gcp:region"
        hint = f"limits.regions allows {', '.join(allowed)}"
        what = "the limits do not allow this region"
        yield Problem(where, what, settings.region, hint, rule="limit-region")


def _total(settings: Settings, verdicts: Mapping[str, Verdict]) -> Iterator[Problem]:
    most = settings.limits.max_usd_per_environment
    if most is None:
        return
    known = {
        key: cost
        for key, verdict in verdicts.items()
        if verdict.request
        and (cost := costs.of_job(verdict.request.message, settings.region).worst_case)
    }
    total = math.fsum(known.values())
    if total <= most:
        return
    dearest = sorted(known, key=lambda key: -known[key])[:3]
    told = ", ".join(f"{key} {costs.usd(known[key])}" for key in dearest)
    where = f"Pulumi.{settings.stack}.yaml: vertex-training:limits.maxUsdPerEnvironment"
    what = f"all jobs together may cost {costs.usd(total)}, the limit is {costs.usd(most)}"
    hint = f"shorten timeouts, use fewer machines, or raise the limit; the dearest: {told}"
    yield Problem(where, what, "", hint, rule="limit-environment-cost")
