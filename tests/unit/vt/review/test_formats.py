"""Markdown, HTML and JSON of a report."""

from __future__ import annotations

import html as entities
import json
import re
from html.parser import HTMLParser

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import Location, Problem
from vertex_training_cli.review import html, json_report, markdown, report
from vertex_training_cli.review.escaping import code
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.report import ReviewReport

NASTY = "a|b`c<img src=x onerror=alert(1)>@octocat ![x](http://x) \u202e"


def review(*told: plans.Event, problems: tuple[Problem, ...] = ()) -> ReviewReport:
    return report.build(plans.plan(*told), source="here", problems=problems)


def submit(name: str, **spec: str) -> plans.Event:
    return plans.create(plans.JOB, f"training-{name}", **plans.job(name, **spec))


@pytest.fixture
def everything() -> ReviewReport:
    """A report with every part."""
    return review(
        submit("new"),
        plans.step(
            "replace",
            plans.JOB,
            "training-changed",
            old=plans.job("changed"),
            new=plans.job("changed", plans.pool(replicas=2), run=2),
        ),
        plans.create(plans.MEMBER, "m", **plans.member("data", who="allUsers")),
        plans.create("gcp:compute/network:Network", "net", name="training"),
        plans.delete(plans.BUCKET, "storage-old", name="old"),
        plans.step("update", plans.BUCKET, "storage-b", old={"x": 1}, new={"x": 2}),
        plans.step("same", plans.BUCKET, "storage-p", {}, {}, protect=(True, True)),
        plans.violation("bucket-closed", "mandatory", "open to everybody", "urn::storage-b"),
        plans.said("warning", "look at this"),
        plans.said("error", "the plugin broke"),
        plans.summary("failed", acme="1.0"),
    )


def nasty() -> ReviewReport:
    return review(
        plans.create(plans.JOB, "j", **plans.job(NASTY, serviceAccount=NASTY, network=NASTY)),
        plans.create(plans.MEMBER, NASTY, **plans.member(NASTY, NASTY, NASTY)),
        plans.delete(plans.BUCKET, NASTY, name=NASTY),
        plans.step("update", plans.BUCKET, "b", old={"x": "1"}, new={"x": NASTY, NASTY: 1}),
        plans.violation(NASTY, "mandatory", NASTY, NASTY),
        plans.said("error", NASTY),
    )


def test_the_page_has_no_line_of_nothing_where_every_question_has_an_answer() -> None:
    limits = {"limits": {"limits": {"maxUsdPerJob": 500}}}
    events_ = [
        plans.step("replace", plans.JOB, "j", old=plans.job("j"), new=plans.job("j", run=2)),
        plans.step("same", "pulumi:pulumi:Stack", "vt-dev", {}, {}, outputs=limits),
        plans.create(plans.MEMBER, "m", **plans.member("data", who="allUsers")),
        plans.delete(plans.BUCKET, "storage-old", name="old"),
        plans.summary("failed"),
    ]
    assert "Nothing:" not in html.render(review(*events_))
    assert "Nothing: what becomes public." in entities.unescape(
        html.render(
            review(
                *(events_[:2] + events_[3:]),
                submit("new"),
                plans.create(plans.MEMBER, "m", **plans.member("data")),
            )
        )
    )


def test_markdown_answers_in_the_order_of_asking(everything: ReviewReport) -> None:
    text = markdown.render(everything)
    headings = re.findall(r"^### (.*)|<summary>(Everything|Warnings|The stack)", text, re.MULTILINE)
    assert [one or other for one, other in headings] == [
        "Why the preview failed",
        "Jobs",
        "Rights",
        "Reachability",
        "Destroyed and protected",
        "Policies",
        "Everything",
        "Warnings",
        "The stack",
    ]
    assert text.index(verdict(everything, code)) < text.index("### ")


def test_nothing_in_markdown_leaves_its_place() -> None:
    text = markdown.render(nasty())
    outside = re.sub(r"```.*?```|`[^`\n]*`|<code>.*?</code>", "", text, flags=re.DOTALL)
    for part in ("@octocat", "<img", "![x]", "onerror"):
        assert part not in outside, part
    rows = [line for line in text.splitlines() if line.startswith("|")]
    for row in rows:
        assert row.count("|") in (3, 6, 5, 12), row  # rights, policies, jobs


def test_every_job_is_in_a_comment_however_many_there_are() -> None:
    names = [f"job-{n:04}" for n in range(1500)]
    text = markdown.render(review(*(submit(name) for name in names)))
    assert len(text.encode()) <= 65_536
    assert all(name in text for name in names)


@pytest.mark.parametrize("count", [1, 50, 200, 400])
def test_a_comment_fits_and_keeps_its_verdict(count: int) -> None:
    told = [submit(f"job-{n}") for n in range(count)]
    told += [plans.create(plans.BUCKET, f"b{n}", name="x" * 60) for n in range(count)]
    told += [plans.create(plans.MEMBER, f"m{n}", **plans.member(f"b{n}")) for n in range(count)]
    found = review(*told)
    text = markdown.render(found)
    assert len(text.encode()) <= 65_536
    assert verdict(found, code) in text
    assert all(f"job-{n}`" in text for n in range(count))


