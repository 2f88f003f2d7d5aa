"""Sections of the report: titles and parts, from which Markdown and the HTML page are written.

Names and values are escaped when a section is built.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import usd
from vertex_training.errors import counted
from vertex_training_cli.review import expenses, grants, guards, reachability, serving
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.headline import totals
from vertex_training_cli.review.jobs import JobChange, at_most, fate, progress, shown_image
from vertex_training_cli.review.parts import (
    EVERYBODY,
    SENTENCE,
    Change,
    Danger,
    Differences,
    Edge,
    Entry,
    Fold,
    Graph,
    Listing,
    Node,
    Paragraph,
    Part,
    Quote,
    ReportSection,
    Table,
    Verbatim,
    cut,
    to_listings,
    to_tables,
)
from vertex_training_cli.review.report import ReviewReport, image_versions

#: Maximum number of nodes for an account's jobs; more jobs share one node.
MAX_JOBS: Final = 12
#: Maximum number of edges of grants. Mermaid refuses more than 500 edges.
MAX_EDGES: Final = 120
#: Part of a role's name -> verb of an edge. The first match counts.
VERBS: Final = (
    ("secretAccessor", "reads"),
    ("objectViewer", "reads"),
    ("viewer", "sees"),
    ("reader", "reads"),
    ("objectUser", "writes"),
    ("logWriter", "writes logs"),
    ("writer", "writes"),
    ("serviceAccountUser", "acts as"),
    ("networkUser", "uses"),
)
#: Length that is never exceeded by a list of names.
ALL: Final = 64_000


def sections(
    report: ReviewReport, quote: Quote, strong: Callable[[str], str]
) -> list[ReportSection]:
    """Return all sections that are not empty. ``strong`` emphasizes words."""
    errors = (line for error in report.errors for line in error.message.splitlines())
    preflight = (Paragraph(f"Preflight: {quote(report.preflight)}"),) if report.preflight else ()
    warnings, drawn = tuple(warning.message for warning in report.warnings), graph(report)
    report_sections = [
        ReportSection("Problems", _verbatim(map(str, report.problems))),
        ReportSection("Preview errors", _verbatim(errors)),
        ReportSection("Jobs", tuple(_jobs(report, quote))),
        ReportSection("Schedules", tuple(_schedules(report.schedules, quote))),
        ReportSection("Snapshots", tuple(_snapshots(report.snapshots, quote))),
        ReportSection("Models", tuple(_models(report.models, quote))),
        ReportSection("Endpoints", tuple(_endpoints(report.endpoints, quote))),
        ReportSection("Alerts and budget", tuple(_watching(report.watching, quote))),
        ReportSection("", preflight),
        *_images(report, quote),
        _notes(report, quote),
        ReportSection("Grants", _rights(report, quote, strong)),
        ReportSection("Data access through service accounts", _access(report, quote)),
        ReportSection(
            "Reachability",
            to_listings(
                Entry(
                    quote(change.what, SENTENCE),
                    lead=change.verb,
                    danger=reachability.danger(change),
                    name=change.resource,
                    fields=change.differences,
                )
                for change in report.reachability
            ),
        ),
        _losses(report, quote),
        ReportSection("Policies", tuple(_policies(report, quote))),
        _rest(report, quote),
        ReportSection(
            "Warnings", _verbatim(warnings), Paragraph(str(len(warnings))), fold="comment"
        ),
        ReportSection(
            "The stack after this change", (drawn,) if drawn.edges else (), fold="comment"
        ),
    ]
    return [section for section in report_sections if section.parts]


def _verbatim(lines: Iterable[str]) -> tuple[Verbatim, ...]:
    texts = tuple(lines)
    return (Verbatim(texts),) if texts else ()


def _if_action(*actions: str) -> Callable[[Any], Danger]:
    return lambda change: "destroys" if change.action in actions else "plain"


def _schedules(changes: Sequence[Change], quote: Quote) -> Iterator[Part]:
    # An unchanged schedule also costs money.
    yield from to_tables(
        "Scheduled jobs",
        changes,
        {
            "schedule": lambda row: quote(row.name),
            "action": lambda row: expenses.SCHEDULE_FATES[row.action],
            "calendar": lambda row: quote(row.words, SENTENCE),
            f"next {expenses.SLOTS} start times": lambda row: (
                row.slots or ("paused" if row.paused else "none")
            ),
            "missed start times": lambda row: quote(row.missed),
            "image": lambda row: tuple(quote(shown_image(name)) for name in row.images),
            "account": lambda row: quote(row.account.partition("@")[0]),
            "monthly cost": expenses.monthly_cost,
        },
        _if_action("end"),
    )
    if changes:
        yield Paragraph(expenses.TIMER)
    for change in changes:
        if change.differences:
            yield Differences(f"Differences of schedule {quote(change.name)}", change.differences)


def _snapshots(changes: Sequence[Change], quote: Quote) -> Iterator[Part]:
    # The estimate of an unchanged snapshot shows changes of its source tables.
    yield from to_tables(
        "BigQuery snapshots",
        changes,
        {
            "snapshot": lambda change: quote(change.name),
            "run": lambda change: change.run,
            "action": lambda change: expenses.SNAPSHOT_FATES[change.action],
            "estimate": lambda change: quote(change.told, SENTENCE),
            "folder": lambda change: quote(change.folder, SENTENCE),
            "readers": lambda change: tuple(map(quote, change.readers)),
        },
    )
    if changes:
        yield Paragraph(expenses.SNAPSHOT_PRICES)


def _models(versions: Sequence[Change], quote: Quote) -> Iterator[Part]:
    changed = [version for version in versions if version.action != "keep"]
    yield from to_tables(
        "Changed model versions",
        changed,
        {
            "model": lambda change: quote(change.model),
            "version": lambda change: quote(f"run {change.run}"),
            "action": lambda change: change.action,
            "job": lambda change: quote(change.job),
            "image": lambda change: tuple(
                quote(shown_image(name)) for name in (change.image_before, change.image) if name
            ),
            "metrics": lambda change: quote(serving.metrics_text(change.metrics), SENTENCE),
        },
        _if_action("delete"),
    )
    if unanswered := [change for change in changed if change.unanswered]:
        yield Paragraph("Results of these runs were not read:")
        yield from to_listings(
            f"{quote(change.model)} run {quote(change.run)}: {quote(change.unanswered, SENTENCE)}"
            for change in unanswered
        )


def _endpoints(changes: Sequence[Change], quote: Quote) -> Iterator[Part]:
    changed = [change for change in changes if change.action != "keep"]
    yield from to_tables(
        "Changed endpoints",
        changed,
        {
            "endpoint": lambda change: quote(change.name),
            "action": lambda change: change.action,
            "split": lambda change: quote(serving.split_change(change)),
            "machines": lambda change: quote(change.machine),
            "monthly cost": serving.cost_text,
            "reachability": lambda change: quote(serving.reach_text(change)),
            "account": lambda change: quote(change.account.partition("@")[0]),
        },
        _if_action("delete", "replace"),
    )
    for endpoint in changed:
        yield from _metrics(endpoint, quote)
    if changed:
        text = "An endpoint costs money until its deletion, with or without traffic. "
        yield Paragraph(text + serving.SOURCES)


def _metrics(change: Change, quote: Quote) -> tuple[Table, ...]:
    """Return a table with the metrics of an endpoint's runs, one column a run."""

    def column(run: str) -> Callable[[str], str]:
        return lambda name: serving.shown(change.metrics[run].get(name))

    heads = {f"{quote(run)} ({serving.share_text(change, run)})": run for run in change.metrics}
    columns = {head: column(run) for head, run in heads.items()}
    names = dict.fromkeys(name for metric in change.metrics.values() for name in metric)
    caption = f"Metrics of the versions of endpoint {quote(change.name)}"
    return to_tables(caption, names, {"metric": quote, **columns})


