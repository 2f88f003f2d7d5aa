"""Access to data by way of accounts, before and after a plan."""

from __future__ import annotations

from tests.unit.vt.review import plans
from vertex_training_cli.review import json_report, markdown, report
from vertex_training_cli.review.grants import access_changes

ACT_AS = "gcp:serviceaccount/iAMMember:IAMMember"
ACCOUNT = f"projects/acme-ml-dev/serviceAccounts/{plans.ACCOUNT}"


def submitter(who, *, op=plans.create):
    inputs = {"serviceAccountId": ACCOUNT, "role": "roles/iam.serviceAccountUser", "member": who}
    return op(ACT_AS, f"submitter-{who}", **inputs)


def kept(bucket):
    return plans.step("same", plans.MEMBER, f"reads-{bucket}", *[plans.member(bucket)] * 2)


def test_a_new_submitter_gains_what_the_account_already_reads():
    plan = plans.plan(kept("acme-data"), submitter("group:new@example.com"))
    gained, lost = access_changes(plan)
    assert [(each.member, each.target, each.through) for each in gained] == [
        ("group:new@example.com", "acme-data", (plans.ACCOUNT,))
    ]
    assert lost == ()


def test_a_submitter_that_leaves_loses_it():
    plan = plans.plan(kept("acme-data"), submitter("group:old@example.com", op=plans.delete))
    gained, [lost] = access_changes(plan)
    assert gained == ()
    assert lost.member == "group:old@example.com"


def test_a_binding_that_is_only_made_anew_changes_no_access():
    inputs = {"serviceAccountId": ACCOUNT, "role": "roles/iam.serviceAccountUser"}
    again = inputs | {"member": "group:ml@example.com"}
    plan = plans.plan(kept("acme-data"), plans.step("replace", ACT_AS, "submitter", again, again))
    assert access_changes(plan) == ((), ())


def test_every_form_of_the_report_has_it():
    plan = plans.plan(kept("acme-data"), submitter("group:new@example.com"))
    found = report.build(plan, source="here")
    row = "| gained | `group:new@example.com` | reads | bucket `acme-data` | `trainer-dev` |"
    assert row in markdown.render(found)
    [entry] = json_report.document(found)["access"]["gained"]
    assert entry["through"] == [plans.ACCOUNT]
