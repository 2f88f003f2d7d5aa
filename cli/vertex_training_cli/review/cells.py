"""Columns, cells and phrases that Markdown and HTML share."""

from __future__ import annotations

from typing import Final

from vertex_training.catalog.costs import hours, usd
from vertex_training.customjob.protocol.waiting import format_duration
from vertex_training_cli.engine.plan import CheckpointObservation, JobObservation
from vertex_training_cli.review.escaping import cut
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.jobs import ENDED, JobChange
from vertex_training_cli.review.report import DestructiveChange, ReviewReport

#: In the order in which :func:`job_cells` fills them.
JOB_COLUMNS: Final = (
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
#: Over what is the same in every report with a price.
PRICES: Final = "Where the prices come from, and what is not in them"
#: Characters of a note that are seen while it is folded.
BEGINNING: Final = 72
#: Columns of the other tables.
RIGHT_COLUMNS: Final = ("change", "who", "role", "on", "why")
ACCESS_COLUMNS: Final = ("change", "who", "may", "what", "as")
POLICY_COLUMNS: Final = ("level", "policy", "resource", "what it says")


def action(job: JobChange) -> str:
    """What happens to a job, and to the one that was there before it."""
    done = {
        "submit": "submitted",
        "replace": "submitted anew",
        "cancel": "leaves the stack",
        "change": "labels or options change, nothing is submitted",
        "defer": "submitted by the first up after the running job has ended",
        "keep": "unchanged",
    }[job.action]
    if job.action not in ("replace", "cancel"):
        return done
    if not job.cancels:
        return f"{done}; the old one {progress(job.now) if job.now else job.previous_state.lower()}"
    seen = f" ({job.previous_state.lower()} when last seen)" if job.previous_state else ""
    if job.now:
        seen = f" ({progress(job.now)})"
    return f"{done}; the old one is cancelled{seen}"


def progress(now: JobObservation) -> str:
    """What a job is doing: ``running for 3h 2m, $12.30 so far``."""
    words = now.state.lower().replace("_", " ")
    if not now.seconds:
        return words
    verb = "after" if now.state in ENDED else "for"
    text = f"{words} {verb} {format_duration(now.seconds)}"
    text += "" if now.cost is None else f", {usd(now.cost)} so far"
    return f"{text}, {checkpoint(now.checkpoint)}" if now.checkpoint else text


def checkpoint(found: CheckpointObservation) -> str:
    """What a job has kept: what it did since then is lost if it is cancelled."""
    if found.seconds is None:
        return "no checkpoint"
    bound = "at most " if found.at_most else ""
    return f"last checkpoint {bound}{format_duration(found.seconds)} ago"


def job_cells(job: JobChange) -> tuple[tuple[str, ...], ...]:
    """The cells of a job's row, each as lines of plain text."""
    return (
        (job.name,),
        (action(job),),
        (*job.machines, *filter(None, [job.trials])),
        (job.strategy,),
        (job.reservation,),
        (job.region,),
        (job.account.partition("@")[0],),
        (job.network.rpartition("/")[2],),
        tuple(image(each) for each in job.images),
        (usd(job.cost.hourly),),
        (at_most(job),),
    )


def at_most(job: JobChange) -> str:
    """The worst case with the time it is for."""
    span = hours(job.cost.timeout)
    if job.cost.trials is not None:
        span = f"{job.cost.trials} trials of {span}"
    default = ", no timeout set" if job.cost.default_timeout else ""
    return f"{usd(job.cost.worst_case)} ({span}{default}{job.cost.elsewhere})"


def image(name: str) -> str:
    """An image without its registry, its digest cut to twelve digits."""
    short, _, digest = name.rpartition("/")[2].partition("@sha256:")
    return f"{short}@sha256:{digest[:12]}" if digest else short


def member(binding: IamBinding) -> str:
    """The member of a binding: a service account by its address alone."""
    return binding.member.removeprefix("serviceAccount:")


def target(binding: IamBinding) -> str:
    """The resource of a binding: the last part of its name, which is enough beside its kind."""
    return binding.target.rpartition("/")[2]


def accesses(report: ReviewReport) -> list[tuple[str, str, str, str, str, str]]:
    """Rows of access through accounts: change, who, what they may, kind, its name, as which."""
    changes = [("gained", each) for each in report.access_gained]
    changes += [("lost", each) for each in report.access_lost]
    return [
        (
            verb,
            each.member.removeprefix("serviceAccount:"),
            each.verb,
            each.kind,
            each.target.rpartition("/")[2],
            " then ".join(account.partition("@")[0] for account in each.through),
        )
        for verb, each in changes
    ]


def beginnings(report: ReviewReport) -> list[str]:
    """The first words of each note of the program."""
    return [cut(note.message.splitlines()[0], BEGINNING) for note in report.notes if note.message]


def prices(report: ReviewReport) -> str:
    """Where the prices come from and how old they are."""
    found: dict[tuple[str, str, str], None] = {}
    for job in report.submitted:
        for pool in job.cost.pools:
            if pool.rate:
                away = "" if pool.rate.exact else ", not of this job's region"
                found[(pool.rate.source, pool.rate.date, pool.rate.region + away)] = None
    sources = "; ".join(f"{source} ({date}; {where})" for source, date, where in sorted(found))
    return f"Prices: {sources}." if sources else "No prices."


def levels(report: ReviewReport) -> list[tuple[str, str]]:
    """Policies that are not mandatory in this stack, with their levels."""
    return [(name, level) for name, level in report.levels.items() if level != "mandatory"]


def destruction(change: DestructiveChange) -> tuple[str, str]:
    """The words before and after the name of a destroyed resource."""
    verb = "destroyed and made anew" if change.replaced else "destroyed"
    if change.refused:
        return f"refused, it is protected, or would be {verb}", ""
    return verb, f", and with it {change.lost_data}" if change.lost_data else ""


def policies(report: ReviewReport) -> str:
    """One line on the policies that checked the plan, and their results."""
    packs = ", ".join(report.packs)
    if not packs:
        return "No policy pack checked the plan."
    if not report.violations:
        return f"{report.policies} policies of {packs} found nothing."
    forbidding = len(report.forbidding)
    rest = len(report.violations) - forbidding
    return f"{report.policies} policies of {packs}: {forbidding} forbid it, {rest} only warn."
