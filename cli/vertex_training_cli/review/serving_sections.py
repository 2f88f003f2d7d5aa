"""The sections of a report on schedules, snapshots, models and endpoints, and on who is told."""

from __future__ import annotations

from collections.abc import Sequence

from vertex_training_cli.review import alerts, images, schedules, serving, snapshots
from vertex_training_cli.review.alerts import WatchChange
from vertex_training_cli.review.parts import (
    SENTENCE,
    Differences,
    Entry,
    Listing,
    Paragraph,
    Part,
    ReportSection,
    Row,
    Table,
    to_table,
)
from vertex_training_cli.review.risk import Quote
from vertex_training_cli.review.serving import EndpointChange, VersionChange
from vertex_training_cli.review.snapshots import SnapshotChange


def of_schedules(changes: Sequence[schedules.ScheduleChange], quote: Quote) -> ReportSection:
    """All schedules: one that stays as it is goes on to cost what it did."""
    rows = [
        Row(
            (
                (quote(each.name),),
                (schedules.FATES[each.action],),
                (quote(each.words, SENTENCE),),
                each.slots or (("paused",) if each.paused else ("none",)),
                (quote(each.missed),),
                tuple(quote(images.shown(image)) for image in each.images),
                (quote(each.account.partition("@")[0]),),
                (each.cost,),
            ),
            "destroys" if each.action == "end" else "plain",
        )
        for each in changes
    ]
    columns = ("schedule", "what happens", "when", f"next {schedules.SHOWN} slots", "missed slots",
               "image", "account", "a month")  # fmt: skip
    table = to_table("Jobs that are submitted by a schedule", columns, rows)
    parts: list[Part] = [table, Paragraph(schedules.TIMER)] if table else []
    parts += [
        Differences(f"What differs in schedule {quote(each.name)}", each.differences)
        for each in changes
        if each.differences
    ]
    return ReportSection("Schedules", tuple(parts))


def of_snapshots(changes: Sequence[SnapshotChange], quote: Quote) -> ReportSection:
    """Snapshots: all of them, since tables that changed are seen nowhere else."""
    rows = [
        Row(
            (
                (quote(each.name),),
                (each.run,),
                (snapshots.FATES[each.action],),
                (quote(each.told, SENTENCE),),
                (quote(each.folder, SENTENCE),),
                tuple(map(quote, each.readers)),
            )
        )
        for each in changes
    ]
    columns = ("snapshot", "run", "what happens", "what is known", "folder", "read by")
    table = to_table("Snapshots of BigQuery", columns, rows)
    return ReportSection("Snapshots", (table, Paragraph(snapshots.PRICES)) if table else ())


def models(versions: Sequence[VersionChange], quote: Quote) -> ReportSection:
    """Versions that change, and what could not be asked of their runs."""
    changed = [each for each in versions if each.action != "keep"]
    rows = [
        Row(
            (
                (quote(each.model),),
                (quote(f"run {each.run}"),),
                (each.action,),
                (quote(each.job),),
                tuple(quote(images.shown(i)) for i in (each.image_before, each.image) if i),
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


def endpoints(changes: Sequence[EndpointChange], quote: Quote) -> ReportSection:
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


def watching(changes: Sequence[WatchChange], quote: Quote) -> ReportSection:
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
    texts = [alerts.LIMITS] if any(each.kind == "alert" for each in changes) else []
    texts += [alerts.OF_BUDGETS] if any(each.kind == "budget" for each in changes) else []
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
