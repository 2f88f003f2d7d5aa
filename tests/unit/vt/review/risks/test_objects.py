"""What a plan destroys, and objects of a folder that the stack keeps: one line of a review."""

from __future__ import annotations

import dataclasses
import json

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import destroyed, formats, report
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
    text = formats.to_markdown(found)
    line = "objects below {}: 3 added, 1 changed, 2 removed"
    assert f"- {line.format('`data/configs/sets`')}\n" in text
    assert line.format("<code>data/configs/sets</code>") in formats.to_html(found)
    assert "2 objects below `data/configs/sets` (files of the stack)" in text
    assert "a.yaml" not in text
    assert "storage-data/alone.csv" in text
    assert "Other changes: 4 created, 1 replaced, 2 deleted" in text
    [folder] = json.loads(formats.to_json(found))["objects"]
    assert folder["changed"] == ["storage-data/configs/sets/a.yaml"]


def test_a_folder_that_left_the_stack_file_is_a_line_as_well() -> None:
    found = review(kept("delete", "data/old/x/a"), kept("delete", "data/old/y/b"))
    assert [(each.name, each.counts) for each in found.folders] == [("data/old", "2 removed")]
    assert found.destroyed == ()


def folders(*told: plans.Event, **buckets: object) -> list[tuple[str, str]]:
    config = {"vertex-training:buckets": json.dumps(buckets)}
    plan = dataclasses.replace(plans.plan(*told), config=config)
    return [(each.name, each.counts) for each in destroyed.folder_changes(plan)]


BUCKET = {"name": "acme-data"}


def planned(*told: plans.Event, outputs: object = None, accepted: object = None) -> Plan:
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "s", {}, {}, outputs={"buckets": outputs or {}}
    )
    config = {"vertex-training:drift": json.dumps({"acceptedLosses": accepted or {}})}
    return events.parse(plans.lines(stack, *told, config=config), "dev")


RESTORE = "restore it first: gcloud storage restore gs://acme-data#GENERATION"


def test_an_accepted_loss_forbids_nothing_and_a_needless_one_is_warned_of() -> None:
    made = plans.step("create", plans.BUCKET, "storage-data", new=BUCKET, protect=(False, True))
    there = plans.step("same", plans.BUCKET, "storage-raw", {"name": "r"}, {"name": "r"})
    outputs = {"data": "gs://acme-data"}
    reasons = {"storage-data": "moved", "storage-raw": "moved", "storage-x": "never was"}
    plan = planned(made, there, outputs=outputs, accepted=reasons)
    assert destroyed.refused_losses(plan) == ()
    assert destroyed.accepted_losses(plan) == reasons
    both = dict.fromkeys(("storage-raw", "storage-base"), "moved")
    base = plans.step("same", plans.BUCKET, "storage-base", {"name": "b"}, {"name": "b"})
    found = destroyed.needless_acceptances(planned(there, base, accepted=both))
    assert [each.message.split()[1] for each in found] == ["storage-base", "storage-raw"]
    [warning] = destroyed.needless_acceptances(plan)
    assert (warning.severity, warning.message) == (
        "warning",
        "drift.acceptedLosses: storage-raw exists. Remove the entry: it would accept a later loss.",
    )
    refused = report.build(planned(made, there, outputs=outputs), source="here")
    assert refused.outcome == report.ReviewOutcome.FORBIDDEN
    [problem] = refused.problems
    assert (problem.value, problem.rule) == ("storage-data", "accepted-loss")
    accept = "If data is lost, add the resource to drift.acceptedLosses in the stack file"
    assert problem.hint == f"{RESTORE}. {accept}"
