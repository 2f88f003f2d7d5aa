"""What a plan destroys, and objects of a folder that the stack keeps: one line of a review."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.unit.vt.review import plans
from tests.unit.vt.review.quotes import quote
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import destroyed, html, json_report, markdown, report
from vertex_training_cli.review.destroyed import OBJECT
from vertex_training_cli.review.report import ReviewReport
from vertex_training_cli.review.risk import RiskKind

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


def folders(*told: plans.Event, **buckets: object) -> list[tuple[str, str]]:
    config = {"vertex-training:buckets": json.dumps(buckets)}
    plan = dataclasses.replace(plans.plan(*told), config=config)
    return [(each.name, each.counts) for each in destroyed.folder_changes(plan)]


def test_a_folder_is_the_longest_of_the_stack_file_that_an_object_is_below() -> None:
    names = ("data/a/b/x", "data/a/b/y", "data/a/z", "data/a/v", "data/ab/1", "data/ab/2")
    told = [kept("create", name) for name in names]
    objects = {"objects": {"a": "s", "a/b": "t"}}
    assert folders(*told, data=objects) == [
        ("data/a", "2 added"), ("data/a/b", "2 added"), ("data/ab", "2 added"),
    ]  # fmt: skip


def test_objects_at_the_top_of_a_bucket_and_of_others_are_apart() -> None:
    told = [kept("create", name) for name in ("data/x", "data/y", "raw/x", "raw/deep/er/z")]
    assert folders(*told) == [("data", "2 added")]


def test_what_is_no_object_of_the_programs_buckets_is_in_no_folder() -> None:
    extra = [plans.create(OBJECT, f"data/a/{n}", name="a") for n in range(3)]
    network = [plans.create("x:y:Z", f"storage-data/a/{n}") for n in range(3)]
    assert folders(*extra, *network) == []


def test_a_folder_names_what_is_in_it_by_what_happens() -> None:
    told = [kept("update", "d/a/1"), kept("create", "d/a/2"), kept("delete", "d/a/3")]
    [found] = destroyed.folder_changes(plans.plan(*told))
    assert (found.added, found.changed, found.removed) == (
        ["storage-d/a/2"], ["storage-d/a/1"], ["storage-d/a/3"],
    )  # fmt: skip
    assert found.counts == "1 added, 1 changed, 1 removed"
    assert found.names == {f"storage-d/a/{n}" for n in (1, 2, 3)}


BUCKET = {"name": "acme-data"}
SECRET = "gcp:secretmanager/secret:Secret"


def planned(*told: plans.Event, outputs: object = None, accepted: object = None) -> Plan:
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "s", {}, {}, outputs={"buckets": outputs or {}}
    )
    config = {"vertex-training:drift": json.dumps({"acceptedLosses": accepted or {}})}
    return events.parse(plans.lines(stack, *told, config=config), "dev")


def gone(protect: tuple[bool, bool], type_: str = plans.BUCKET, name: str = "storage-data") -> Plan:
    """What a refresh did not find in the cloud, and the program makes anew."""
    return planned(
        plans.step("refresh", type_, name, BUCKET, protect=(protect[0], False)),
        plans.step("create", type_, name, new=BUCKET, protect=(False, protect[1])),
    )


RESTORE = "restore it first: gcloud storage restore gs://acme-data#GENERATION"


@pytest.mark.parametrize(
    ("protect", "refused"),
    [((False, False), False), ((True, False), True), ((False, True), True), ((True, True), True)],
)
def test_a_loss_is_refused_that_the_state_or_the_program_protects(
    protect: tuple[bool, bool], refused: bool
) -> None:
    plan = gone(protect)
    found = destroyed.Remade("storage-data", RESTORE, refused)
    assert destroyed.remade(plan) == (found,)
    assert destroyed.remade(plan)[0].protected is refused
    assert destroyed.refused_losses(plan) == ((found,) if refused else ())


def test_a_loss_is_known_from_the_outputs_of_the_stack_as_well() -> None:
    made = plans.create(plans.BUCKET, "storage-data", **BUCKET)
    was = planned(made, outputs={"data": "gs://acme-data"})
    assert [each.name for each in destroyed.remade(was)] == ["storage-data"]
    assert destroyed.remade(planned(made, outputs={"data": "gs://acme-other"})) == ()
    assert destroyed.remade(planned(made)) == ()


def test_only_what_holds_data_of_its_own_is_lost() -> None:
    assert destroyed.remade(gone((True, True), OBJECT)) == ()
    assert destroyed.remade(gone((True, True), "gcp:compute/network:Network")) == ()


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
        "drift.acceptedLosses: storage-raw is there. Remove it, or its next loss is accepted, too.",
    )
    refused = report.build(planned(made, there, outputs=outputs), source="here")
    assert refused.outcome == report.ReviewOutcome.FORBIDDEN
    [problem] = refused.problems
    assert (problem.value, problem.rule) == ("storage-data", "accepted-loss")
    assert problem.hint == (f"{RESTORE}. If it is lost: drift.acceptedLosses in the stack file")


@pytest.mark.parametrize(
    ("op", "protect", "fate", "refused"),
    [
        ("delete", (False, False), "destroyed", False),
        ("delete", (True, False), "refused, it is protected; otherwise destroyed", True),
        ("replace", (False, False), "destroyed and made anew", False),
        ("replace", (True, False), "destroyed and made anew", False),
        ("replace", (False, True), "destroyed and made anew", False),
        (
            "replace",
            (True, True),
            "refused, it is protected; otherwise destroyed and made anew",
            True,
        ),
    ],
)
def test_what_is_protected_is_refused_and_no_loss(
    op: str, protect: tuple[bool, bool], fate: str, refused: bool
) -> None:
    new = None if op == "delete" else BUCKET
    plan = plans.plan(plans.step(op, plans.BUCKET, "b", BUCKET, new, protect=protect))
    [found] = destroyed.destroyed(plan)
    assert destroyed.fate(found) == fate
    assert (found.refused, found.is_loss) == (refused, not refused)


def test_what_is_destroyed_is_told_with_what_holds_data_first() -> None:
    network = "gcp:compute/network:Network"
    plan = plans.plan(
        plans.delete(network, "a"),
        plans.delete(plans.BUCKET, "z", **BUCKET),
        plans.delete(SECRET, "y"),
        plans.step("delete-replaced", network, "left", {"name": "n"}),
        plans.delete("gcp:projects/service:Service", "api", disableOnDestroy=False),
        plans.delete("gcp:projects/service:Service", "off", disableOnDestroy=True),
        plans.step("update", plans.BUCKET, "b", BUCKET, {**BUCKET, "labels": {}}),
    )
    assert [(each.name, each.takes) for each in destroyed.destroyed(plan)] == [
        ("y", "all versions of the secret"), ("z", "its objects"),
        ("a", ""), ("left", ""), ("off", ""),
    ]  # fmt: skip


def test_what_is_destroyed_is_a_loss_or_refused_or_holds_no_data() -> None:
    def told(kind: RiskKind[destroyed.DestructiveChange]) -> list[str]:
        return [kind.name(each, quote) for each in kind.find(plan)]

    plan = plans.plan(
        plans.delete(plans.BUCKET, "lost", **BUCKET),
        plans.step("replace", SECRET, "anew", {"name": "s"}, {"name": "t"}),
        plans.step("delete", plans.BUCKET, "held", BUCKET, protect=(True, True)),
        plans.delete("gcp:compute/network:Network", "net"),
    )
    assert told(destroyed.LOST_WITH_RESOURCE) == ["<anew> (made anew, empty)", "<lost> (destroyed)"]
    assert told(destroyed.REFUSED) == ["<held>"]
    assert told(destroyed.WITHOUT_DATA) == [
        "refused, it is protected: <held>", "<net> (destroyed)",
    ]  # fmt: skip


def test_protection_is_told_where_it_goes_and_where_it_is() -> None:
    def step(name: str, protect: tuple[bool, bool], type_: str = plans.BUCKET) -> plans.Event:
        return plans.step("same", type_, name, BUCKET, BUCKET, protect=protect)

    plan = plans.plan(
        step("z", (True, False)), step("a", (True, False)), step("kept", (True, True)),
        step("new", (False, True)), step("never", (False, False)),
        step("component", (True, False), "vertextraining:storage:Storage"),
        plans.step("delete", plans.BUCKET, "gone", BUCKET, protect=(True, False)),
    )  # fmt: skip
    assert destroyed.unprotected(plan) == ("a", "z")
    assert destroyed.protected(plan) == ("kept", "new")
