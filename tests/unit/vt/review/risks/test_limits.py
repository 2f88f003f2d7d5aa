"""Limits that are raised: old and new in the headline, from the outputs of the deployed stack."""

from __future__ import annotations

import json

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.review import report
from vertex_training_cli.review.headline import verdict
from vertex_training_cli.review.limits import raised_limits

STACK = {"maxUsdPerJob": 500.0, "machineTypes": ["n1-*"]}
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


@pytest.mark.parametrize("word", ["yes", "true", 1, "on", "1"])
def test_what_the_program_reads_as_true_allows_jobs_without_a_price(word):
    assert "limits.allowUnpriced false → true" in headline(limits=STACK | {"allowUnpriced": word})


def raised(limits, before, team=None, teams=None):
    deployed = {"limits": before, **(teams or {})}
    found = raised_limits(planned(limits=limits, team=team or {}, deployed=deployed))
    return [(each.path, each.old, each.new) for each in found]


@pytest.mark.parametrize("key", ["regions", "machineTypes", "strategies", "memberDomains"])
def test_every_list_is_raised_by_an_entry_and_by_none(key):
    assert raised({key: ["a", "b"]}, {key: ["a"]}) == [(f"limits.{key}", "a", "a, b")]
    assert raised({}, {key: ["a", "b"]}) == [(f"limits.{key}", "a, b", "no limit")]
    assert raised({key: ["a"]}, {key: ["b", "a"]}) == raised({key: []}, {key: ["a"]}) == []
    assert raised({key: ["a"]}, {}) == []