def _watching(changes: Sequence[Change], quote: Quote) -> Iterator[Part]:
    yield from to_tables(
        "Notifications",
        changes,
        {
            "resource": lambda change: f"{change.kind} {quote(change.name)}",
            "action": lambda change: change.action,
            "subject": lambda change: quote(change.when, SENTENCE),
            "recipients before": lambda change: tuple(
                quote(e, SENTENCE) for e in change.told_before
            ),
            "recipients": lambda change: tuple(quote(e, SENTENCE) for e in change.told),
        },
        _if_action("delete"),
    )
    for kind, text in (("alert", guards.OF_ALERTS), ("budget", guards.OF_BUDGETS)):
        if any(change.kind == kind for change in changes):
            yield Paragraph(text)


def _jobs(report: ReviewReport, quote: Quote) -> Iterator[Part]:
    changed = [job for job in report.jobs if job.action != "keep"]
    kept = [job for job in report.jobs if job.action == "keep"]
    yield from _job_table("Changed jobs", changed, quote, shorter=_shorter(changed, quote))
    if kept:
        count = f"Unchanged: {len(kept)}"
        yield Fold(count, _job_table("Unchanged jobs", kept, quote), comment=f"{count}.")
    yield from to_listings(
        (
            f"{quote(job.name)}: fields from {quote('jobDefaults')}:"
            f" {quote(', '.join(job.filled_in), ALL)}"
            for job in changed
            if job.filled_in
        ),
        (
            f"{quote(job.name)}, rung {rung.number} of {len(job.ladder)}: {quote(str(rung), ALL)}"
            for job in report.jobs
            for rung in job.ladder
        ),
        (
            f"{quote(job.name)}: cancelled when its accelerators are idle:"
            f" {quote(job.idle_stop or 'never')}"
            + (f", before: {quote(before)}" if (before := job.idle_stop_before) else "")
            for job in changed
            if job.idle_stop or (job.idle_stop_before and job.action != "cancel")
        ),
        (f"{quote(job.name)}: {quote(text, ALL)}" for job in changed for text in job.memory),
        (
            f"{quote(job)} reads snapshot {quote(snapshot.name)}, run {snapshot.run}"
            for snapshot in report.snapshots
            for job in snapshot.readers
        ),
        (
            f"{quote(job.name)}: {progress(job.now)}"
            + (f"; last line: {quote(job.now.last_line)}" if job.now.last_line else "")
            for job in report.jobs
            if job.now
        ),
    )
    if report.not_observed:
        text = quote(report.not_observed, SENTENCE)
        yield Paragraph(f"Current states of jobs not checked: {text}")
    if report.submitted:
        prices = Paragraph(f"{_prices(report)} {costs.NOT_INCLUDED}")
        yield Fold("Sources of the prices, and costs not included", (prices,))
    for job in changed:
        if job.differences:
            yield Differences(f"Differences of job {quote(job.name)}", job.differences)


