"""Sections of a report on schedules, snapshots and who is told of what, as whole values."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.vt.review.quotes import quote_sized
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import serving_sections
from vertex_training_cli.review.alerts import WatchChange
from vertex_training_cli.review.parts import Differences, Paragraph, ReportSection, Row, Table
from vertex_training_cli.review.schedules import ScheduleChange

FIELD = FieldDifference("cron", "a", "b")
SCHEDULE = ScheduleChange(
    "nightly", "change", "every day", False, "latest", ("2026-11-28 01:00", "2026-11-29 01:00"),
    31, 62.0, "trainer@p.iam", ("r/train@sha256:" + "1" * 64,), (FIELD,),
)  # fmt: skip
TIMER = (
    "`vt jobs advance` submits slots, whenever a timer runs it: without one, nothing runs. Slots "
    "are named in UTC, as seen from when this was written."
)


CHANGES = "changes: the next slot is submitted as it is then"
BEGINS = "begins: the first slot after the deployment is the first that is submitted"
ENDS = "ends: nothing is submitted any more, and the job of a slot that runs is cancelled"


def test_schedules_are_rows_with_their_next_slots() -> None:
    paused = replace(
        SCHEDULE, name="p", action="begin", paused=True, slots=(), images=(), account="",
        differences=(), worst_month_usd=None,
    )  # fmt: skip
    ended = replace(SCHEDULE, name="e", action="end", slots=(), differences=())
    kept = replace(SCHEDULE, name="k", action="keep", differences=())
    columns = (
        "schedule", "what happens", "when", "next 5 slots", "missed slots", "image", "account",
        "a month",
    )  # fmt: skip
    image = ("<train@sha256:111111111111>",)
    end, price = (("<latest>",), image, ("<trainer>",)), ("at most $62.00 a month (31 slots)",)
    slots = ("2026-11-28 01:00", "2026-11-29 01:00")
    every = ("<every day|400>",)
    rows = (
        Row((("<nightly>",), (CHANGES,), every, slots, *end, price)),
        Row((("<p>",), (BEGINS,), every, ("paused",), ("<latest>",), (), ("<>",),
             ("nothing while it is paused, no price a month afterwards",))),
        Row((("<e>",), (ENDS,), every, ("none",), *end, price), "destroys"),
        Row((("<k>",), ("unchanged",), every, slots, *end, price)),
    )  # fmt: skip
    assert serving_sections.of_schedules(
        [SCHEDULE, paused, ended, kept], quote_sized
    ) == ReportSection(
        "Schedules",
        (
            Table("Jobs that are submitted by a schedule", columns, rows),
            Paragraph(TIMER),
            Differences("What differs in schedule <nightly>", (FIELD,)),
        ),
    )
    assert serving_sections.of_schedules([], quote_sized) == ReportSection("Schedules", ())


def test_who_is_told_of_what_ends_with_what_alerts_and_budgets_cannot_do() -> None:
    changes = [
        WatchChange(kind, f"n-{kind}", "delete" if kind == "alert" else "update", "about it",
                    ("a", "b"), ("c",))
        for kind in ("alert", "budget", "channel")
    ]  # fmt: skip
    columns = ("what", "what happens", "about", "told before", "told")
    cells = (("<about it|400>",), ("<a|400>", "<b|400>"), ("<c|400>",))
    rows = (
        Row((("alert <n-alert>",), ("delete",), *cells), "destroys"),
        Row((("budget <n-budget>",), ("update",), *cells)),
        Row((("channel <n-channel>",), ("update",), *cells)),
    )
    budget = (
        "A budget stops nothing: it sends mail, up to a day after the cost. Limits of the stack "
        "file and timeouts of jobs stay the bounds."
    )
    found = serving_sections.watching(changes, quote_sized)
    assert found.title == "Alerts and budget"
    table, limits, last = found.parts
    assert (table, last) == (Table("Who is told of what", columns, rows), Paragraph(budget))
    assert limits == Paragraph(
        "Alerts are about every job of the project: neither logs nor metrics of a job say which "
        "stack sent it. Nothing tells how long a job is queued."
    )
    assert serving_sections.watching(changes[1:2], quote_sized).parts[1:] == (last,)
    assert serving_sections.watching(changes[:1], quote_sized).parts[1:] == (limits,)
    assert len(serving_sections.watching(changes[2:], quote_sized).parts) == 1
    assert serving_sections.watching([], quote_sized) == ReportSection("Alerts and budget", ())
