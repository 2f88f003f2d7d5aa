"""Who is told no more, in a review: of alerts, channels and budgets, whoever declares them."""

import pytest

from tests.unit.vt.review import plans
from vertex_training.catalog.resource_types import ALERT, BUDGET, CHANNEL, DASHBOARD
from vertex_training_cli.engine.values import WIRE_UNKNOWN
from vertex_training_cli.review import html, report
from vertex_training_cli.review.alerts import WatchChange, less_told, watch_changes
from vertex_training_cli.review.headline import answers, verdict

ONE, TWO = (f"projects/acme-ml-dev/notificationChannels/{number}" for number in (1, 2))
MAIL = {"type": "email", "displayName": "oncall", "labels": {"email_address": "ml@example.com"}}
FAILED = {
    "displayName": "A job failed (dev)",
    "conditions": [{"conditionMatchedLog": {"filter": 'textPayload="Job failed."'}}],
    "notificationChannels": [ONE],
}
BUDGET_OF_DEV = {
    "displayName": "Training dev",
    "billingAccount": "012345-6789AB-CDEF01",
    "budgetFilter": {"projects": ["projects/210987654321"]},
    "amount": {"specifiedAmount": {"units": "2000", "currencyCode": "USD"}},
    "thresholdRules": [{"thresholdPercent": 0.5}, {"thresholdPercent": 1.0}],
    "allUpdatesRule": {"monitoringNotificationChannels": [ONE]},
}


def spend(units):
    return {"amount": {"specifiedAmount": {"units": units, "currencyCode": "USD"}}}


def by_query(query, **more):
    found = {"query": query, "duration": "60s"} | more
    return {"conditions": [{"conditionPrometheusQueryLanguage": found}]}


def lost(*events):
    return [each.what for each in less_told(plans.plan(*events))]


def same_channel():
    event = plans.step("same", CHANNEL, "monitoring-channel-oncall", MAIL, MAIL)
    event["resourcePreEvent"]["metadata"]["old"]["id"] = ONE
    return event


def change(type_, old, **new):
    return plans.step("update", type_, "monitoring-x", old, old | new)


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (plans.delete(BUDGET, "a", **BUDGET_OF_DEV), "budget is removed: 2000 USD a month"),
        (change(ALERT, FAILED, notificationChannels=[TWO]), "to oncall, email ml@example.com"),
        (change(ALERT, FAILED, enabled=False), "is off"),
        (change(ALERT, FAILED, conditions=[]), "but when nothing"),
        (
            change(CHANNEL, MAIL, labels={"email_address": "x@example.com"}),
            "no longer to email ml@example.com, but to email x@example.com",
        ),
        (change(BUDGET, BUDGET_OF_DEV, **spend(WIRE_UNKNOWN)), "not of 2000 USD"),
        (
            change(BUDGET, BUDGET_OF_DEV, thresholdRules=[{"thresholdPercent": 1.0}]),
            "no longer at 50%",
        ),
        (change(BUDGET, BUDGET_OF_DEV, budgetFilter={}), "is of other costs"),
        (
            change(BUDGET, BUDGET_OF_DEV, allUpdatesRule={"disableDefaultIamRecipients": True}),
            "no longer to administrators of the billing account",
        ),
    ],
)
def test_a_loss_is_told(event, what):
    found = lost(same_channel(), event)
    assert any(what in each for each in found), found


@pytest.mark.parametrize(
    "event",
    [
        plans.create(ALERT, "a", **FAILED),
        change(ALERT, FAILED, notificationChannels=[ONE, WIRE_UNKNOWN]),
        change(ALERT, FAILED, documentation={"content": "other words"}),
        change(BUDGET, BUDGET_OF_DEV, **spend("1500")),
        change(BUDGET, BUDGET_OF_DEV, displayName="other"),
        plans.delete(DASHBOARD, "a", dashboardJson="{}"),
    ],
)
def test_what_is_no_loss_is_not_told(event):
    assert lost(same_channel(), event) == []


def test_what_is_new_says_whom_it_tells_and_that_a_budget_stops_nothing():
    alert = FAILED | {"notificationChannels": [WIRE_UNKNOWN, ONE]}
    made = [plans.create(ALERT, "a", **alert), plans.create(BUDGET, "b", **BUDGET_OF_DEV)]
    found = report.build(plans.plan(same_channel(), *made), source="here")
    told = {each.kind: each.told for each in found.watching}
    assert told["alert"] == ("a channel of this change", "oncall, email ml@example.com")
    assert told["budget"][-1] == "administrators and users of the billing account"
    text = next(
        e.text for e in answers(found, lambda t, _=0: t) if e.question.startswith("what it")
    )
    assert "it stops nothing" in text
    assert "no longer told" not in verdict(found)


