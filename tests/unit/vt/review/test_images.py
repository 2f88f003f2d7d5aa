"""A review says which image a job runs after the change, and what it was built from."""

from __future__ import annotations

import dataclasses
import json

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import SCHEDULE
from vertex_training.errors import Problem
from vertex_training_cli.engine import plan_file
from vertex_training_cli.jobs.moved import RULE as MOVED
from vertex_training_cli.review import html, json_report, markdown, report
from vertex_training_cli.review.images import image_changes

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


def test_an_image_that_cannot_be_run_stands_against_the_change() -> None:
    told = built(change("a", (OLD,), (NEW,)))
    missing = Problem("image train of a: the registry has no image", NEW, rule="image-missing")
    found = report.with_images(told, [missing], [], {})
    assert found.outcome == report.ReviewOutcome.FAILED
    assert found.digest == told.digest
    text = markdown.render(found)
    assert "1 image cannot be run" in text
    assert "the registry has no image" in text
    assert "the registry has no image" in html.render(found)


def test_it_stands_against_the_change_in_the_comment_on_a_pull_request_too() -> None:
    plan = plans.plan(change("a", (OLD,), (NEW,)))
    missing = Problem("image train of a: the registry has no image", NEW, rule="image-missing")
    file = plan_file.parse(
        plan_file.write(plan, "Previewed against the local stack's state", (missing,)).encode(),
        "dev",
    )
    found = report.build(file.plan, source=file.source, problems=file.problems)
    assert found.outcome == report.ReviewOutcome.FAILED
    assert "1 image cannot be run" in markdown.render(found)


def test_a_job_that_goes_to_another_stack_is_not_said_to_be_a_preview_that_failed() -> None:
    moved = Problem("job a goes from stack dev to qa and has not ended", rule=MOVED)
    found = report.with_problems(built(change("a", (OLD,), (NEW,))), [moved])
    assert found.outcome == report.ReviewOutcome.FAILED
    text = markdown.render(found)
    assert "**1 running job would change stacks; 1 job replaced;" in text
    assert "preview failed" not in text


def test_a_mistake_about_an_image_in_a_job_file_is_a_preview_that_failed() -> None:
    wrong = Problem("imageUri: is no image", "x", rule="image-name")
    text = markdown.render(report.build(plans.plan(), source="x", problems=[wrong]))
    assert "cannot be run" not in text
    assert "what comes after the point where the preview failed" in text


def test_a_worse_outcome_stays() -> None:
    told = dataclasses.replace(
        built(change("a", (OLD,), (NEW,))), outcome=report.ReviewOutcome.FORBIDDEN
    )
    missing = Problem("image train of a: none", rule="image-missing")
    assert report.with_images(told, [missing], [], {}).outcome == report.ReviewOutcome.FORBIDDEN


def test_an_image_that_nobody_could_look_up_is_said_and_stands_against_nothing() -> None:
    told = report.with_images(
        built(change("a", (OLD,), (NEW,))), [], ["train: <b>403</b> `x` |"], {}
    )
    assert told.outcome == report.ReviewOutcome.CLEAN
    assert "Images were not looked up: " in markdown.render(told)
    assert "<b>403" not in html.render(told)
    assert json.loads(json_report.render(told))["unseenImages"] == ["train: <b>403</b> `x` |"]


def test_images_that_stay_or_are_new_are_listed_with_what_they_were_built_from() -> None:
    other = OLD.replace("/train@", "/check@")
    new = plans.step("create", plans.JOB, "training-c", new=job("c", other))
    gone = plans.step("delete", plans.JOB, "training-d", old=job("d", OLD.replace("/t", "/gone")))
    prebuilt = change(
        "e", ("us-docker.pkg.dev/vertex-ai/x:1",), ("us-docker.pkg.dev/vertex-ai/x:1",)
    )
    told = built(
        change("a", (OLD,), (NEW,)), change("b", (other,), (other,)), new, gone, prebuilt,
        origins={other: "jobs/check at commit 0123456789ab"},
    )  # fmt: skip
    [found] = told.other_images
    assert (found.name, found.jobs) == ("check", ("b", "c"))
    text = markdown.render(told)
    assert "Other images in use: 1" in text
    assert "- `check@sha256:aaaaaaaaaaaa`: `jobs/check at commit 0123456789ab` (`b, c`)" in text
    assert "jobs/check at commit 0123456789ab" in html.render(told)
    assert json.loads(json_report.render(told))["otherImages"] == [
        {
            "name": "check", "version": f"sha256:{'a' * 64}", "uri": other, "jobs": ["b", "c"],
            "origin": "jobs/check at commit 0123456789ab",
        }
    ]  # fmt: skip


def test_an_image_that_was_removed_while_its_job_runs_is_said() -> None:
    told = built(change("a", (OLD,), (OLD,)), origins={OLD: "the registry has no such image"})
    assert "- `train@sha256:aaaaaaaaaaaa`: `the registry has no such image` (`a`)" in (
        markdown.render(told)
    )


def test_a_schedule_runs_images_as_jobs_do() -> None:
    def event(op: str, name: str, old: str, new: str) -> plans.Event:
        sides = (job(name, old), None if op == "delete" else job(name, new))
        return plans.step(op, SCHEDULE, f"training-{name}-schedule", *sides)

    told = built(
        event("update", "a", OLD, NEW), event("same", "b", OLD, OLD), event("delete", "c", OLD, OLD)
    )
    [changed], [stays] = told.images, told.other_images
    assert (changed.uri, changed.jobs) == (NEW, ("a",))
    assert (stays.uri, stays.jobs) == (OLD, ("b",))
