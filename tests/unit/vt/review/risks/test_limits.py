"""Limits that are raised: old and new in the headline, from the outputs of the deployed stack."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.review import digest, report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.limits import limits_of, raised_limits

STACK = {"maxUsdPerJob": 500.0, "machineTypes": ["n1-*"]}
MONTHS = {"maxUsdPerMonth": 80.0, "maxUsdPerMonthInTotal": 200.0}
TEAM = {"maxUsdPerTeam": 10.0}
DEPLOYED = {"limits": STACK, "teams.vision.limits": TEAM}


def planned(limits=STACK, team=TEAM, deployed=DEPLOYED):
    outputs = {} if deployed is None else {"limits": deployed}
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "vertex-training-dev", {}, {}, outputs=outputs
    )
    config = {
        "vertex-training:limits": json.dumps(limits),
        "vertex-training:teams": json.dumps({"vision": {"limits": team}, "speech": {}}),
    }
    return events.parse(plans.lines(stack, config=config), "dev")


def headline(**changes):
    return verdict(report.build(planned(**changes), source="here"))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"limits": STACK | {"maxUsdPerJob": 900}}, "limits.maxUsdPerJob $500.00 → $900.00"),
        ({"limits": {"machineTypes": ["n1-*"]}}, "limits.maxUsdPerJob $500.00 → no limit"),
        (
            {"limits": STACK | {"machineTypes": ["n1-*", "a3-*"]}},
            "limits.machineTypes n1-* → n1-*, a3-*",
        ),
        ({"limits": STACK | {"allowUnpriced": True}}, "limits.allowUnpriced false → true"),
        ({"team": {}}, "teams.vision.limits.maxUsdPerTeam $10.00 → no limit"),
        (
            {"limits": MONTHS | {"maxUsdPerMonth": 81}, "deployed": {"limits": MONTHS}},
            "limits.maxUsdPerMonth $80.00 → $81.00",
        ),
        (
            {"limits": {"maxUsdPerMonth": 80}, "deployed": {"limits": MONTHS}},
            "limits.maxUsdPerMonthInTotal $200.00 → no limit",
        ),
        (
            {"deployed": {"limits": STACK, "teams.vision.limits": TEAM | {"maxUsdPerMonth": 9}}},
            "teams.vision.limits.maxUsdPerMonth $9.00 → no limit",
        ),
    ],
)
def test_a_raised_limit_is_in_the_headline(changes, expected):
    assert f"limits raised: {expected}" in headline(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"limits": STACK | {"maxUsdPerJob": 100, "regions": ["us-central1"]}},
        {"limits": STACK | {"machineTypes": ["n1-standard-4"]}},
        {"limits": {}, "deployed": None},
    ],
)
def test_a_limit_that_is_kept_lowered_or_new_is_not_raised(changes):
    assert headline(**changes) == "Nothing changes."


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        (["n1-standard-?"], ["n1-standard-*"]),
        (["n1-standard-[48]"], ["n1-standard-?"]),
        (["?1-standard-4"], ["*1-standard-4"]),
        (["n1-*-4"], ["n1-*"]),
        (["n1-*"], ["n*"]),
        (["n1-*", "a2-highgpu-?g"], ["n1-*", "a2-highgpu-*g"]),
        (["n1-*"], ["*n1-*"]),
        (["n1-standard-4"], ["[n]1-*"]),
        (["n1-*8]"], ["n1-[48]"]),
        (["n1-standard-4"], ["n1-standard-4*"]),
    ],
)
def test_a_wider_pattern_is_a_raised_limit(listed, allowed):
    deployed = {"limits": {"machineTypes": listed}}
    told = headline(limits={"machineTypes": allowed}, deployed=deployed)
    assert f"limits.machineTypes {', '.join(listed)} → {', '.join(allowed)}" in told


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        (["n1-*"], ["n1-standard-*", "n1-highmem-?"]),
        (["n1-standard-?"], ["n1-standard-?"]),
        (["n1-standard-?"], ["n1-standard-4"]),
        (["a2-*g"], ["a2-high*-8g"]),
    ],
)
def test_a_narrower_pattern_is_not(listed, allowed):
    deployed = {"limits": {"machineTypes": listed}}
    assert headline(limits={"machineTypes": allowed}, deployed=deployed) == "Nothing changes."


@pytest.mark.parametrize("word", ["yes", "true", 1, "on", "1"])
def test_what_the_program_reads_as_true_allows_jobs_without_a_price(word):
    assert "limits.allowUnpriced false → true" in headline(limits=STACK | {"allowUnpriced": word})


def test_another_limit_is_another_digest():
    raised = planned(limits=STACK | {"maxUsdPerJob": 900})
    lowered = planned(limits=STACK | {"maxUsdPerJob": 100})
    assert len({digest.plan_digest(plan) for plan in (planned(), raised, lowered)}) == 3


def raised(limits, before, team=None, teams=None):
    deployed = {"limits": before, **(teams or {})}
    found = raised_limits(planned(limits=limits, team=team or {}, deployed=deployed))
    return [(each.path, each.old, each.new) for each in found]


@pytest.mark.parametrize(
    "key",
    ["maxUsdPerJob", "maxUsdPerEnvironment", "maxUsdPerTeam", "maxUsdPerMonth",
     "maxUsdPerMonthInTotal"],
)  # fmt: skip
def test_every_limit_in_usd_is_raised_by_more_and_by_none(key):
    assert raised({key: 10.5}, {key: 10}) == [(f"limits.{key}", "$10.00", "$10.50")]
    assert raised({}, {key: 10}) == [(f"limits.{key}", "$10.00", "no limit")]
    assert raised({key: 0}, {key: 0}) == raised({key: 9}, {key: 10}) == raised({key: 1}, {}) == []
    # What is no number is no limit.
    assert raised({key: "10"}, {key: 10}) == [(f"limits.{key}", "$10.00", "no limit")]
    assert raised({key: True}, {key: 10}) == [(f"limits.{key}", "$10.00", "no limit")]


@pytest.mark.parametrize("key", ["regions", "machineTypes", "strategies", "memberDomains"])
def test_every_list_is_raised_by_an_entry_and_by_none(key):
    assert raised({key: ["a", "b"]}, {key: ["a"]}) == [(f"limits.{key}", "a", "a, b")]
    assert raised({}, {key: ["a", "b"]}) == [(f"limits.{key}", "a, b", "no limit")]
    assert raised({key: ["a"]}, {key: ["b", "a"]}) == raised({key: []}, {key: ["a"]}) == []
    assert raised({key: ["a"]}, {}) == []


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        (True, False, True), (True, None, True), ("yes", False, True), (1, False, True),
        (True, True, False), (False, False, False), (None, False, True), (True, "yes", True),
    ],
)  # fmt: skip
def test_jobs_without_a_price_are_newly_allowed(now, before, told):
    found = raised({"allowUnpriced": now}, {"allowUnpriced": before})
    assert found == ([("limits.allowUnpriced", "false", "true")] if told else [])


def test_limits_of_a_team_are_raised_by_its_name_and_with_the_team():
    before = {"teams.vision.limits": {"maxUsdPerTeam": 1}, "teams.gone.limits": {"regions": ["a"]}}
    assert raised({}, {}, team={"maxUsdPerTeam": 2}, teams=before) == [
        ("teams.gone.limits.regions", "a", "no limit"),
        ("teams.vision.limits.maxUsdPerTeam", "$1.00", "$2.00"),
    ]


def test_the_limits_of_a_stack_file_are_those_that_it_has():
    assert limits_of(planned()) == {"limits": STACK, "teams.vision.limits": TEAM}
    assert limits_of(planned(limits={}, team={})) == {}
