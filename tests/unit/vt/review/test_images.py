"""A review says which image a job runs after the change, and what it was built from."""

from __future__ import annotations

import dataclasses
import json

from tests.unit.vt.review import plans
from vertex_training_cli.review import html, json_report, markdown, report

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


def test_an_image_that_nobody_could_look_up_is_said_and_stands_against_nothing() -> None:
    told = report.with_images(
        built(change("a", (OLD,), (NEW,))), [], ["train: <b>403</b> `x` |"], {}
    )
    assert told.outcome == report.ReviewOutcome.CLEAN
    assert "Images were not looked up: " in markdown.render(told)
    assert "<b>403" not in html.render(told)
    assert json.loads(json_report.render(told))["unseenImages"] == ["train: <b>403</b> `x` |"]
