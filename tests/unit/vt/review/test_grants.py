"""Who gains and loses what."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.vt.review import plans
from vertex_training.plan.grants import READ_OBJECTS
from vertex_training_cli.engine.values import WIRE_UNKNOWN
from vertex_training_cli.review import grants
from vertex_training_cli.review.escaping import code

KIM = "user:kim@example.com"


def by_a_team(name: str, role: str, member: str = KIM) -> plans.Event:
    """A grant of a team's own code: no component of the program is above it."""
    event = plans.create(plans.MEMBER, name, **plans.member("data", role, member))
    urn = f"urn:pulumi:dev::vertex-training::{plans.MEMBER}::{name}"
    event["resourcePreEvent"]["metadata"]["urn"] = urn
    return event


def role(*permissions: str, **more: Any) -> dict[str, Any]:
    return {"roleId": "helper", "permissions": list(permissions), **more}


def test_a_widened_role_is_told_in_the_verdict() -> None:
    found = grants.WidenedRole("helper", ("a", "b", "c", "d"))
    assert grants.WIDENED.name(found, code) == "`helper` (`a`, `b`, `c` and 1 more)"


def of(*members: str) -> list[plans.Event]:
    return [by_a_team(f"g{n}", READ_OBJECTS, each) for n, each in enumerate(members)]


def test_a_whole_policy_is_told_binding_by_binding_as_far_as_it_is_known() -> None:
    data = {
        "bindings": [
            {"role": "r", "members": ["user:b", "user:a"]},
            {"role": "q", "members": ["user:c"], "condition": {"expression": "e"}},
        ]
    }
    policy = "gcp:storage/bucketIAMPolicy:BucketIAMPolicy"

    def told(policy_data: Any) -> list[tuple[str, str, str]]:
        plan = plans.plan(plans.create(policy, "p", bucket="data", policyData=policy_data))
        found = grants.gained(plan)
        assert {(each.kind, each.target) for each in found} == {("bucket", "data")}
        return [(each.member, each.role, each.condition) for each in found]

    assert told(json.dumps(data)) == [
        ("user:a", "r", ""),
        ("user:b", "r", ""),
        ("user:c", "q", "e"),
    ]
    whole = [("everybody named in it", "a whole policy", "")]
    assert [told(each) for each in ("{", "[]", "{}", WIRE_UNKNOWN, None)] == [whole] * 5
