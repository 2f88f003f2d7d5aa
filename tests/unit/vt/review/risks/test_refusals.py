"""What Google refuses half-way, or what has no effect, is told by a review, with the way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.review import json_report, markdown, report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.refusals import ATTACHMENT, REFUSALS, RESERVATION, SUBNET
from vertex_training_cli.review.report import ReviewReport

LATER = "2999-01-01T00:00:00Z"
KEPT = {"name": "h100-dev", "zone": "us-east4-a", "specificReservation": {"count": 1}}
PSC = {"name": "training-dev", "subnetworks": ["training-dev"]}


def review(*told: plans.Event) -> ReviewReport:
    return report.build(plans.plan(*told), source="here")


def names(*told: plans.Event) -> list[str]:
    return [each.name for each in review(*told).risks[REFUSALS]]


def subnet(op: str, old: str, new: str) -> plans.Event:
    inputs = ({"name": "training-dev", "ipCidrRange": block} for block in (old, new))
    return plans.step(op, SUBNET, "network-subnet", *inputs)


def attachment(op: str = "same") -> plans.Event:
    return plans.step(op, ATTACHMENT, "network-attachment", old=PSC, new=PSC)


def without_end(old: dict[str, Any], new: dict[str, Any], **more: Any) -> plans.Event:
    return plans.step("same", RESERVATION, "capacity-h100", KEPT | old, KEPT | new, **more)


def test_an_end_that_google_made_of_a_duration_stays_as_well() -> None:
    for end in (LATER, LATER.removesuffix("Z")):
        assert names(without_end({}, {}, outputs={"deleteAtTime": end})) == ["h100-dev"]


@pytest.mark.parametrize(
    ("old", "new", "outputs"),
    [
        ({}, {}, {"deleteAtTime": ""}),
        ({"deleteAtTime": LATER}, {"deleteAtTime": LATER}, {}),
        ({"deleteAtTime": LATER}, {"deleteAfterDuration": {"seconds": "60"}}, {}),
        ({"deleteAtTime": "2020-01-01T00:00:00Z"}, {}, {}),
        ({"deleteAtTime": "soon"}, {}, {}),
    ],
)
def test_an_end_that_is_given_over_or_never_was_is_nobodys_surprise(
    old: dict[str, Any], new: dict[str, Any], outputs: dict[str, Any]
) -> None:
    assert names(without_end(old, new, outputs=outputs)) == []


@pytest.mark.parametrize("new", ["10.30.0.0/26", "10.20.0.0/27"])
def test_a_subnet_that_moves_or_shrinks_under_its_attachment_is_told_with_the_way(
    new: str,
) -> None:
    found = review(subnet("replace", "10.20.0.0/26", new), attachment())
    [refusal] = found.risks[REFUSALS]
    assert f"10.20.0.0/26 → {new} makes the subnet anew" in refusal.what
    assert "Deploy twice" in refusal.what
    assert "not possible like this: training-dev" in verdict(found)
    assert found.risky


def test_a_subnet_may_grow_or_move_without_an_attachment() -> None:
    assert names(subnet("update", "10.20.0.0/26", "10.20.0.0/24"), attachment()) == []
    assert names(subnet("replace", "10.20.0.0/26", "10.30.0.0/26")) == []
    moved = subnet("replace", "10.20.0.0/26", "10.30.0.0/26")
    assert names(moved, plans.step("delete", ATTACHMENT, "a", old=PSC)) == []
    assert names(moved, attachment("replace")) == []
    unknown = subnet("replace", "10.20.0.0/26", "04da6b54-80e4-46f7-96ec-b56ff0331ba9")
    assert names(unknown, attachment()) == []


def bucket(op: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> plans.Event:
    found = (
        None if each is None else {"name": "audit", **({"retentionPolicy": each} if each else {})}
        for each in (old, new)
    )
    return plans.step(op, plans.BUCKET, "storage-audit", *found)


def days(number: int, *, locked: bool = True) -> dict[str, Any]:
    return {"retentionPeriod": str(number * 86400), "isLocked": locked}


def test_a_locked_bucket_that_is_made_anew_with_its_lock_is_told() -> None:
    found = review(bucket("replace", days(30), days(30)))
    [refusal] = found.risks[REFUSALS]
    assert refusal.what.startswith("is made anew, and its retention of 30 days is locked")
    assert names(bucket("replace", days(30, locked=False), days(30, locked=False))) == []


def test_a_lock_is_told_as_never_undone_when_it_is_made_and_when_it_grows() -> None:
    for event in (
        bucket("create", None, days(30)),
        bucket("update", {}, days(30)),
        bucket("update", days(30, locked=False), days(30)),
        bucket("update", days(7), days(30)),
    ):
        found = review(event)
        assert found.risks[REFUSALS] == ()
        assert found.risky
        told = "nothing in it can be deleted for 30 days; never undone"
        assert f"locked for good: storage-audit ({told})" in verdict(found)
        assert "locked for good: `storage-audit`" in markdown.render(found)
        assert json.loads(json_report.render(found))["locks"] == [
            {"name": "storage-audit", "days": 30}
        ]
    assert "locked for good" not in verdict(review(bucket("update", days(30), days(30))))
    assert "locked for good" not in verdict(review(bucket("update", {}, days(30, locked=False))))
