"""Markdown, HTML and JSON of a report."""

from __future__ import annotations

import html as entities
import json
from html.parser import HTMLParser

import pytest

from tests.unit.vt.review import plans
from vertex_training.errors import Location, Problem
from vertex_training_cli.review import formats, report
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


def test_every_job_is_in_a_comment_however_many_there_are() -> None:
    names = [f"job-{n:04}" for n in range(1500)]
    text = formats.to_markdown(review(*(submit(name) for name in names)))
    assert len(text.encode()) <= 65_536
    assert all(name in text for name in names)


def test_ten_thousand_mistakes_fit_as_well() -> None:
    problems = tuple(
        Problem("w" * 300, location=Location(f"jobs/{n}.yaml", 1, 1)) for n in range(10_000)
    )
    told = [submit(f"{n}-" + "x" * 36) for n in range(3000)]
    text = formats.to_markdown(review(*told, plans.said("error", "no"), problems=problems))
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
    for page in (Page(formats.to_html(everything)), Page(formats.to_html(nasty()))):
        assert not {"script", "img", "link", "iframe", "object"} & set(page.tags)
        names = {name for name, _ in page.attributes}
        assert not {name for name in names if name.startswith("on")} | names & {"src", "href"}


def test_a_page_shows_values_as_they_are_and_spells_hidden_characters() -> None:
    text = formats.to_html(nasty())
    assert "\u202e" not in text
    assert entities.escape("<img src=x onerror=alert(1)>") in text


def test_json_says_which_stack_it_is_about_and_where_it_is(everything: ReviewReport) -> None:
    data = json.loads(formats.to_json(everything))
    place = {key: data[key] for key in ("stack", "project", "region", "source")}
    assert place == {
        "stack": "dev", "project": "acme-ml-dev", "region": "us-central1", "source": "here",
    }  # fmt: skip
