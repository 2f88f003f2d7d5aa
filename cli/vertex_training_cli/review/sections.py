"""The report as sections: built once of the report, written as Markdown and as a page.

A section is a title and parts. Names and values in them are quoted when they are built; what a
comment shortens, and how, the parts say themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import usd
from vertex_training_cli.review import (
    expenses,
    grants,
    guards,
    serving,
)
from vertex_training_cli.review.destroyed import fate as fate_of_resource
from vertex_training_cli.review.escaping import cut
from vertex_training_cli.review.expenses import ScheduleChange, SnapshotChange
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.guards import WatchChange
from vertex_training_cli.review.headline import totals
from vertex_training_cli.review.jobs import (
    JobChange,
    at_most,
    fate,
    progress,
    shown_image,
)
from vertex_training_cli.review.parts import (
    EVERYBODY,
    SENTENCE,
    Danger,
    Differences,
    Entry,
    Fold,
    Graph,
    Listing,
    Node,
    Paragraph,
    Part,
    Quote,
    ReportSection,
    Row,
    Table,
    Verbatim,
    to_section,
    to_table,
)
from vertex_training_cli.review.report import (
    IMAGE_COLUMNS,
    ResourceChange,
    ReviewReport,
    image_cells,
    image_line,
)
from vertex_training_cli.review.serving import EndpointChange, VersionChange

#: Columns of the table of jobs, in the order in which ``_job_row`` fills them.
JOB_COLUMNS: Final = (
    "job", "what happens", "machines", "strategy", "reservation", "region", "account", "network",
    "image", "an hour", "at most",
)  # fmt: skip
#: More jobs of one account than this become one node: a picture of 200 boxes shows nothing, and
#: Mermaid refuses more than 500 edges.
MAX_JOBS: Final = 12
MAX_EDGES: Final = 120
#: What a role lets its holder do, by parts of its name; the first that fits.
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
#: Characters of a note that are seen while it is folded.
BEGINNING: Final = 72
#: Characters of a list of names that is never shortened.
ALL: Final = 64_000


def sections(
    report: ReviewReport, quote: Quote, strong: Callable[[str], str]
) -> list[ReportSection]:
    """All that have something to show, in the order of reading.

    ``quote`` makes names and values harmless, ``strong`` makes words stand out.
    """
    found = [
        *_problems(report),
        _jobs(report, quote),
        _schedules(report.schedules, quote),
        _snapshots(report.snapshots, quote),
        _models(report.models, quote),
        _endpoints(report.endpoints, quote),
        _watching(report.watching, quote),
        *_preflight(report, quote),
        *_images(report, quote),
        _notes(report, quote),
        _rights(report, quote, strong),
        _access(report, quote),
        _reachability(report, quote),
        _losses(report, quote),
        _policies(report, quote),
        _rest(report, quote),
        _warnings(report),
        _picture(report),
    ]
    return [section for section in found if section.parts]


def _problems(report: ReviewReport) -> Iterator[ReportSection]:
    if report.problems:
        yield ReportSection("What is wrong", (Verbatim(tuple(map(str, report.problems))),))
    if report.errors:
        lines = (line for error in report.errors for line in error.message.splitlines())
        yield ReportSection("Why the preview failed", (Verbatim(tuple(lines)),))


def _schedules(changes: Sequence[ScheduleChange], quote: Quote) -> ReportSection:
    """All schedules: one that stays as it is goes on to cost what it did."""
    rows = [
        Row(
            (
                (quote(each.name),),
                (expenses.SCHEDULE_FATES[each.action],),
                (quote(each.words, SENTENCE),),
                each.slots or (("paused",) if each.paused else ("none",)),
                (quote(each.missed),),
                tuple(quote(shown_image(image)) for image in each.images),
                (quote(each.account.partition("@")[0]),),
                (each.cost,),
            ),
            "destroys" if each.action == "end" else "plain",
        )
        for each in changes
    ]
    columns = ("schedule", "what happens", "when", f"next {expenses.SLOTS} slots", "missed slots",
               "image", "account", "a month")  # fmt: skip
    table = to_table("Jobs that are submitted by a schedule", columns, rows)
    parts: list[Part] = [table, Paragraph(expenses.TIMER)] if table else []
    parts += [
        Differences(f"What differs in schedule {quote(each.name)}", each.differences)
        for each in changes
        if each.differences
    ]
    return ReportSection("Schedules", tuple(parts))


def _snapshots(changes: Sequence[SnapshotChange], quote: Quote) -> ReportSection:
    """Snapshots: all of them, since tables that changed are seen nowhere else."""
    rows = [
        Row(
            (
                (quote(each.name),),
                (each.run,),
                (expenses.SNAPSHOT_FATES[each.action],),
                (quote(each.told, SENTENCE),),
                (quote(each.folder, SENTENCE),),
                tuple(map(quote, each.readers)),
            )
        )
        for each in changes
    ]
    columns = ("snapshot", "run", "what happens", "what is known", "folder", "read by")
    table = to_table("Snapshots of BigQuery", columns, rows)
    return ReportSection("Snapshots", (table, Paragraph(expenses.SNAPSHOT_PRICES)) if table else ())


def _models(versions: Sequence[VersionChange], quote: Quote) -> ReportSection:
    """Versions that change, and what could not be asked of their runs."""
    changed = [each for each in versions if each.action != "keep"]
    rows = [
        Row(
            (
                (quote(each.model),),
                (quote(f"run {each.run}"),),
                (each.action,),
                (quote(each.job),),
                tuple(quote(shown_image(i)) for i in (each.image_before, each.image) if i),
                (quote(serving.metrics_text(each.metrics), SENTENCE),),
            ),
            "destroys" if each.action == "delete" else "plain",
        )
        for each in changed
    ]
    columns = ("model", "version", "what happens", "job", "image", "metrics")
    table = to_table("Versions of models that change", columns, rows)
    unanswered = tuple(
        Entry(f"{quote(each.model)} run {quote(each.run)}: {quote(each.unanswered, SENTENCE)}")
        for each in changed
        if each.unanswered
    )
    lead = Paragraph("What these runs left could not be asked:")
    parts = (table, *((lead, Listing((unanswered,))) if unanswered else ()))
    return ReportSection("Models", tuple(part for part in parts if part))


def _endpoints(changes: Sequence[EndpointChange], quote: Quote) -> ReportSection:
    """Endpoints that change: split, machines, USD a month, reachability; and metrics by run."""
    changed = [each for each in changes if each.action != "keep"]
    rows = [
        Row(
            (
                (quote(each.name),),
                (each.action,),
                (quote(serving.split_change(each)),),
                (quote(each.machine),),
                (serving.cost_text(each),),
                (quote(serving.reach_text(each)),),
                (quote(each.account.partition("@")[0]),),
            ),
            "destroys" if each.action in ("delete", "replace") else "plain",
        )
        for each in changed
    ]
    columns = ("endpoint", "what happens", "split", "runs on", "a month", "reached", "acts as")
    parts: list[Part | None] = [to_table("Endpoints that change", columns, rows)]
    parts += [_metrics(each, quote) for each in changed]
    if rows:
        text = "Endpoints are paid for while they are there, with or without traffic. "
        parts.append(Paragraph(text + serving.SOURCES))
    return ReportSection("Endpoints", tuple(part for part in parts if part))


def _watching(changes: Sequence[WatchChange], quote: Quote) -> ReportSection:
    """Channels, alerts, budgets and dashboards that change, and whom they tell."""
    rows = [
        Row(
            (
                (f"{each.kind} {quote(each.name)}",),
                (each.action,),
                (quote(each.when, SENTENCE),),
                tuple(quote(name, SENTENCE) for name in each.told_before),
                tuple(quote(name, SENTENCE) for name in each.told),
            ),
            "destroys" if each.action == "delete" else "plain",
        )
        for each in changes
    ]
    columns = ("what", "what happens", "about", "told before", "told")
    table = to_table("Who is told of what", columns, rows)
    texts = [guards.OF_ALERTS] if any(each.kind == "alert" for each in changes) else []
    texts += [guards.OF_BUDGETS] if any(each.kind == "budget" for each in changes) else []
    parts = (table, *map(Paragraph, texts))
    return ReportSection("Alerts and budget", tuple(part for part in parts if part))


def _metrics(change: EndpointChange, quote: Quote) -> Table | None:
    """What the runs behind an endpoint measured, side by side."""
    names = dict.fromkeys(name for found in change.metrics.values() for name in found)
    rows = [
        Row(
            (
                (quote(name),),
                *((serving.shown(change.metrics[run].get(name)),) for run in change.runs),
            )
        )
        for name in names
    ]
    heads = (f"{quote(run)} ({serving.share_text(change, run)})" for run in change.runs)
    caption = f"What was measured of endpoint {quote(change.name)}"
    return to_table(caption, ("metric", *heads), rows)


def _preflight(report: ReviewReport, quote: Quote) -> Iterator[ReportSection]:
    if report.preflight:
        yield ReportSection("", (Paragraph(f"Preflight: {quote(report.preflight)}"),))


def _jobs(report: ReviewReport, quote: Quote) -> ReportSection:
    changed = [job for job in report.jobs if job.action != "keep"]
    kept = [job for job in report.jobs if job.action == "keep"]
    parts: list[Part] = []
    if changed:
        parts.append(_job_table("Jobs that change", changed, quote))
    if kept:
        count = f"Unchanged: {len(kept)}"
        rows = tuple(_job_row(job, quote) for job in kept)
        table = Table("Jobs that stay as they are", JOB_COLUMNS, rows)
        parts.append(Fold(count, (table,), comment=f"{count}."))
    filled = [
        Entry(
            f"{quote(job.name)}: {quote('jobDefaults')} fill in"
            f" {quote(', '.join(job.filled_in), ALL)}"
        )
        for job in changed
        if job.filled_in
    ]
    rungs = [
        Entry(
            f"{quote(job.name)}, rung {each.number} of {len(job.ladder)}: {quote(str(each), ALL)}"
        )
        for job in report.jobs
        for each in job.ladder
    ]
    idle = [
        Entry(
            f"{quote(job.name)} is cancelled when its accelerators are idle:"
            f" {quote(job.idle_stop or 'no more')}"
            + (f", before: {quote(before)}" if (before := job.idle_stop_before) else "")
        )
        for job in changed
        if job.idle_stop or (job.idle_stop_before and job.action != "cancel")
    ]
    seen = [Entry(_observed(job, quote)) for job in report.jobs if job.now]
    data = [
        Entry(f"{quote(job)} reads snapshot {quote(each.name)}, run {each.run}")
        for each in report.snapshots
        for job in each.readers
    ]
    lists = (filled, rungs, idle, data, seen)
    parts += [Listing((tuple(entries),)) for entries in lists if entries]
    if report.not_observed:
        parts.append(Paragraph(f"Jobs were not looked at: {quote(report.not_observed, SENTENCE)}"))
    if report.submitted:
        prices = Paragraph(f"{_prices(report)} {costs.NOT_INCLUDED}")
        parts.append(Fold("Where the prices come from, and what is not in them", (prices,)))
    parts += [
        Differences(f"What differs in job {quote(job.name)}", job.differences)
        for job in changed
        if job.differences
    ]
    return ReportSection("Jobs", tuple(parts))


def _job_table(caption: str, jobs: Sequence[JobChange], quote: Quote) -> Table:
    by_action = {
        action: ", ".join(job.name for job in jobs if job.action == action)
        for action in dict.fromkeys(job.action for job in jobs)
    }
    lines = (Entry(f"{j.action} {quote(j.name)}: {usd(j.cost.worst_case)}") for j in jobs)
    names = (Entry(f"{action}: {quote(names, ALL)}") for action, names in by_action.items())
    rows = tuple(_job_row(job, quote) for job in jobs)
    shorter = (Listing((tuple(lines),)), Listing((tuple(names),)))
    return Table(caption, JOB_COLUMNS, rows, shorter=shorter)


def _job_row(job: JobChange, quote: Quote) -> Row:
    lines = (
        (*job.machines, job.trials),
        (job.strategy,),
        (job.reservation,),
        (job.region,),
        (job.account.partition("@")[0],),
        (job.network.rpartition("/")[2],),
        tuple(shown_image(each) for each in job.images),
        (usd(job.cost.hourly),),
        at_most(job),
    )
    quoted = (tuple(quote(line) for line in cell if line) for cell in lines)
    return Row(((quote(job.name),), (fate(job),), *quoted))


def _observed(job: JobChange, quote: Quote) -> str:
    """The job that exists, as it is now."""
    assert job.now is not None  # only of a job that was looked at
    line = f"; last line: {quote(job.now.last_line)}" if job.now.last_line else ""
    return f"{quote(job.name)}: {progress(job.now)}{line}"


def _prices(report: ReviewReport) -> str:
    """Where the prices come from and how old they are."""
    found = {
        (rate.source, rate.date, rate.region + ("" if rate.exact else ", not of this job's region"))
        for job in report.submitted
        for pool in job.cost.pools
        if (rate := pool.rate)
    }
    sources = "; ".join(f"{source} ({date}; {where})" for source, date, where in sorted(found))
    thin = costs.thin_sources(job.strategy for job in report.submitted)
    return " ".join([f"Prices: {sources}." if sources else "No prices.", *thin])


def _images(report: ReviewReport, quote: Quote) -> Iterator[ReportSection]:
    if report.unseen_images:
        text = quote("; ".join(report.unseen_images), SENTENCE)
        yield ReportSection("", (Paragraph(f"Images were not looked up: {text}"),))
    if report.images:
        cells = _quoted((image_cells(each, report.origins) for each in report.images), quote)
        rows = tuple(Row(tuple((cell,) for cell in row)) for row in cells)
        caption = "Images that get another digest"
        yield ReportSection("Images", (Table(caption, IMAGE_COLUMNS, rows),))
    if report.other_images:
        lines = (image_line(each, report.origins) for each in report.other_images)
        quoted = _quoted(lines, quote)
        entries = tuple(Entry(f"{name}: {origin} ({jobs})") for name, origin, jobs in quoted)
        count = Paragraph(str(len(entries)))
        yield ReportSection("Other images in use", (Listing((entries,)),), count, "always")


def _notes(report: ReviewReport, quote: Quote) -> ReportSection:
    """The same in report after report, so it is folded. The first words of each are not."""
    lines = tuple(line for note in report.notes for line in note.message.splitlines())
    begins = (note.message.splitlines()[0] for note in report.notes if note.message)
    names = tuple(quote(cut(words, BEGINNING)) for words in begins)
    count = Paragraph("", names, by_semicolon=True)
    return ReportSection("To know", (Verbatim(lines),) if lines else (), count, "always")


def _rights(report: ReviewReport, quote: Quote, strong: Callable[[str], str]) -> ReportSection:
    def row(verb: str, binding: IamBinding) -> Row:
        on = grants.place(binding, quote)
        who = quote(grants.short_member(binding))
        danger: Danger = "destroys" if binding.is_public else "opens"
        return _verb_row(
            verb,
            danger,
            (f"{strong('everybody')} {who}" if binding.is_public else who,),
            (quote(binding.role),),
            (on, f"only if {quote(binding.condition)}") if binding.condition else (on,),
            (binding.reason,),
        )

    rows = [row("gained", each) for each in report.gained]
    rows += [row("lost", each) for each in report.lost]
    rows += [row("kept", each) for each in report.kept]
    columns = ("change", "who", "role", "on", "why")
    return to_section("Rights", to_table("Rights gained and lost", columns, rows))


def _access(report: ReviewReport, quote: Quote) -> ReportSection:
    rows = [
        _verb_row(
            change,
            "opens",
            (quote(grants.short_member(each)),),
            (grants.verb(each, quote),),
            (grants.place(each, quote),),
            (quote(grants.through(each)),),
        )
        for change, accesses in (("gained", report.access_gained), ("lost", report.access_lost))
        for each in accesses
        if each.through  # what is granted straight to somebody is among the rights
    ]
    columns = ("change", "who", "may", "what", "as")
    table = to_table("Access gained and lost", columns, rows, spaced=True)
    return to_section("Access to data, by acting as an account", table)


def _verb_row(verb: str, danger: Danger, *cells: tuple[str, ...]) -> Row:
    """A row of what is gained, with its danger, or lost."""
    return Row(((verb,), *cells), danger if verb == "gained" else "plain")


def _reachability(report: ReviewReport, quote: Quote) -> ReportSection:
    entries = tuple(
        Entry(
            quote(change.what, SENTENCE),
            lead=change.verb,
            danger=change.danger,
            name=change.resource,
            fields=change.differences,
        )
        for change in report.reachability
    )
    return to_section("Reachability", Listing((entries,)) if entries else None)


def _losses(report: ReviewReport, quote: Quote) -> ReportSection:
    groups = [
        tuple(Entry(kind.line(each, quote), danger=kind.danger) for each in findings)
        for kind, findings in report.risks.items()
        if kind.in_list and findings
    ]
    if report.destroyed:
        groups.append(
            tuple(
                Entry(
                    f"{fate_of_resource(each)}: {quote(each.name)} ({quote(each.type)})"
                    f"{f', and with it {each.takes}' if each.takes and not each.refused else ''}",
                    danger="destroys",
                )
                for each in report.destroyed
            )
        )
    parts: list[Part] = [Listing(tuple(groups))] if groups else []
    if names := tuple(map(quote, report.protected)):
        # The same in report after report.
        summary = f"Protected, Pulumi refuses to destroy them: {len(names)}"
        parts.append(Fold(summary, (Paragraph("", names),)))
    return ReportSection("Destroyed and protected" if groups else "", tuple(parts))


def _policies(report: ReviewReport, quote: Quote) -> ReportSection:
    lower = [(name, level) for name, level in report.levels.items() if level != "mandatory"]
    if not (report.violations or report.packs or lower):
        return ReportSection("Policies", ())
    parts: list[Part] = [Paragraph(_checked(report))]
    if lower:
        names = tuple(f"{quote(name)} {quote(level)}" for name, level in lower)
        parts.append(Paragraph("Not mandatory in this stack: ", names, "."))
    if report.violations:
        rows = (
            Row(
                (
                    (each.level,),
                    (quote(each.policy),),
                    (quote(each.urn.rpartition("::")[2]),),
                    (quote(each.message, SENTENCE),),
                ),
                "destroys" if each.is_mandatory else "plain",
            )
            for each in report.violations
        )
        columns = ("level", "policy", "resource", "what it says")
        parts.append(Table("What policies found", columns, tuple(rows), spaced=True))
    return ReportSection("Policies", tuple(parts))


def _checked(report: ReviewReport) -> str:
    """One line on the policies that checked the plan, and their results."""
    packs = ", ".join(report.packs)
    if not packs:
        return "No policy pack checked the plan."
    if not report.violations:
        return f"{report.policies} policies of {packs} found nothing."
    forbidding = len(report.forbidding)
    rest = len(report.violations) - forbidding
    return f"{report.policies} policies of {packs}: {forbidding} forbid it, {rest} only warn."


def _rest(report: ReviewReport, quote: Quote) -> ReportSection:
    if not (report.changes or report.folders or report.unchanged):
        return ReportSection("Everything else", ())
    folders = tuple(Entry(f"objects below {quote(f.name)}: {f.counts}") for f in report.folders)
    changes = tuple(_change(change, quote) for change in report.changes)
    found = Listing((folders, changes), minor=True)
    part = found if folders or changes else Paragraph("Nothing else changes.")
    count = Paragraph(f"{totals(report)}; {report.unchanged} unchanged")
    return ReportSection("Everything else", (part,), count, "comment")


def _change(change: ResourceChange, quote: Quote) -> Entry:
    is_new = change.op == "create"
    differs = change.paths and not is_new
    return Entry(
        f"{change.op} {quote(change.name)} ({quote(change.type)})",
        name=change.name,
        fields=change.differences,
        in_comment=not is_new,
        note=f"differs in the cloud: {quote(', '.join(change.paths), SENTENCE)}" if differs else "",
    )


def _warnings(report: ReviewReport) -> ReportSection:
    messages = tuple(each.message for each in report.warnings)
    parts = (Verbatim(messages),) if messages else ()
    return ReportSection("Warnings", parts, Paragraph(str(len(messages))), "comment")


def _picture(report: ReviewReport) -> ReportSection:
    drawn = graph(report)
    return ReportSection(
        "The stack after this change", (drawn,) if drawn.edges else (), None, "comment"
    )


def graph(report: ReviewReport) -> Graph:
    """The stack after the change."""
    drawn, gained = Graph(), set(report.gained)
    # New bindings first: a reader looks for them.
    for binding in sorted(report.held, key=lambda binding: binding not in gained)[:MAX_EDGES]:
        drawn.add(_holder(binding), _target(binding), _verb(binding.role), new=binding in gained)
    drawn.left = max(0, len(report.held) - MAX_EDGES)
    by_account: defaultdict[str, list[JobChange]] = defaultdict(list)
    for job in report.jobs:
        if job.action != "cancel":
            by_account[job.account].append(job)
    for account, jobs in sorted(by_account.items()):
        runner = Node("account", _account(account))
        if len(jobs) > MAX_JOBS:
            changed = sum(job.action != "keep" for job in jobs)
            many = Node("jobs", f"{len(jobs)}, {changed} of them new or changed")
            drawn.add(many, runner, "run as", new=changed > 0)
        else:
            for job in jobs:
                drawn.add(Node("job", job.name), runner, "runs as", new=job.submits)
    _add_endpoints(drawn, report)
    return drawn


def _add_endpoints(drawn: Graph, report: ReviewReport) -> None:
    """Endpoints with the shares of their versions, those that change first."""
    there = [each for each in report.endpoints if each.action != "delete"]
    drawn.endpoints_left = max(0, len(there) - MAX_JOBS)
    for each in sorted(there, key=lambda each: each.action == "keep")[:MAX_JOBS]:
        endpoint = Node("endpoint", each.name)
        for run, share in each.after.items():
            version = Node("model", f"{each.model} {run}")
            drawn.add(endpoint, version, f"{share} %", new=share != each.before.get(run))
        if each.account:
            runner = Node("account", _account(each.account))
            drawn.add(endpoint, runner, "runs as", new=not each.before)


def _holder(binding: IamBinding) -> Node:
    kind, _, name = binding.member.partition(":")
    if kind == "serviceAccount":
        return Node("account", _account(name))
    return Node(kind if name else EVERYBODY, name or binding.member)


def _target(binding: IamBinding) -> Node:
    tail = binding.target.rpartition("/")[2]
    return Node(binding.kind, _account(tail) if "@" in tail else tail)


def _account(address: str) -> str:
    """``trainer-dev`` of the address of a stack's account; others in full."""
    name, _, domain = address.partition("@")
    return name if domain.count(".") == 3 and "gcp-sa" not in domain else address


def _verb(role: str) -> str:
    short = role.rpartition("/")[2]
    return next((verb for part, verb in VERBS if part.lower() in short.lower()), short)


def _quoted(rows: Iterable[Iterable[str]], quote: Quote) -> list[tuple[str, ...]]:
    return [tuple(quote(cell) for cell in row) for row in rows]
