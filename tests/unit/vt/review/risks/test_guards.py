"""Settings of a stack file that lower a guard: in the headline, in an answer and in the digest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.vt.review import plans
from vertex_training_cli.engine import events
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.review import digest, guards, json_report, limits, markdown, report
from vertex_training_cli.review.headline import answers, verdict

AUDIT = {
    "member": "group:audit@example.com",
    "role": "roles/storage.objectViewer",
    "policy": "b/*",
    "reason": "the auditors read every bucket",
}
SHOWN = "group:audit@example.com: roles/storage.objectViewer on b/*"
REPOSITORY = "gcp:artifactregistry/repository:Repository"


def planned(
    drift: dict[str, Any] | None = None,
    rules: dict[str, str] | None = None,
    *more: plans.Event,
    deployed: dict[str, Any] | None = None,
) -> Plan:
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "vertex-training-dev", {}, {}, outputs=deployed or {}
    )
    config = {
        "vertex-training:drift": json.dumps(drift or {}),
        "vertex-training:rules": json.dumps(rules or {}),
        "vertex-training:teams": json.dumps({"vision": {}}),
    }
    return events.parse(plans.lines(stack, *more, config=config), "dev")


def headline(plan: Plan) -> str:
    return verdict(report.build(plan, source="here"))


def test_an_exception_of_drift_is_in_the_headline_and_among_the_answers() -> None:
    found = report.build(planned({"allowed": {"audit": AUDIT}}), source="here")
    assert f"drift is not reported: {SHOWN}" in verdict(found)
    [told] = [
        answer.text
        for answer in answers(found, lambda text, _=0: text)
        if answer.question == "which limits are raised"
    ]
    assert told == f"drift is not reported: {SHOWN}"
    [entry] = json.loads(json_report.render(found))["driftExceptions"]
    assert entry == {"path": "drift.allowed.audit", "old": None, "new": SHOWN}


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        (
            {"allowedResources": {"iap": {"resource": "firewalls/iap-*", "reason": "a way in"}}},
            {},
            "drift is not reported: firewalls/iap-*",
        ),
        (
            {},
            {"projectPolicy": "judged"},
            "drift is not reported: members of the project that others added",
        ),
        ({"projectPolicy": "judged"}, {}, "Nothing changes."),
        ({}, {}, "Nothing changes."),
    ],
)
def test_whatever_drift_reports_no_longer_is_in_the_headline(
    now: dict[str, Any], before: dict[str, Any], told: str
) -> None:
    plan = planned(now, deployed={"drift": before})
    assert told in headline(plan)
    assert (digest.plan_digest(plan) == digest.plan_digest(planned(before))) is (now == before)


def test_a_file_that_may_leave_with_a_secret_is_in_the_headline_and_in_the_digest() -> None:
    allowed = {"jobs/titanic/key.json": "a key of the sample's documentation"}
    config = {"vertex-training:allowedSecrets": json.dumps(allowed)}

    def plan(config: dict[str, str], outputs: dict[str, Any]) -> Plan:
        stack = plans.step("same", "pulumi:pulumi:Stack", "s", {}, {}, outputs=outputs)
        return events.parse(plans.lines(stack, config=config), "dev")

    told = "a file may leave with a secret: jobs/titanic/key.json (a key of the sample's"
    assert told in headline(plan(config, {"rules": {}}))
    assert headline(plan(config, {"allowedSecrets": allowed})) == "Nothing changes."
    assert digest.plan_digest(plan(config, {})) != digest.plan_digest(plan({}, {}))


def test_an_exception_that_is_deployed_is_told_once() -> None:
    drift = {"allowed": {"audit": AUDIT}}
    assert headline(planned(drift, deployed={"drift": drift})) == "Nothing changes."


def test_an_exception_that_grows_is_told_with_what_it_was() -> None:
    grown = {"allowed": {"audit": AUDIT | {"policy": "projects/acme-ml-dev"}}}
    found = report.build(
        planned(grown, deployed={"drift": {"allowed": {"audit": AUDIT}}}), source="here"
    )
    [entry] = json.loads(json_report.render(found))["driftExceptions"]
    assert entry["old"] == SHOWN
    assert entry["new"].endswith("on projects/acme-ml-dev")


def test_every_exception_is_in_the_digest_also_one_whose_name_is_like_a_secrets() -> None:
    names = ("audit", "api-key")
    plans_ = [planned({"allowed": {name: AUDIT}}) for name in names] + [planned()]
    assert len({digest.plan_digest(plan) for plan in plans_}) == 3
    assert [SHOWN in headline(plan) for plan in plans_] == [True, True, False]


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        ({"scarce-accelerator": "note"}, {}, "rules lowered: scarce-accelerator warning → note"),
        ({}, {"scarce-accelerator": "error"}, "rules lowered: scarce-accelerator error → warning"),
        ({"scarce-accelerator": "error"}, {"scarce-accelerator": "warning"}, "Nothing changes."),
        ({"scarce-accelerator": "note"}, {"scarce-accelerator": "note"}, "Nothing changes."),
    ],
)
def test_a_rule_that_is_lowered_is_in_the_headline_and_in_the_digest(
    now: dict[str, str], before: dict[str, str], told: str
) -> None:
    plan = planned(None, now, deployed={"rules": before})
    assert told in headline(plan)
    assert digest.plan_digest(plan) != digest.plan_digest(planned(None, {"x": "error"}))


@pytest.mark.parametrize(
    ("key", "old", "new", "told"),
    [
        (
            "dockerConfig",
            {"immutableTags": True},
            {"immutableTags": False},
            "tags of images can be moved",
        ),
        (
            "vulnerabilityScanningConfig",
            {"enablementConfig": "INHERITED"},
            {"enablementConfig": "DISABLED"},
            "images are not scanned",
        ),
        (
            "labels",
            {"team": "vision"},
            {},
            "accounts of every team may name it, not of vision alone",
        ),
    ],
)
def test_a_guard_on_a_resource_that_goes_is_in_the_headline(
    key: str, old: dict[str, Any], new: dict[str, Any], told: str
) -> None:
    step = plans.step("update", REPOSITORY, "registry-docker", {key: old}, {key: new})
    assert f"guards lowered: registry-docker ({told})" in headline(planned(None, None, step))
    back = plans.step("update", REPOSITORY, "registry-docker", {key: new}, {key: old})
    assert "guards lowered" not in headline(planned(None, None, back))


def test_a_preview_that_failed_before_the_state_was_read_compares_no_exceptions() -> None:
    lines = plans.lines(
        plans.said("error", "wrong"),
        plans.summary("failed"),
        config={"vertex-training:drift": json.dumps({"allowed": {"audit": AUDIT}})},
    )
    assert headline(events.parse(lines, "dev")) == "The preview failed."


@pytest.mark.parametrize(
    ("now", "deployed", "told"),
    [
        ({"buckets.data.protect": False}, {}, "`buckets.data.protect`: `as included` → `false`"),
        ({"jobs.fit": None}, {}, "`jobs.fit`: `as included` → `null`"),
        ({}, {"limits.maxUsdPerJob": 5}, "`limits.maxUsdPerJob`: `5` → `as included`"),
        ({"jobs.fit": None}, {"jobs.fit": None}, ""),
    ],
)
def test_exceptions_from_included_files_are_shown_when_they_change(
    now: dict[str, Any], deployed: dict[str, Any], told: str
) -> None:
    outputs = {"overrides": deployed} if deployed else {}
    stack = plans.step("same", "pulumi:pulumi:Stack", "vt-dev", {}, {}, outputs=outputs)
    config = {"vertex-training:overrides": json.dumps(now)}
    found = report.build(events.parse(plans.lines(stack, config=config), "dev"), source="here")
    line = f"exception of this stack from what it includes: {told}"
    assert (line in markdown.render(found)) == bool(told)


def differences(found: tuple[FieldDifference, ...]) -> list[tuple[str, str | None, str | None]]:
    return [(each.path, each.old, each.new) for each in found]


def test_only_a_change_from_what_is_deployed_is_an_exception_of_drift() -> None:
    way_in = {"resource": "firewalls/iap-*", "reason": "a way in"}
    now = {
        "allowed": {"audit": AUDIT, "bare": {"member": "user:a@example.com"}, "odd": "text"},
        "allowedResources": {"iap": way_in, "other": way_in | {"resource": "routes/*"}},
        "projectPolicy": "own",
    }
    deployed = {"allowedResources": {"iap": way_in}, "projectPolicy": "judged"}
    assert differences(guards.drift_exceptions(planned(now, deployed={"drift": deployed}))) == [
        ("drift.projectPolicy", None, "members of the project that others added"),
        ("drift.allowed.audit", None, SHOWN),
        ("drift.allowed.bare", None, "user:a@example.com:  on "),
        ("drift.allowedResources.other", None, "routes/*"),
    ]


def test_a_loss_that_is_accepted_is_told_with_its_reason_until_it_is_deployed() -> None:
    now = {"acceptedLosses": {"storage-data": "moved to a colleague's", "storage-raw": "old"}}
    deployed = {"drift": {"acceptedLosses": {"storage-raw": "old"}}}
    plan = planned(now, deployed=deployed)
    assert differences(guards.new_acceptances(plan)) == [
        ("storage-data", None, "moved to a colleague's")
    ]
    assert "loss accepted: storage-data (moved to a colleague's)" in headline(plan)
    other = {"drift": {"acceptedLosses": {**now["acceptedLosses"], "storage-raw": "lost in May"}}}
    assert differences(guards.new_acceptances(planned(now, deployed=other))) == [
        ("storage-raw", "lost in May", "old")
    ]


def test_every_rule_that_is_lowered_is_told_by_name_and_none_that_is_raised_or_kept() -> None:
    before = {"b": "error", "a": "warning", "kept": "note", "raised": "warning"}
    now = {"b": "note", "a": "note", "kept": "note", "raised": "error"}
    found = guards.lowered_rules(planned(None, now, deployed={"rules": before}))
    assert differences(found) == [("a", "warning", "note"), ("b", "error", "note")]


def test_a_rule_of_a_level_that_nobody_knows_is_taken_for_the_strictest() -> None:
    found = guards.lowered_rules(
        planned(None, {"x": "note", "y": "fatal"}, deployed={"rules": {"y": "error"}})
    )
    # A rule that there is none of has no level: giving it one lowers it.
    assert differences(found) == [("x", "None", "note")]


@pytest.mark.parametrize("op", ["create", "delete", "replace"])
def test_only_a_resource_that_stays_as_it_is_can_be_guarded_less(op: str) -> None:
    old, new = {"dockerConfig": {"immutableTags": True}}, {"dockerConfig": {}}
    sides = {"create": (None, new), "delete": (old, None), "replace": (old, new)}[op]
    assert guards.lowered_guards(planned(None, None, plans.step(op, REPOSITORY, "r", *sides))) == ()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"team": "vision"}, {"team": "speech"}, "accounts of team speech may name it, not of "),
        ({"team": "vision"}, {"team": "vision", "x": "y"}, None),
        ({"team": "former"}, {}, None),  # no team of the stack file: nobody was kept out
        ({}, {"team": "vision"}, None),
    ],
)
def test_what_a_team_had_alone_and_others_may_name_is_guarded_less(
    old: dict[str, str], new: dict[str, str], told: str | None
) -> None:
    step = plans.step("update", plans.BUCKET, "storage-data", {"labels": old}, {"labels": new})
    expected = (guards.LoweredGuard("storage-data", f"{told}vision alone"),) if told else ()
    assert guards.lowered_guards(planned(None, None, step)) == expected


def test_weaknesses_of_a_repository_are_told_if_they_are_new() -> None:
    scanned = {"vulnerabilityScanningConfig": {"enablementConfig": "INHERITED"}}
    unscanned = {"vulnerabilityScanningConfig": {"enablementConfig": "DISABLED"}}
    fixed = {"dockerConfig": {"immutableTags": True}}

    def lowered(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
        step = plans.step("update", REPOSITORY, "r", old, new)
        return [each.what for each in guards.lowered_guards(planned(None, None, step))]

    both = ["images are not scanned", "tags of images can be moved"]
    assert lowered(scanned | fixed, unscanned) == both
    assert lowered(scanned, unscanned) == both[:1]
    assert lowered(unscanned | fixed, unscanned) == both[1:]
    assert lowered(unscanned, scanned) == []


def test_guards_that_go_are_by_the_names_of_their_resources() -> None:
    steps = [
        plans.step("update", REPOSITORY, name, {"dockerConfig": {"immutableTags": True}}, {})
        for name in ("registry-docker", "packages", "other")
    ]
    assert guards.lowered_guards(planned(None, None, *steps)) == tuple(
        guards.LoweredGuard(name, "tags of images can be moved")
        for name in ("other", "packages", "registry-docker")
    )


def test_exceptions_from_what_is_included_are_by_path_old_and_new() -> None:
    stack = plans.step(
        "same", "pulumi:pulumi:Stack", "s", {}, {}, outputs={"overrides": {"a.z": 1, "a.k": [1]}}
    )
    config = {"vertex-training:overrides": json.dumps({"a.b": "x", "a.k": [1], "a.y": None})}
    plan = events.parse(plans.lines(stack, config=config), "dev")
    assert differences(guards.changed_overrides(plan)) == [
        ("a.b", "as included", '"x"'),
        ("a.y", "as included", "null"),
        ("a.z", "1", "as included"),
    ]


def test_nothing_is_lowered_beside_a_state_that_was_never_read() -> None:
    config = {
        "vertex-training:rules": '{"x": "note"}',
        "vertex-training:overrides": '{"a": 1}',
        "vertex-training:allowedSecrets": '{"f": "r"}',
        "vertex-training:policyLevels": '{"p": "advisory"}',
    }
    plan = events.parse(plans.lines(plans.summary("failed"), config=config), "dev")
    found = (
        guards.drift_exceptions, guards.new_acceptances, guards.allowed_secrets,
        guards.lowered_rules, guards.changed_overrides, limits.lowered_levels,
    )  # fmt: skip
    assert [each(plan) for each in found] == [()] * len(found)