def test_what_else_changes_of_one_is_shown_field_by_field():
    step = change(ALERT, FAILED, documentation={"content": "other words"})
    [found] = report.build(plans.plan(same_channel(), step), source="here").changes
    assert [each.path for each in found.differences] == ["documentation.content"]


def test_names_of_others_cannot_write_the_page():
    evil = FAILED | {"displayName": "x</td><script>|\n# y"}
    page = html.render(report.build(plans.plan(plans.delete(ALERT, "a", **evil)), source="here"))
    assert "<script>" not in page


def removed(type_, inputs):
    return lost(plans.delete(type_, "a", **inputs))


LIMIT = {"filter": "queue", "comparison": "COMPARISON_GT", "thresholdValue": 3, "duration": "60s"}
LOG = {"filter": "x"}


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        ([{"conditionMatchedLog": LOG}], "a log entry has x"),
        ([{"conditionThreshold": LIMIT}], "queue is above 3 for 60s"),
        (
            [{"conditionMatchedLog": LOG}, {"displayName": "absent"}, 7],
            "a log entry has x or absent or [known after apply]",
        ),
        ([{"conditionPrometheusQueryLanguage": {"query": "up", "duration": "9s"}}], "up for 9s"),
        ([{"conditionSql": {"query": "SELECT 1"}}], "the query finds rows: SELECT 1"),
        ([{"conditionAbsent": {"filter": "f", "duration": "9s"}}], "f has no data for 9s"),
    ],
)
def test_an_alert_is_about_its_conditions(conditions, words):
    [found] = watch_changes(plans.plan(plans.create(ALERT, "a", conditions=conditions)))
    assert found == WatchChange("alert", "a", "create", words, (), ())


def test_changes_are_by_kind_and_name_with_whom_they_told_before_and_after():
    both = ("oncall, email ml@example.com", TWO)
    admins = "administrators and users of the billing account"
    silent = {"allUpdatesRule": {"disableDefaultIamRecipients": True}}
    plan = plans.plan(
        same_channel(),
        change(ALERT, FAILED | {"notificationChannels": [ONE, TWO]}, notificationChannels=[]),
        plans.create(ALERT, "b", displayName="A", notificationChannels=[WIRE_UNKNOWN]),
        plans.step("update", BUDGET, "c", BUDGET_OF_DEV, BUDGET_OF_DEV | silent),
        plans.delete(DASHBOARD, "d", displayName="Charts"),
        plans.create(CHANNEL, "e", **MAIL, notificationChannels=[ONE]),
        plans.create(plans.BUCKET, "f", name="b"),
    )
    about, mail = 'a log entry has textPayload="Job failed."', "email ml@example.com"
    assert watch_changes(plan) == (
        WatchChange("alert", "A", "create", "nothing", (), ("a channel of this change",)),
        WatchChange("alert", "A job failed (dev)", "update", about, both, ()),
        WatchChange(
            "budget",
            "Training dev",
            "update",
            "2000 USD a month, at 50%, 100%",
            (both[0], admins),
            (),
        ),
        WatchChange("channel", "oncall", "create", mail, (), ()),
        WatchChange("dashboard", "Charts", "delete", "charts", (), ()),
    )


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (change(ALERT, FAILED, enabled=False), ["is off"]),
        (
            change(ALERT, by_query("up == 0"), **by_query("up == 1")),
            ["no longer when up == 0 for 60s, but when up == 1 for 60s"],
        ),
        (
            change(ALERT, by_query("up"), **by_query("up", evaluationInterval="999s")),
            ["when up for 60s, but judged in another way"],
        ),
        (
            change(ALERT, FAILED, alertStrategy={"notificationRateLimit": {"period": "99999s"}}),
            ["told in another way: alertStrategy changes"],
        ),
        (change(BUDGET, BUDGET_OF_DEV, amount={}), ["of ? a month, not of 2000 USD"]),
        (
            change(BUDGET, BUDGET_OF_DEV, thresholdRules=[]),
            ["no longer at 50%, 100%"],
        ),
        (
            change(BUDGET, BUDGET_OF_DEV, budgetFilter={}, billingAccount="x"),
            [
                "is of other costs: billingAccount changes",
                "is of other costs: budgetFilter changes",
            ],
        ),
        (
            change(
                BUDGET,
                BUDGET_OF_DEV,
                allUpdatesRule={
                    "monitoringNotificationChannels": [],
                    "disableDefaultIamRecipients": True,
                },
            ),
            [
                "no longer to administrators of the billing account",
                "no longer to oncall, email ml@example.com",
            ],
        ),
        (
            change(CHANNEL, MAIL, type="sms"),
            ["no longer to email ml@example.com, but to sms ml@example.com"],
        ),
    ],
)
def test_less_is_told_word_for_word(event, told):
    assert lost(same_channel(), event) == told