def _shorter(jobs: Sequence[JobChange], quote: Quote) -> tuple[Listing, ...]:
    """Return two shorter replacements of the table of jobs: a line per job, a line per action."""
    by_action = {
        action: ", ".join(job.name for job in jobs if job.action == action)
        for action in dict.fromkeys(job.action for job in jobs)
    }
    lines = (f"{j.action} {quote(j.name)}: {usd(j.cost.worst_case)}" for j in jobs)
    return to_listings(lines, (f"{act}: {quote(names, ALL)}" for act, names in by_action.items()))


def _job_table(
    caption: str, jobs: Sequence[JobChange], quote: Quote, shorter: tuple[Listing, ...] = ()
) -> tuple[Table, ...]:
    def lines(*texts: str) -> tuple[str, ...]:
        return tuple(quote(text) for text in texts if text)

    columns: dict[str, Callable[[JobChange], str | tuple[str, ...]]] = {
        "job": lambda job: quote(job.name),
        "action": fate,
        "machines": lambda job: lines(*job.machines, *job.starts, job.trials),
        "strategy": lambda job: lines(job.strategy),
        "reservation": lambda job: lines(job.reservation),
        "region": lambda job: lines(job.region),
        "account": lambda job: lines(job.account.partition("@")[0]),
        "network": lambda job: lines(job.network.rpartition("/")[2]),
        "image": lambda job: lines(*map(shown_image, job.images)),
        "hourly cost": lambda job: lines(usd(job.cost.hourly)),
        "maximum cost": lambda job: lines(*at_most(job)),
    }
    return to_tables(caption, jobs, columns, shorter=shorter)


def _prices(report: ReviewReport) -> str:
    rates = {
        (
            rate.source,
            rate.date,
            rate.region + ("" if rate.exact else ", not the job's region"),
        )
        for job in report.submitted
        for pool in job.cost.pools
        if (rate := pool.rate)
    }
    sources = "; ".join(f"{source} ({date}; {where})" for source, date, where in sorted(rates))
    thin = costs.thin_sources(job.strategy for job in report.submitted)
    return " ".join([f"Prices: {sources}." if sources else "No prices.", *thin])


