"""What another digest means, and what may differ under the same one."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any, Final

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review.digest import plan_digest

SNAPSHOT: Final = "pulumi-python:dynamic/vertex:Snapshot"
OLD: Final = {"name": "a"}
NEW: Final = {"name": "b"}
BASE: Final = plans.step("update", plans.BUCKET, "b", old=OLD, new=NEW)
ENABLED: Final = {"versioning.enabled": {"diffKind": "update", "inputDiff": False}}


def update(name: str = "b", **given: Any) -> plans.Event:
    return plans.step("update", plans.BUCKET, name, **({"old": OLD, "new": NEW} | given))


def same(**given: Any) -> plans.Event:
    return plans.step("same", plans.BUCKET, "kept", old=OLD, new=OLD, **given)


def found(policy: str, level: str = "advisory", urn: str = "urn:x", said: str = "m") -> plans.Event:
    return plans.violation(policy, level, said, urn)


def planned(*told: plans.Event, **sections: Any) -> Plan:
    config = {f"vertex-training:{key}": json.dumps(value) for key, value in sections.items()}
    return events.parse(plans.lines(*told, config=config), "dev")


def test_each_of_these_plans_is_another_one() -> None:
    limits = {"maxUsdPerJob": 500}
    plans_ = [
        planned(),
        planned(BASE),
        planned(BASE, update("c")),
        planned(update("c")),
        planned(plans.step("replace", plans.BUCKET, "b", old=OLD, new=NEW)),
        planned(plans.create(plans.BUCKET, "b", **NEW)),
        planned(plans.delete(plans.BUCKET, "b", **OLD)),
        planned(update(old={"name": "x"})),
        planned(update(new={"name": "x"})),
        planned(update(protect=(True, False))),
        planned(update(protect=(False, True))),
        planned(update(protect=(True, True))),
        planned(update(detailedDiff=ENABLED)),
        planned(BASE, same(protect=(True, False))),
        planned(BASE, same(protect=(False, True))),
        planned(BASE, found("p")),
        planned(BASE, found("q")),
        planned(BASE, found("p", "mandatory")),
        planned(BASE, found("p", urn="urn:y")),
        planned(BASE, found("p"), found("p", urn="urn:y")),
        planned(BASE, plans.summary("failed")),
        planned(BASE, plans.summary(acme="1.0")),
        planned(BASE, plans.summary(acme="1.0", more="1.0")),
        dataclasses.replace(planned(BASE), policies=frozenset({"p"})),
        dataclasses.replace(planned(BASE), stack="prod"),
        planned(BASE, limits=limits),
        planned(BASE, teams={"vision": {"limits": limits}}),
        planned(BASE, policyLevels={"p": "advisory"}),
        planned(BASE, drift={"projectPolicy": "any"}),
        planned(BASE, allowedSecrets={"a.py": "an example"}),
        planned(BASE, rules={"x": "note"}),
    ]
    digests = [plan_digest(each) for each in plans_]
    assert [digests.index(each) for each in digests] == list(range(len(plans_)))
    assert {len(each) for each in digests} == {64}
    assert all(int(each, 16) >= 0 for each in digests)


@pytest.mark.parametrize(
    "other",
    [
        (plans.said("warning", "w"), BASE),
        (BASE, plans.said("info", "a price")),
        (BASE, same()),
        (BASE, same(protect=(True, True))),
        (BASE, plans.create("vertextraining:storage:Storage", "storage")),
    ],
)
def test_words_and_what_stays_as_it_is_are_in_no_digest(other: tuple[plans.Event, ...]) -> None:
    assert plan_digest(planned(*other)) == plan_digest(planned(BASE))


def test_another_wording_or_order_of_results_is_no_other_result() -> None:
    one = planned(
        update("c"), BASE, found("q"), found("p", said="one"), plans.summary(x="1", y="1")
    )
    other = planned(
        BASE, update("c"), found("p", said="b"), found("q"), plans.summary(y="2", x="1")
    )
    assert plan_digest(one) == plan_digest(other)


def test_tables_that_grow_after_the_approval_change_no_digest_of_a_snapshot() -> None:
    def plan(resolved: Any, *, type_: str = SNAPSHOT, query: str = "q") -> str:
        return plan_digest(planned(plans.create(type_, "s", request=query, resolved=resolved)))

    assert plan({"bytes": 1}) == plan({"bytes": 2})
    assert plan({"bytes": 1}) != plan({"bytes": 1}, query="other")
    assert plan({"bytes": 1}, type_=plans.BUCKET) != plan({"bytes": 2}, type_=plans.BUCKET)


def test_a_digest_is_over_this_text_so_that_an_approval_outlives_a_release() -> None:
    urn = "urn:pulumi:dev::vertex-training::vertextraining:test:Test$gcp:storage/bucket:Bucket"
    plan = planned(
        plans.step(
            "update", plans.BUCKET, "é", old={"z": 1, "a": 2}, new={"a": "ü"}, protect=(True, False)
        ),
        plans.create(plans.BUCKET, "b", **NEW),
        same(protect=(False, True)),
        found("p", urn="urn:x"),
        plans.summary(acme="1.0"),
        limits={"maxUsdPerJob": 500},
        policyLevels={"q": "advisory"},
        rules={"x": "note"},
    )
    text = (
        '{"guards":{"allowedSecrets":{},"drift":{},"rules":{"x":"note"}},'
        '"limits":[{"limits":{"maxUsdPerJob":500}},[]],'
        '"policies":{"checked":[],"found":[["p","advisory","urn:x"]],'
        '"levels":{"q":"advisory"},"packs":["acme"]},'
        f'"protection":[["{urn}::kept",false,true],["{urn}::é",true,false]],'
        '"stack":"dev","steps":['
        '{"new":{"inputs":{"name":"b"},"protect":false},"old":null,"op":"create","paths":[],'
        f'"urn":"{urn}::b"}},'
        '{"new":{"inputs":{"a":"ü"},"protect":false},"old":{"inputs":{"a":2,"z":1},'
        f'"protect":true}},"op":"update","paths":[],"urn":"{urn}::é"}}],'
        '"succeeded":true}'
    )
    assert plan_digest(plan) == hashlib.sha256(text.encode()).hexdigest()
