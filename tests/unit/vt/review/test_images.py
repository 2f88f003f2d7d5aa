"""A review says which image a job runs after the change, and what it was built from."""

from __future__ import annotations

import dataclasses
import json

from tests.unit.vt.review import plans
from vt.review import html, json_report, markdown, report
from vt.review.images.changes import image_changes

NAME = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/train"
OLD, NEW = f"{NAME}@sha256:{'a' * 64}", f"{NAME}@sha256:{'b' * 64}"


def job(name: str, *images: str) -> plans.Event:
    pools = [{**plans.pool(), "containerSpec": {"imageUri": image}} for image in images]
    return plans.job(name, *pools)


def change(name: str, old: tuple[str, ...], new: tuple[str, ...]) -> plans.Event:
    return plans.step(
        "replace", plans.JOB, f"training-{name}", old=job(name, *old), new=job(name, *new),
        outputs={"state": ""},
    )  # fmt: skip


def built(*told: plans.Event, origins: dict[str, str] | None = None) -> report.ReviewReport:
    made = report.build(plans.plan(*told), source="x")
    return dataclasses.replace(made, origins=origins or {})


def test_an_image_is_listed_once_with_all_jobs_that_run_it() -> None:
    told = built(change("a", (OLD, OLD), (NEW, NEW)), change("b", (OLD,), (NEW,)))
    [found] = told.images
    assert (found.name, found.jobs) == ("train", ("a", "b"))
    assert (found.old, found.new) == (OLD.partition("@")[2], NEW.partition("@")[2])


def test_a_job_whose_image_stays_lists_none() -> None:
    assert image_changes(built(change("a", (OLD,), (OLD,))).jobs) == ()
    assert "### Images" not in markdown.render(built(change("a", (OLD,), (OLD,))))


def test_every_format_has_old_and_new_digest_and_the_origin() -> None:
    told = built(change("a", (OLD,), (NEW,)), origins={NEW: "jobs/train at commit 0123456789ab"})
    row = "| `train` | `sha256:aaaaaaaaaaaa` | `sha256:bbbbbbbbbbbb` | `jobs/train at commit 01234"
    assert row in markdown.render(told)
    assert "jobs/train at commit 0123456789ab" in html.render(told)
    [found] = json.loads(json_report.render(told))["images"]
    assert found["new"] == f"sha256:{'b' * 64}"
    assert found["origin"] == "jobs/train at commit 0123456789ab"


def test_an_origin_that_nobody_looked_up_is_said() -> None:
    assert "| `not looked at` |" in markdown.render(built(change("a", (OLD,), (NEW,))))


def test_labels_of_an_image_are_text() -> None:
    origins = {NEW: "<script>x</script> | `` @everyone\n# head"}
    told = built(change("a", (OLD,), (NEW,)), origins=origins)
    assert "<script>x" not in html.render(told)
    assert "\n# head" not in markdown.render(told)