def _images(report: ReviewReport, quote: Quote) -> Iterator[ReportSection]:
    if report.unseen_images:
        text = quote("; ".join(report.unseen_images), SENTENCE)
        yield ReportSection("", (Paragraph(f"Images not checked: {text}"),))
    columns: dict[str, Callable[[Any], str]] = {
        "image": lambda image: quote(image.name),
        "digest before": lambda image: quote(image_versions(image)[0]),
        "digest after": lambda image: quote(image_versions(image)[1]),
        "source": lambda image: quote(report.origin(image)),
        "users": lambda image: quote(", ".join(image.jobs)),
    }
    tables = to_tables("Images with a new digest", report.images, columns)
    yield ReportSection("Images", tables)
    others = to_listings(
        f"{quote(f'{image.name}@{image_versions(image)[1]}')}: {quote(report.origin(image))}"
        f" ({quote(', '.join(image.jobs))})"
        for image in report.other_images
    )
    count = Paragraph(str(len(report.other_images)))
    yield ReportSection("Other images in use", others, count, "always")


def _notes(report: ReviewReport, quote: Quote) -> ReportSection:
    # The first words of each note stay visible.
    lines = (line for note in report.notes for line in note.message.splitlines())
    begins = (note.message.splitlines()[0] for note in report.notes if note.message)
    names = tuple(quote(cut(words, 72)) for words in begins)
    count = Paragraph("", names, by_semicolon=True)
    return ReportSection("Notes", _verbatim(lines), count, "always")


def _rights(report: ReviewReport, quote: Quote, strong: Callable[[str], str]) -> tuple[Table, ...]:
    def holder(binding: IamBinding) -> str:
        who = quote(grants.short_member(binding))
        return f"{strong('everybody')} {who}" if binding.is_public else who

    def target(binding: IamBinding) -> tuple[str, ...]:
        on, condition = grants.place(binding, quote), binding.condition
        return (on, f"only if {quote(condition)}") if condition else (on,)

    def danger(row: tuple[str, IamBinding]) -> Danger:
        return "plain" if row[0] != "gained" else "destroys" if row[1].is_public else "opens"

    return to_tables(
        "Grants gained and lost",
        [
            *(("gained", grant) for grant in report.gained),
            *(("lost", grant) for grant in report.lost),
            *(("kept", grant) for grant in report.kept),
        ],
        {
            "change": lambda row: row[0],
            "principal": lambda row: holder(row[1]),
            "role": lambda row: quote(row[1].role),
            "resource": lambda row: target(row[1]),
            "reason": lambda row: row[1].reason,
        },
        danger,
    )


def _access(report: ReviewReport, quote: Quote) -> tuple[Table, ...]:
    # The section on grants lists direct access.
    changes = [("gained", access) for access in report.access_gained if access.through]
    changes += [("lost", access) for access in report.access_lost if access.through]
    return to_tables(
        "Access gained and lost",
        changes,
        {
            "change": lambda row: row[0],
            "principal": lambda row: quote(grants.short_member(row[1])),
            "access": lambda row: grants.verb(row[1], quote),
            "data": lambda row: grants.place(row[1], quote),
            "account": lambda row: quote(grants.through(row[1])),
        },
        lambda row: "opens" if row[0] == "gained" else "plain",
        spaced=True,
    )


def _losses(report: ReviewReport, quote: Quote) -> ReportSection:
    def gone(change: Change) -> Entry:
        text = f"{change.fate}: {quote(change.name)} ({quote(change.type)})"
        takes = f", with {change.takes}" if change.takes and not change.refused else ""
        return Entry(text + takes, danger="destroys")

    groups = [
        tuple(Entry(kind.line(finding, quote), danger=kind.danger) for finding in findings)
        for kind, findings in report.risks.items()
        if kind.in_list != "" and findings
    ]
    groups += [tuple(map(gone, report.destroyed))] if report.destroyed else []
    parts: list[Part] = [Listing(tuple(groups))] if groups else []
    if names := tuple(map(quote, report.protected)):
        summary = f"Protected resources, which Pulumi refuses to destroy: {len(names)}"
        parts.append(Fold(summary, (Paragraph("", names),)))
    return ReportSection("Losses and lowered guards" if groups else "", tuple(parts))


def _policies(report: ReviewReport, quote: Quote) -> Iterator[Part]:
    lower = [(name, level) for name, level in report.levels.items() if level != "mandatory"]
    if report.violations or report.packs or lower:
        yield Paragraph(_checked(report))
    if lower:
        names = tuple(f"{quote(name)} {quote(level)}" for name, level in lower)
        yield Paragraph("Policies that are not mandatory in this stack: ", names, ".")
    yield from to_tables(
        "Policy results",
        report.violations,
        {
            "level": lambda violation: violation.level,
            "policy": lambda violation: quote(violation.policy),
            "resource": lambda violation: quote(violation.urn.rpartition("::")[2]),
            "message": lambda violation: quote(violation.message, SENTENCE),
        },
        lambda violation: "destroys" if violation.is_mandatory else "plain",
        spaced=True,
    )


