"""Policies whose level a change lowers: old and new in the headline, and in the digest."""

from __future__ import annotations

import dataclasses
import json

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events, plan_file
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import digest, html, json_report, limits, markdown, report
from vertex_training_cli.review.headline import verdict


def planned(
    now: dict[str, str], before: dict[str, str] | None = None, file: dict[str, str] | None = None
) -> Plan:
    outputs = {} if before is None else {"policyLevels": before}
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "vertex-training-dev", {}, {}, outputs=outputs
    )
    config = {"vertex-training:policyLevels": json.dumps(now)}
    found = events.parse(plans.lines(stack, config=config), "dev")
    return dataclasses.replace(found, levels=now | (file or {}))


@pytest.mark.parametrize(
    ("now", "before", "file", "told"),
    [
        ({"p": "advisory"}, None, {}, "policies lowered: p mandatory → advisory"),
        ({"p": "disabled"}, {"p": "advisory"}, {}, "policies lowered: p advisory → disabled"),
        ({}, None, {"p": "disabled"}, "policies lowered: p mandatory → disabled"),
        ({"p": "advisory"}, {"p": "advisory"}, {}, "Nothing changes."),
        ({"p": "mandatory"}, {"p": "advisory"}, {}, "Nothing changes."),
        ({}, {"p": "advisory"}, {}, "Nothing changes."),
    ],
)
def test_a_level_is_lowered_against_what_is_deployed(
    now: dict[str, str], before: dict[str, str] | None, file: dict[str, str], told: str
) -> None:
    assert told in verdict(report.build(planned(now, before, file), source="here"))


def test_a_preview_that_failed_before_the_stack_was_read_lowers_no_level() -> None:
    config = {"vertex-training:policyLevels": json.dumps({"p": "advisory"})}
    failed = plans.lines(plans.said("error", "wrong"), plans.summary("failed"), config=config)
    found = dataclasses.replace(events.parse(failed, "dev"), levels={"p": "advisory"})
    assert verdict(report.build(found, source="here")) == "The preview failed."


def test_every_format_names_the_policies_that_are_not_mandatory() -> None:
    found = report.build(planned({"p": "advisory", "q": "mandatory"}), source="here")
    assert "Not mandatory in this stack: `p` `advisory`." in markdown.render(found)
    assert "Not mandatory in this stack" in html.render(found)
    told = json.loads(json_report.render(found))["policies"]
    assert told["levels"] == {"p": "advisory", "q": "mandatory"}
    assert told["lowered"] == [{"path": "p", "old": "mandatory", "new": "advisory"}]


def test_another_level_is_another_digest_also_in_the_file_of_the_plan() -> None:
    one, other = planned({}), planned({}, file={"p": "disabled"})
    assert digest.plan_digest(one) != digest.plan_digest(other)
    source = "Previewed offline against an empty state: everything looks new"
    again = plan_file.parse(plan_file.write(other, source).encode(), "dev").plan
    assert digest.plan_digest(again) == digest.plan_digest(other)


def test_a_plan_with_ids_of_sixty_four_bits_can_be_read_again() -> None:
    network = plans.step(
        "same", "gcp:compute/subnetwork:Subnetwork", "n", {}, {},
        outputs={"subnetworkId": 7796651409074893000},
    )  # fmt: skip
    source = "Previewed offline against an empty state: everything looks new"
    text = plan_file.write(plans.plan(network), source)
    assert plan_file.parse(text.encode(), "dev").plan.steps


ORDER = ("disabled", "advisory", "remediate", "mandatory")


@pytest.mark.parametrize("before", [*ORDER, None])
@pytest.mark.parametrize("now", [*ORDER, "unheard-of"])
def test_levels_have_an_order_and_what_nobody_knows_is_the_strictest(
    now: str, before: str | None
) -> None:
    order = (*ORDER, "unheard-of")
    lowered = order.index(now) < order.index(before or "mandatory")
    found = limits.lowered_levels(planned({"p": now}, {"p": before} if before else {}))
    assert [(each.path, each.old, each.new) for each in found] == (
        [("p", before or "mandatory", now)] if lowered else []
    )


def test_a_level_of_the_command_comes_before_the_stack_files() -> None:
    plan = planned({"p": "advisory", "b": "disabled"}, file={"p": "mandatory", "a": "remediate"})
    assert list(limits.policy_levels(plan).items()) == [
        ("a", "remediate"), ("b", "disabled"), ("p", "mandatory"),
    ]  # fmt: skip
