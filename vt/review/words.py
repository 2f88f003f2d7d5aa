"""Words and cells that Markdown and HTML share."""

from __future__ import annotations

from infra.catalog.costs import hours, usd
from vt.review.jobs import Job
from vt.review.report import Loss, Report
from vt.review.rights import Right

#: In the order in which :func:`job_cells` fills them.
JOB_COLUMNS = (
    "job",
    "what happens",
    "machines",
    "strategy",
    "reservation",
    "region",
    "account",
    "network",
    "image",
    "an hour",
    "at most",
)
RIGHT_COLUMNS = ("change", "who", "role", "on", "why")
POLICY_COLUMNS = ("level", "policy", "resource", "what it says")


def action(job: Job) -> str:
    """What happens to a job, and to the one that was there before it."""
    done = {
        "submit": "submitted",
        "replace": "submitted anew",
        "cancel": "leaves the stack",
        "change": "labels or options change, nothing is submitted",
        "keep": "unchanged",
    }[job.action]
    if job.action not in ("replace", "cancel"):
        return done
    if not job.cancels:
        return f"{done}; the old one {job.was.lower()}"
    seen = f" ({job.was.lower()} when last seen)" if job.was else ""
    return f"{done}; the old one is cancelled{seen}"


def job_cells(job: Job) -> tuple[tuple[str, ...], ...]:
    """What a job's row says: the lines of each cell, as plain text."""
    return (
        (job.name,),
        (action(job),),
        job.machines,
        (job.strategy,),
        (job.reservation,),
        (job.region,),
        (job.account.partition("@")[0],),
        (job.network.rpartition("/")[2],),
        tuple(image(each) for each in job.images),
        (usd(job.cost.hourly),),
        (at_most(job),),
    )


def at_most(job: Job) -> str:
    """The worst case with the time it is for."""
    span = hours(job.cost.timeout)
    default = ", no timeout set" if job.cost.default_timeout else ""
    return f"{usd(job.cost.worst_case)} ({span}{default})"


def image(name: str) -> str:
    """An image without its registry, its digest cut to twelve digits."""
    short, _, digest = name.rpartition("/")[2].partition("@sha256:")
    return f"{short}@sha256:{digest[:12]}" if digest else short


def member(right: Right) -> str:
    """Who: an account of the stack's by its address alone."""
    return right.member.removeprefix("serviceAccount:")


def target(right: Right) -> str:
    """On what: the last part of a resource name, which says it all beside its kind."""
    return right.target.rpartition("/")[2]


def prices(report: Report) -> str:
    """Where the prices come from and how old they are."""
    found: dict[tuple[str, str, str], None] = {}
    for job in report.submitted:
        for pool in job.cost.pools:
            if pool.rate:
                away = "" if pool.rate.exact else ", not of this job's region"
                found[(pool.rate.source, pool.rate.date, pool.rate.region + away)] = None
    told = "; ".join(f"{source} ({date}; {where})" for source, date, where in sorted(found))
    return f"Prices: {told}." if told else "No prices."


def loss(lost: Loss) -> tuple[str, str]:
    """What is said before and after the name of a destroyed resource."""
    verb = "destroyed and made anew" if lost.replaced else "destroyed"
    return verb, f", and with it {lost.takes}" if lost.takes else ""


def policies(report: Report) -> str:
    """One line on what looked at the plan and what it found."""
    packs = ", ".join(report.packs)
    if not report.violations:
        return f"{report.policies} policies of {packs} found nothing."
    forbidding = len(report.forbidding)
    rest = len(report.violations) - forbidding
    return f"{report.policies} policies of {packs}: {forbidding} forbid it, {rest} only warn."