def test_ten_thousand_mistakes_fit_as_well() -> None:
    problems = tuple(
        Problem("w" * 300, location=Location(f"jobs/{n}.yaml", 1, 1)) for n in range(10_000)
    )
    told = [submit(f"{n}-" + "x" * 36) for n in range(3000)]
    text = markdown.render(review(*told, plans.said("error", "no"), problems=problems))
    assert len(text.encode()) <= 65_536


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_has_no_script_and_asks_nobody_for_anything(everything: ReviewReport) -> None:
    for page in (Page(html.render(everything)), Page(html.render(nasty()))):
        assert not {"script", "img", "link", "iframe", "object"} & set(page.tags)
        names = {name for name, _ in page.attributes}
        assert not {name for name in names if name.startswith("on")} | names & {"src", "href"}


def test_a_page_tells_everything(everything: ReviewReport) -> None:
    text = " ".join(Page(html.render(everything)).text.split())
    for part in (
        verdict(everything),
        "look at this",
        "storage-old",
        "open to everybody",
        "network training",
        everything.digest,
        "jobSpec.workerPoolSpecs[0].replicaCount",
    ):
        assert part in text, part


def test_a_page_shows_values_as_they_are_and_spells_hidden_characters() -> None:
    text = html.render(nasty())
    assert "\u202e" not in text
    assert entities.escape("<img src=x onerror=alert(1)>") in text


def test_json_says_which_schema_it_has_and_all_the_rest(everything: ReviewReport) -> None:
    data = json.loads(json_report.render(everything))
    assert data["version"] == json_report.VERSION
    assert (data["outcome"], data["exitCode"]) == ("forbidden", 3)
    assert data["digest"] == everything.digest
    assert [job["name"] for job in data["jobs"]] == ["changed", "new"]
    assert data["jobs"][0]["action"] == "replace"
    assert data["jobs"][1]["pools"][0]["price"]["source"]
    assert data["rights"]["gained"][0]["public"] is True
    assert data["policies"]["violations"][0]["level"] == "mandatory"
    assert data["errors"] == ["the plugin broke"]


def test_mistakes_in_files_stand_in_for_the_engines_text() -> None:
    problem = Problem(
        "not there", "x", "write y", location=Location("jobs/a.yaml", 3, 4), rule="some-rule"
    )
    found = review(plans.said("error", "1 mistake; …"), problems=(problem,))
    for text in (markdown.render(found), html.render(found), json_report.render(found)):
        assert "jobs/a.yaml:3:4" in text
        assert "1 mistake" not in text


def test_the_picture_shows_who_does_what_and_what_is_new(everything: ReviewReport) -> None:
    text = markdown.render(everything)
    assert '"everybody allUsers"' in text
    assert "linkStyle" in text
    assert re.search(r'"job new".*"runs as"', text, re.DOTALL)


def test_a_picture_of_many_jobs_has_one_node_for_them() -> None:
    text = markdown.render(review(*(submit(f"job-{n}") for n in range(40))))
    assert "40 jobs" in text


def test_json_says_which_stack_it_is_about_and_where_it_is(everything: ReviewReport) -> None:
    data = json.loads(json_report.render(everything))
    place = {key: data[key] for key in ("stack", "project", "region", "source")}
    assert place == {
        "stack": "dev", "project": "acme-ml-dev", "region": "us-central1", "source": "here",
    }  # fmt: skip


def test_each_cell_of_a_job_stands_below_its_heading(everything: ReviewReport) -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.render(everything).splitlines()
        if line.startswith(("| job ", "| `new` "))
    ]
    shown = dict(zip(*rows, strict=True))
    assert shown["job"] == "`new`"
    assert shown["what happens"] == "submitted"
    assert shown["machines"] == "`1 x n1-standard-4`"
    assert shown["region"] == "`us-central1`"
    assert shown["account"] == "`trainer-dev`"
    assert shown["image"] == "`n1-standard-4:v1`"


def test_the_table_of_policies_ends_with_an_empty_line() -> None:
    text = markdown.render(review(plans.violation("bucket-closed", "mandatory", "open", "u::b")))
    row = "| mandatory | `bucket-closed` | `b` | `open` |\n"
    assert text.partition(row)[2].startswith("\n")


def test_a_review_without_protected_resources_does_not_speak_of_them() -> None:
    text = markdown.render(review(plans.delete(plans.BUCKET, "storage-old", name="old")))
    assert "### Destroyed and protected" in text
    assert "Protected, " not in text
    inputs = {"name": "data"}
    kept = plans.step("same", plans.BUCKET, "storage-b", inputs, inputs, protect=(True, True))
    text = markdown.render(review(kept))
    assert "<summary>Protected, Pulumi refuses to destroy them: 1</summary>\n\n`storage-b`" in text


def test_a_resource_made_anew_is_told_from_one_that_is_gone() -> None:
    old, new = {"name": "b"}, {"name": "c"}
    text = markdown.render(
        review(
            plans.step("replace", plans.BUCKET, "storage-b", old=old, new=new),
            plans.delete(plans.BUCKET, "storage-old", name="old"),
        )
    )
    assert "- destroyed and made anew: `storage-b`" in text
    assert "- destroyed: `storage-old`" in text


def test_nothing_else_is_none_of_it() -> None:
    same = plans.step("same", plans.BUCKET, "b", old={"name": "b"}, new={"name": "b"})
    assert "Everything else: none; 1 unchanged" in markdown.render(review(same))
