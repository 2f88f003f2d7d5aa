"""Each section of a report as a whole value: what stands in it, quoted, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.vt.review import plans
from tests.unit.vt.review.quotes import quote_sized
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.review import report, sections
from vertex_training_cli.review.parts import (
    Differences,
    Entry,
    Fold,
    Listing,
    Paragraph,
    Part,
    ReportSection,
    Table,
)
from vertex_training_cli.review.report import ReviewReport


def built(*told: Any, **changes: Any) -> ReviewReport:
    return replace(report.build(plans.plan(*told), source="here"), **changes)


def shown(found: ReviewReport) -> list[ReportSection]:
    return sections.sections(found, quote_sized, lambda words: f"**{words}**")


def section(found: ReviewReport, title: str) -> ReportSection:
    [it] = [each for each in shown(found) if each.title == title]
    return it


def parts(found: ReviewReport, title: str) -> tuple[Part, ...]:
    return section(found, title).parts


def test_nothing_that_changes_is_one_line_of_no_policies() -> None:
    assert shown(built()) == []
    assert shown(built(packs=("acme",), policies=3)) == [
        ReportSection("Policies", (Paragraph("3 policies of acme found nothing."),))
    ]


def test_a_preflight_and_images_that_nobody_looked_up_are_a_line() -> None:
    found = built(preflight="2 warnings", unseen_images=("a: why", "b: why"))
    assert shown(found) == [
        ReportSection("", (Paragraph("Preflight: <2 warnings>"),)),
        ReportSection("", (Paragraph("Images were not looked up: <a: why; b: why|400>"),)),
    ]


FIELD = FieldDifference("a.b", "1", "2")


def job_event(name: str, op: str = "create", **more: Any) -> Any:
    inputs = plans.job(name, **more)
    return plans.step(op, plans.JOB, name, None if op == "create" else inputs, inputs)


COLUMNS = (
    "job", "what happens", "machines", "strategy", "reservation", "region", "account", "network",
    "image", "an hour", "at most",
)  # fmt: skip


def test_jobs_that_stay_are_folded_and_lists_follow_the_tables() -> None:
    found = built(job_event("kept", "same"), job_event("new"), not_observed="no right")
    new, kept = sorted(found.jobs, key=lambda job: job.action == "keep")
    jobs = (
        kept,
        replace(new, filled_in=("a", "b"), idle_stop="5% for 30m", idle_stop_before="1% for 1h",
                differences=(FIELD,)),
        replace(new, name="off", idle_stop_before="1% for 1h"),
        replace(new, name="gone", action="cancel", idle_stop_before="1% for 1h"),
    )  # fmt: skip
    made = parts(replace(found, jobs=jobs), "Jobs")
    fold = made[1]
    assert isinstance(fold, Fold)
    assert (fold.summary, fold.comment) == ("Unchanged: 1", "Unchanged: 1.")
    [table] = fold.parts
    assert isinstance(table, Table)
    assert (table.caption, table.columns, len(table.rows)) == (
        "Jobs that stay as they are", COLUMNS, 1
    )  # fmt: skip
    assert table.rows[0].cells[:2] == (("<kept>",), ("unchanged",))
    assert made[2:5] == (
        Listing(((Entry("<new>: <jobDefaults> fill in <a, b|64000>"),),)),
        Listing(((
            Entry("<new> is cancelled when its accelerators are idle: <5% for 30m>, before: "
                  "<1% for 1h>"),
            Entry("<off> is cancelled when its accelerators are idle: <no more>, before: "
                  "<1% for 1h>"),
        ),)),
        Paragraph("Jobs were not looked at: <no right|400>"),
    )  # fmt: skip
    assert made[6:] == (Differences("What differs in job <new>", (FIELD,)),)
