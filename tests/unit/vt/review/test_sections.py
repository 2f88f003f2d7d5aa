"""Each section of a report as a whole value: what stands in it, quoted, and when there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.vt.review import plans
from tests.unit.vt.review.quotes import quote_sized
from vertex_training.catalog import costs
from vertex_training.catalog.costs import Rate
from vertex_training.errors import Problem
from vertex_training.plan.access import Access
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import Diagnostic, JobObservation, PolicyViolation
from vertex_training_cli.review import report, sections
from vertex_training_cli.review.destroyed import DestructiveChange, FolderChange
from vertex_training_cli.review.grants import IamBinding
from vertex_training_cli.review.parts import (
    Differences,
    Entry,
    Fold,
    Listing,
    Paragraph,
    Part,
    ReportSection,
    Row,
    Table,
    Verbatim,
)
from vertex_training_cli.review.reachability import ReachabilityChange
from vertex_training_cli.review.report import ResourceChange, ReviewReport


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


def test_why_a_preview_failed_is_shown_as_it_is() -> None:
    errors = (Diagnostic("error", "one\ntwo"), Diagnostic("error", "three"))
    problem = Problem("is wrong", "x", "mend it")
    assert shown(built(errors=errors)) == [
        ReportSection("Why the preview failed", (Verbatim(("one", "two", "three")),))
    ]
    # An image that is missing, or a job that changes stacks, is found beside the preview.
    assert shown(built(errors=errors, problems=(problem,))) == [
        ReportSection("What is wrong", (Verbatim((str(problem),)),)),
        ReportSection("Why the preview failed", (Verbatim(("one", "two", "three")),)),
    ]


def test_warnings_and_notes_are_folded() -> None:
    long = "w" * 80
    notes = (Diagnostic("info", f"{long}\nmore"), Diagnostic("info", "b"), Diagnostic("info", ""))
    found = built(warnings=(Diagnostic("warning", "x\ny"),) * 2, notes=notes)
    names = (f"<{'w' * 71}…>", "<b>")
    assert shown(found) == [
        ReportSection("To know", (Verbatim((long, "more", "b")),),
                      Paragraph("", names, by_semicolon=True), "always"),
        ReportSection("Warnings", (Verbatim(("x\ny", "x\ny")),), Paragraph("2"), "comment"),
    ]  # fmt: skip


def test_a_preflight_and_images_that_nobody_looked_up_are_a_line() -> None:
    found = built(preflight="2 warnings", unseen_images=("a: why", "b: why"))
    assert shown(found) == [
        ReportSection("", (Paragraph("Preflight: <2 warnings>"),)),
        ReportSection("", (Paragraph("Images were not looked up: <a: why; b: why|400>"),)),
    ]


BINDING = IamBinding("serviceAccount:a@p", "roles/x", "bucket", "b/data", reason="it reads")


def test_rights_are_rows_with_their_danger() -> None:
    public = IamBinding("allUsers", "roles/y", "odd kind!", "c", "expr")
    found = built(gained=(BINDING, public), lost=(BINDING,), kept=(public,))
    own = (("<a@p>",), ("<roles/x>",), ("bucket <data>",), ("it reads",))
    everybody = (("**everybody** <allUsers>",), ("<roles/y>",),
                 ("<odd kind!> <c>", "only if <expr>"), ("",))  # fmt: skip
    rows = (
        Row((("gained",), *own), "opens"),
        Row((("gained",), *everybody), "destroys"),
        Row((("lost",), *own)),
        Row((("kept",), *everybody)),
    )
    columns = ("change", "who", "role", "on", "why")
    assert parts(found, "Rights") == (Table("Rights gained and lost", columns, rows),)


def test_access_by_acting_as_an_account_is_rows_of_their_own() -> None:
    through = ("a@p", "b@p")
    one = Access("user:u@x", "reads", "bucket", "b/data", through)
    straight = Access("user:v@x", "reads", "bucket", "data", ())
    other = Access("serviceAccount:s@x", "roles/own", "secret", "t", ("a@p",))
    found = built(access_gained=(one, straight), access_lost=(other,))
    rows = (
        Row((("gained",), ("<user:u@x>",), ("reads",), ("bucket <data>",), ("<a then b>",)),
            "opens"),
        Row((("lost",), ("<s@x>",), ("<roles/own>",), ("secret <t>",), ("<a>",))),
    )  # fmt: skip
    columns = ("change", "who", "may", "what", "as")
    title = "Access to data, by acting as an account"
    assert parts(found, title) == (Table("Access gained and lost", columns, rows, spaced=True),)
    assert shown(built(access_gained=(straight,))) == []


FIELD = FieldDifference("a.b", "1", "2")


def test_reachability_is_a_list_with_fields() -> None:
    changes = (
        ReachabilityChange("opens", "a way", "r1", (FIELD,), public=True),
        ReachabilityChange("closes", "another", "r2"),
    )
    assert parts(built(reachability=changes), "Reachability") == (
        Listing(((
            Entry("<a way|400>", "opens", "destroys", "r1", (FIELD,)),
            Entry("<another|400>", "closes", "plain", "r2"),
        ),)),
    )  # fmt: skip


def lost(name: str, **more: Any) -> DestructiveChange:
    return DestructiveChange(name, "gcp:t", **{"replaced": False, "takes": "", **more})


def test_what_is_destroyed_and_what_is_protected() -> None:
    gone = (
        lost("a", takes="all objects"),
        lost("b", replaced=True),
        lost("c", takes="all objects", refused=True),
    )
    found = built(destroyed=gone, protected=("d", "e"))
    protected = Fold(
        "Protected, Pulumi refuses to destroy them: 2", (Paragraph("", ("<d>", "<e>")),)
    )
    assert section(found, "Destroyed and protected") == ReportSection("Destroyed and protected", (
        Listing(((
            Entry("destroyed: <a> (<gcp:t>), and with it all objects", danger="destroys"),
            Entry("destroyed and made anew: <b> (<gcp:t>)", danger="destroys"),
            Entry("refused, it is protected; otherwise destroyed: <c> (<gcp:t>)",
                  danger="destroys"),
        ),)),
        protected,
    ))  # fmt: skip
    assert shown(built(protected=("d", "e"))) == [ReportSection("", (protected,))]


def test_risks_with_a_line_are_groups_before_what_is_destroyed() -> None:
    kinds = {kind: () for kind in report.RISKS}
    kinds |= {each: ("n",) for each in report.RISKS if each.key == "unprotected"}
    found = built(risks=kinds, destroyed=(lost("a"),))
    assert parts(found, "Destroyed and protected") == (
        Listing((
            (Entry("<n> loses its protection", danger="destroys"),),
            (Entry("destroyed: <a> (<gcp:t>)", danger="destroys"),),
        )),
    )  # fmt: skip


URN = "urn:pulumi:dev::p::t::bucket-data"


def broken(level: str) -> PolicyViolation:
    return PolicyViolation("rule", "acme", level, "bad", URN)  # type: ignore[arg-type]


def test_policies_say_who_checked_and_what_they_found() -> None:
    found = built(
        packs=("acme", "own"), policies=5, levels={"x": "advisory", "y": "mandatory", "z": "off"},
        violations=(broken("mandatory"), broken("advisory")),
    )  # fmt: skip
    cells = (("<rule>",), ("<bucket-data>",), ("<bad|400>",))
    assert parts(found, "Policies") == (
        Paragraph("5 policies of acme, own: 1 forbid it, 1 only warn."),
        Paragraph("Not mandatory in this stack: ", ("<x> <advisory>", "<z> <off>"), "."),
        Table(
            "What policies found", ("level", "policy", "resource", "what it says"),
            (Row((("mandatory",), *cells), "destroys"), Row((("advisory",), *cells))), spaced=True,
        ),
    )  # fmt: skip
    assert parts(built(levels={"x": "advisory"}), "Policies") == (
        Paragraph("No policy pack checked the plan."),
        Paragraph("Not mandatory in this stack: ", ("<x> <advisory>",), "."),
    )
    assert shown(built(levels={"x": "mandatory"})) == []


def test_everything_else_is_counted_and_listed() -> None:
    changes = (
        ResourceChange("create", "a", "t", (FIELD,), ("p",)),
        ResourceChange("update", "b", "t", (FIELD,)),
        ResourceChange("update", "c", "t", (), ("p", "q")),
    )
    folder = FolderChange("data/in", ["n1", "n2"], [], ["n3"])
    found = built(changes=changes, folders=(folder,), unchanged=7)
    assert section(found, "Everything else") == ReportSection(
        "Everything else",
        (Listing((
            (Entry("objects below <data/in>: 2 added, 1 removed"),),
            (
                Entry("create <a> (<t>)", name="a", fields=(FIELD,), in_comment=False),
                Entry("update <b> (<t>)", name="b", fields=(FIELD,)),
                Entry("update <c> (<t>)", name="c", note="differs in the cloud: <p, q|400>"),
            ),
        ), minor=True),),
        Paragraph("3 created, 2 updated, 1 deleted; 7 unchanged"),
        "comment",
    )  # fmt: skip
    assert parts(built(folders=(folder,)), "Everything else") == (
        Listing(((Entry("objects below <data/in>: 2 added, 1 removed"),), ()), minor=True),
    )
    assert section(built(unchanged=1), "Everything else") == ReportSection(
        "Everything else", (Paragraph("Nothing else changes."),),
        Paragraph("none; 1 unchanged"), "comment",
    )  # fmt: skip


def job_event(name: str, op: str = "create", **more: Any) -> Any:
    inputs = plans.job(name, **more)
    return plans.step(op, plans.JOB, name, None if op == "create" else inputs, inputs)


COLUMNS = (
    "job", "what happens", "machines", "strategy", "reservation", "region", "account", "network",
    "image", "an hour", "at most",
)  # fmt: skip


def test_a_job_that_is_submitted_is_a_row_with_its_prices() -> None:
    found = built(job_event("train"))
    pair = built(job_event("a"), job_event("b"), job_event("c", "same"))
    both = parts(pair, "Jobs")[0]
    assert isinstance(both, Table)
    assert both.shorter[1] == Listing(((Entry("submit: <a, b|64000>"),),))
    [table, prices, *rest] = parts(found, "Jobs")
    assert isinstance(table, Table)
    [row] = table.rows
    # n1-standard-4 in us-central1 is $0.1899990 an hour, with Vertex AI's fee of 15 % $0.2185.
    assert row == Row((
        ("<train>",), ("submitted",), ("<1 x n1-standard-4>",), ("<STANDARD>",), (),
        ("<us-central1>",), ("<trainer-dev>",), (), ("<n1-standard-4:v1>",), ("<$0.22>",),
        row.cells[10],
    ))  # fmt: skip
    assert row.cells[10] == ("<Vertex $0.22 (1 h)>", "<or Batch $0.76 (4 attempts of 1 h)>")
    assert table == Table("Jobs that change", COLUMNS, (row,), shorter=(
        Listing(((Entry("submit <train>: $0.22"),),)),
        Listing(((Entry("submit: <train|64000>"),),)),
    ))  # fmt: skip
    assert isinstance(prices, Fold)
    assert prices.summary == "Where the prices come from, and what is not in them"
    [text] = prices.parts
    assert isinstance(text, Paragraph)
    assert text.words.startswith("Prices: ")
    assert rest == []


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ([Rate(1, "list", "2026-02-01", "us-east4", exact=False),
          Rate(2, "list", "2026-01-01", "us-central1", exact=True),
          Rate(3, "list", "2026-01-01", "us-central1", exact=True)],
         "Prices: list (2026-01-01; us-central1); list (2026-02-01; us-east4, not of this job's "
         "region)."),
        ([None, Rate(2, "a catalogue", "2026-01-01", "us-central1", exact=True)],
         "Prices: a catalogue (2026-01-01; us-central1)."),
        ([None], "No prices."),
    ],
)  # fmt: skip
def test_prices_are_told_by_source_day_and_region_once(rates: list[Any], words: str) -> None:
    found = built(job_event("train"))
    [job] = found.jobs
    [pool] = job.cost.pools
    cost = replace(job.cost, pools=tuple(replace(pool, rate=each) for each in rates))
    fold = parts(replace(found, jobs=(replace(job, cost=cost),)), "Jobs")[1]
    assert fold == Fold(
        "Where the prices come from, and what is not in them",
        (Paragraph(f"{words} {costs.NOT_INCLUDED}"),),
    )


def test_images_are_a_table_and_those_that_stay_a_list_that_a_comment_counts() -> None:
    name = "us-central1-docker.pkg.dev/p/r/{}@sha256:{}"
    old, new, other = (name.format(*each) for each in (
        ("train", "1" * 64), ("train", "2" * 64), ("check", "3" * 64)))  # fmt: skip
    found = built(
        plans.step("replace", plans.JOB, "a", plans.job("a", plans.pool(image=old)),
                   plans.job("a", plans.pool(image=new), run=2)),
        plans.step("same", plans.JOB, "b", *[plans.job("b", plans.pool(image=other))] * 2),
        origins={other: "commit 1"},
    )  # fmt: skip
    table = section(found, "Images")
    assert table == ReportSection("Images", (Table(
        "Images that get another digest", ("image", "before", "after", "built from", "used by"),
        (Row((("<train>",), ("<sha256:111111111111>",), ("<sha256:222222222222>",),
              ("<not looked at>",), ("<a>",))),),
    ),))  # fmt: skip
    assert section(found, "Other images in use") == ReportSection(
        "Other images in use", (Listing(((
            Entry("<check@sha256:333333333333>: <commit 1> (<b>)"),),)),),
        Paragraph("1"), "always",
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


def test_sections_are_in_the_order_of_reading() -> None:
    found = built(
        job_event("new"), preflight="p", warnings=(Diagnostic("warning", "w"),),
        notes=(Diagnostic("info", "n"),), gained=(BINDING,), destroyed=(lost("a"),),
        reachability=(ReachabilityChange("opens", "a way", "r"),), packs=("acme",), unchanged=1,
        held=(BINDING,),
    )  # fmt: skip
    assert [each.title for each in shown(found)] == [
        "Jobs", "", "To know", "Rights", "Reachability", "Destroyed and protected", "Policies",
        "Everything else", "Warnings", "The stack after this change",
    ]  # fmt: skip
    last = shown(found)[-1]
    assert (last.count, last.fold, len(last.parts)) == (None, "comment", 1)


@pytest.mark.parametrize("action", ["submit", "keep"])
def test_a_job_that_is_there_is_told_as_it_is(action: str) -> None:
    found = built(job_event("new"))
    now = JobObservation("RUNNING", 3600.0, 1.5, "step 3")
    [job] = found.jobs
    made = parts(replace(found, jobs=(replace(job, action=action, now=now),)), "Jobs")
    entries = [each for part in made if isinstance(part, Listing) for each in part.groups[0]]
    assert entries == [Entry("<new>: running for 1h 0m, $1.50 so far; last line: <step 3>")]
    silent = replace(job, action=action, now=replace(now, last_line=""), idle_stop="5%")
    made = parts(replace(found, jobs=(silent,)), "Jobs")
    entries = [each for part in made if isinstance(part, Listing) for each in part.groups[0]]
    idle = [Entry("<new> is cancelled when its accelerators are idle: <5%>")]
    assert entries == [
        *idle * (action == "submit"),
        Entry("<new>: running for 1h 0m, $1.50 so far"),
    ]