def _checked(report: ReviewReport) -> str:
    packs = ", ".join(report.packs)
    if not packs:
        return "No policy pack checked the plan."
    policies = counted(report.policies, "policy")
    if not report.violations:
        return f"{policies} of {packs}: no violations."
    forbidding = len(report.forbidding)
    rest = len(report.violations) - forbidding
    return f"{policies} of {packs}: violations: {forbidding}, warnings: {rest}."


def _rest(report: ReviewReport, quote: Quote) -> ReportSection:
    if not (report.changes or report.folders or report.unchanged):
        return ReportSection("Other changes", ())
    folders = tuple(Entry(f"objects below {quote(f.name)}: {f.counts}") for f in report.folders)
    changes = tuple(_change(change, quote) for change in report.changes)
    listing = Listing((folders, changes), minor=True)
    part = listing if folders or changes else Paragraph("No other changes.")
    count = Paragraph(f"{totals(report)}; {report.unchanged} unchanged")
    return ReportSection("Other changes", (part,), count, "comment")


def _change(change: Change, quote: Quote) -> Entry:
    is_new = change.op == "create"
    differs = change.paths and not is_new
    return Entry(
        f"{change.op} {quote(change.name)} ({quote(change.type)})",
        name=change.name,
        fields=change.differences,
        in_comment=not is_new,
        note=f"different in the cloud: {quote(', '.join(change.paths), SENTENCE)}"
        if differs
        else "",
    )


def graph(report: ReviewReport) -> Graph:
    """Return a graph of the stack after the change, with new grants first."""
    endpoints = [endpoint for endpoint in report.endpoints if endpoint.action != "delete"]
    edges = (*_grant_edges(report), *_job_edges(report.jobs), *_endpoint_edges(endpoints))
    left = ((len(report.held) - MAX_EDGES, "grants"), (len(endpoints) - MAX_JOBS, "endpoints"))
    return Graph(edges, " and ".join(f"{count} more {what}" for count, what in left if count > 0))


def _grant_edges(report: ReviewReport) -> Iterator[Edge]:
    gained = set(report.gained)
    for binding in sorted(report.held, key=lambda binding: binding not in gained)[:MAX_EDGES]:
        kind, _, name = binding.member.partition(":")
        holder = Node(kind if name else EVERYBODY, name or binding.member)
        if kind == "serviceAccount":
            holder = _account(name)
        tail, role = binding.target.rpartition("/")[2], binding.role.rpartition("/")[2]
        target = Node(binding.kind, _account(tail).name if "@" in tail else tail)
        verb = next((verb for part, verb in VERBS if part.lower() in role.lower()), role)
        yield Edge(holder, target, verb, binding in gained)


def _job_edges(jobs: Sequence[JobChange]) -> Iterator[Edge]:
    by_account: defaultdict[str, list[JobChange]] = defaultdict(list)
    for job in jobs:
        if job.action != "cancel":
            by_account[job.account].append(job)
    for account, users in sorted(by_account.items()):
        if len(users) > MAX_JOBS:
            changed = sum(job.action != "keep" for job in users)
            many = Node("jobs", f"{len(users)}, {changed} of them new or changed")
            yield Edge(many, _account(account), "run as", changed > 0)
        else:
            for job in users:
                yield Edge(Node("job", job.name), _account(account), "runs as", job.submits)


def _endpoint_edges(endpoints: Sequence[Change]) -> Iterator[Edge]:
    for change in sorted(endpoints, key=lambda item: item.action == "keep")[:MAX_JOBS]:
        endpoint = Node("endpoint", change.name)
        for run, share in change.after.items():
            version = Node("model", f"{change.model} {run}")
            yield Edge(endpoint, version, f"{share} %", share != change.before.get(run))
        if change.account:
            yield Edge(endpoint, _account(change.account), "runs as", not change.before)


def _account(address: str) -> Node:
    """Return ``trainer-dev`` for an account of a project, and other addresses in full."""
    name, _, domain = address.partition("@")
    is_own = domain.count(".") == 3 and "gcp-sa" not in domain
    return Node("account", name if is_own else address)
