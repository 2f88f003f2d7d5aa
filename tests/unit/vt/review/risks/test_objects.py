"""Objects of a folder that the stack keeps are one line of a review."""

from __future__ import annotations

import dataclasses
import json

from tests.unit.vt.review import plans
from vertex_training_cli.review import html, json_report, markdown, report
from vertex_training_cli.review.destroyed import OBJECT
from vertex_training_cli.review.report import ReviewReport

CONFIG = {
    "gcp:project": "acme-ml-dev",
    "gcp:region": "us-central1",
    "vertex-training:buckets": json.dumps({"data": {"objects": {"configs/sets": "jobs/sets"}}}),
}


def kept(op: str, name: str) -> plans.Event:
    old, new = ({"name": name, "source": source} for source in ("one", "two"))
    sides = {"create": (None, new), "delete": (old, None)}.get(op, (old, new))
    return plans.step(op, OBJECT, f"storage-{name}", *sides)


def review(*told: plans.Event) -> ReviewReport:
    return report.build(dataclasses.replace(plans.plan(*told), config=CONFIG), source="here")


def test_a_folder_is_one_line_with_what_is_added_changed_and_removed() -> None:
    found = review(
        *(kept("create", f"data/configs/sets/new/{n}.yaml") for n in range(3)),
        kept("replace", "data/configs/sets/a.yaml"),
        kept("delete", "data/configs/sets/b.yaml"),
        kept("delete", "data/configs/sets/c.yaml"),
        kept("create", "data/alone.csv"),
    )
    text = markdown.render(found)
    line = "objects below {}: 3 added, 1 changed, 2 removed"
    assert f"- {line.format('`data/configs/sets`')}\n" in text
    assert line.format("<code>data/configs/sets</code>") in html.render(found)
    assert "2 objects below `data/configs/sets`, files of the stack" in text
    assert "a.yaml" not in text
    assert "storage-data/alone.csv" in text
    assert "Everything else: 4 created, 1 replaced, 2 deleted" in text
    [folder] = json.loads(json_report.render(found))["objects"]
    assert folder["changed"] == ["storage-data/configs/sets/a.yaml"]


def test_a_folder_that_left_the_stack_file_is_a_line_as_well() -> None:
    found = review(kept("delete", "data/old/x/a"), kept("delete", "data/old/y/b"))
    assert [(each.name, each.counts) for each in found.folders] == [("data/old", "2 removed")]
    assert found.destroyed == ()


def test_one_object_is_shown_as_it_was() -> None:
    found = review(kept("create", "data/configs/sets/a.yaml"))
    assert found.folders == ()
    assert [change.name for change in found.changes] == ["storage-data/configs/sets/a.yaml"]
