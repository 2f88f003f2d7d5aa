"""Tests a team's own resources beside the program's, with the real engine on the local stack.

One story in order: a mistake that registers nothing, a bucket and a grant that come up, are
reviewed, compared, judged by policies and removed again by taking `extra.py` away.
"""

import json

import pytest

from localgcp.inventory.store import Binding
from tests.conftest import ROOT
from tests.e2e.small_stacks import SmallStack
from tests.extra_page import EXAMPLE

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

OURS_OF_THE_STORY = {"reports", "reports-readers"}


@pytest.fixture(scope="module")
def stack(checkout):
    found = SmallStack(checkout, "extra")
    found.write({})
    found.pulumi("stack init", expect=None)
    return found


def write(stack, text):
    (stack.checkout.path / "extra.py").write_text(text, encoding="utf-8")


def review(stack, *options, expect=0):
    """Return the report of `vt review` in the local shell."""
    file = stack.checkout.path / "report.json"
    file.unlink(missing_ok=True)
    command = f"vt review -s {stack.name} --format json -o {file} {' '.join(options)}"
    done = stack.checkout.shell(command, expect=expect)
    report = json.loads(file.read_text()) if file.is_file() else {}
    return report, done.stdout + done.stderr


def test_exception_in_declare_registers_no_resource(stack):
    write(stack, EXAMPLE + "    raise ValueError('no team')\n")
    said = stack.pulumi("up -y --skip-preview", expect=None)
    line = len(EXAMPLE.splitlines()) + 1
    assert f"extra.py:{line}: declare(environment) raised ValueError: no team" in said
    assert "Traceback" not in said
    assert stack.left() == {}


def test_review_lists_principals_and_their_new_roles(stack):
    write(stack, EXAMPLE)
    report, _ = review(stack)
    gained = [each for each in report["rights"]["gained"] if "analysts" in each["member"]]
    assert [(each["role"], each["kind"]) for each in gained] == [
        ("roles/storage.objectViewer", "bucket")
    ]


def test_stack_with_extra_resources_deploys_and_second_up_changes_nothing(stack):
    stack.up()
    assert "local-extra-reports" in stack.left()
    stack.is_settled()
    assert stack.outputs()["reports"] == "gs://local-extra-reports"


def test_manually_added_members_are_drift_of_extra_resources(stack):
    account = 'gcp.serviceaccount.Account("robot", account_id="report-robot", opts=kept)'
    protected = f"    kept = pulumi.ResourceOptions(protect=True)\n    {account}\n"
    write(stack, EXAMPLE + protected)
    stack.up()
    robot = "report-robot@local-extra.iam.gserviceaccount.com"
    policies = ("b/local-extra-reports", f"projects/local-extra/serviceAccounts/{robot}")
    for name in policies:
        now = stack.store.policy(name)
        added = (*now.bindings, Binding("roles/viewer", ("user:eve@example.com",)))
        stack.store.set_policy(name, added, expected_etag=now.etag)
    drift, shell = f"vt drift -s {stack.name}", stack.checkout.shell
    shell(f"{drift} -o drift", expect=7)
    found = json.loads((stack.checkout.path / "drift.json").read_text())
    assert {each["name"] for each in found["differences"]} == {*policies}
    for name in policies:
        now = stack.store.policy(name)
        stack.store.set_policy(name, now.bindings[:-1], expected_etag=now.etag)
    shell(drift)
    refused = shell(f"vt destroy -s {stack.name} --yes --name {stack.name}", expect=3).stderr
    assert "remove protect=True in extra.py" in refused
    write(stack, EXAMPLE)
    stack.pulumi("state unprotect --all -y")
    stack.up()


def test_public_extra_bucket_violates_the_policies(stack):
    write(stack, EXAMPLE.replace("group:analysts@example.com", "allUsers"))
    report, said = review(stack, "--policy-pack", str(ROOT / "policy"), expect=None)
    assert "Forbidden by" in said
    assert "everybody: bucket local-extra-reports" in said
    assert "reports-readers" in json.dumps(report["policies"])
    write(stack, EXAMPLE)


def test_unsupported_resource_type_is_reported_with_a_hint(stack):
    write(stack, EXAMPLE + '    gcp.pubsub.Topic("events", name="events")\n')
    said = stack.pulumi("preview", expect=None)
    assert "does not support the resource type gcp:pubsub/topic:Topic" in said
    assert "docs/components.md" in said
    assert "Traceback" not in said
    write(stack, EXAMPLE)


def test_removal_of_extra_deletes_its_resources_and_is_reviewed(stack):
    (stack.checkout.path / "extra.py").unlink()
    assert {name for op, name in stack.plan() if op == "delete"} == OURS_OF_THE_STORY
    report, _ = review(stack, expect=None)
    assert any("analysts" in each["member"] for each in report["rights"]["lost"])
    stack.up()
    assert "local-extra-reports" not in stack.left()
    stack.is_settled()
