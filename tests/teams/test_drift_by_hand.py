"""Tests that each kind of manual change is reported as drift or listed as unchecked.

One stack and two comparisons, before and after: all changes are made, and each test looks for its
own in the second report.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Final

import pytest
import yaml

from tests.conftest import Checkout
from tests.e2e.small_stacks import REGION, SmallStack, job_file
from tests.teams.by_hand import Hand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

EVE: Final = "user:eve@example.com"
#: What is allowed, and an exception for each kind of what is made in a network.
ALLOWED: Final = {
    "auditors": {
        "member": "group:audit@example.com", "role": "roles/storage.objectViewer", "policy": "b/*",
        "reason": "the auditors read every bucket",
    }
}  # fmt: skip
RESOURCES: Final = {
    "bastion": {"resource": "firewalls/iap-*", "reason": "the platform team's way in by IAP"},
    "notebooks": {"resource": "customJobs/notebook-*", "reason": "experiments of the team"},
}
STACK: Final[dict[str, Any]] = {
    "buckets": {
        "artifacts": {"forceDestroy": True},
        "data": {"forceDestroy": True},
        "spare": {"forceDestroy": True},
    },
    "serviceAccounts": {
        "trainer": {"writes": ["artifacts"], "reads": ["data"]},
        "other": {"reads": ["data"]},
    },
    "secrets": {"key": {}, "token": {}},
    "registry": {"immutableTags": True},
    "network": {
        "mode": "psc",
        "subnet": {"range": "10.20.0.0/26"},
        "nat": True,
        "allow": {"db": {"destinationRanges": ["10.99.0.0/24"], "ports": ["5432"]}},
    },
    "reservations": {"cpu": {"zone": f"{REGION}-a", "machineType": "n1-standard-4", "count": 1}},
    "drift": {"projectPolicy": "judged", "allowed": ALLOWED, "allowedResources": RESOURCES},
}


@dataclass(frozen=True)
class Report:
    """The output of one comparison, for people and for programs."""

    text: str
    document: dict[str, Any]

    @property
    def not_looked_at(self) -> str:
        """The parts that the comparison lists as unchecked."""
        return "\n".join(self.document["not_looked_at"])


KINDS: Final = Path(__file__).with_name("changes_by_hand.yaml").read_text("utf-8")


def values(hand: Hand) -> dict[str, str]:
    """Return the values of the table's placeholders."""
    stack = hand.stack
    [repository] = [id_ for id_, kind in stack.left().items() if kind.endswith(":Repository")]
    return {
        "STACK": stack.name, "PROJECT": stack.project, "REGION": REGION, "EVE": EVE,
        "BUCKET": f"/storage/v1/b/{stack.project}", "PLACE": f"/v1/projects/{stack.project}",
        "COMPUTE": f"/compute/v1/projects/{stack.project}", "REPOSITORY": f"/v1/{repository}",
        "TRAINER": hand.address(), "OTHER": hand.address("other"),
    }  # fmt: skip


def change(hand: Hand, row: dict[str, Any]) -> None:
    """Make one change of the table."""
    body = row.get("body", {})
    match row:
        case {"change": path}:
            hand.change(path, body)
        case {"grant": role, "at": path, "member": member}:
            hand.grant(path, role, member)
        case {"grant": role, "member": member}:
            hand.grant_on_project(role, member)
        case {"take": role, "at": path, "member": member}:
            hand.grant(path, role, member, take=True)
        case {"call": call}:
            hand.call(*call.split(), body or None)
        case {"insert": what}:
            hand.insert(*what.split(), **body)
        case {"submit": name}:
            hand.submit(hand.address(), name, **body)
        case {"cancel": key}:
            [job] = [each for each in hand.stack.jobs() if key in json.dumps(each.labels)]
            hand.call("POST", f"/v1/{job.name}:cancel", {})
        case {"client": "delete"}:
            hand.storage.bucket(f"{hand.stack.project}-spare-{hand.stack.name}").delete()
        case {"client": "upload"}:
            bucket = hand.storage.bucket(f"{hand.stack.project}-data-{hand.stack.name}")
            bucket.blob("x").upload_from_string("x")
        case _:
            raise AssertionError(row)


@pytest.fixture(scope="module")
def hand(checkout: Checkout) -> Hand:
    stack = SmallStack(checkout, "hands")
    job = job_file(pscInterfaceConfig="${network.interface}")
    stack.write({"busy": job, "idle": job}, **STACK)
    stack.up()
    return Hand(stack)


def compare(hand: Hand, expect: int) -> Report:
    hand.stack.checkout.run("vt", "drift", "-s", hand.stack.name, "-o", "drift", expect=expect)
    folder = hand.stack.checkout.path
    text = (folder / "drift.md").read_text().replace("\\", "").replace("\u200b", "")
    return Report(text, json.loads((folder / "drift.json").read_text()))


@pytest.fixture(scope="module")
def untouched(hand: Hand) -> Report:
    """Return the comparison just after a deployment, with other users' resources in the project.

    CI has an account and a job, and so has another stack of the checkout.
    """
    project = hand.stack.project
    neighbour = SmallStack(hand.stack.checkout, "beside", project)
    neighbour.write({}, serviceAccounts={"speech": {}})
    for account in ("ci-deploy", "speech-beside"):
        hand.call("POST", f"/v1/projects/{project}/serviceAccounts", {"accountId": account})
    speech = f"speech-beside@{project}.iam.gserviceaccount.com"
    hand.grant_on_project("roles/logging.logWriter", f"serviceAccount:{speech}")
    hand.submit(f"ci-deploy@{project}.iam.gserviceaccount.com", "of-ci")
    own = {"vt-stack": "beside", "vt-request-id": "1" * 32, "vt-job": "speech"}
    hand.submit(speech, "speech", labels=own)
    return compare(hand, 0)


@pytest.fixture(scope="module")
def report(hand: Hand, untouched: Report) -> Report:
    for row in yaml.safe_load(Template(KINDS).substitute(values(hand))).values():
        change(hand, row)
    return compare(hand, 7)


def test_deployed_stack_has_no_drift_and_lists_unchecked_parts(untouched: Report) -> None:
    assert untouched.text.startswith("Stack **hands** has no drift.")
    assert "Not checked" in untouched.text
    assert "group:audit@example.com" in untouched.not_looked_at


@pytest.mark.parametrize("kind", yaml.safe_load(KINDS))
def test_manual_change_is_reported_as_drift_or_as_unchecked(report: Report, kind: str) -> None:
    row = yaml.safe_load(KINDS)[kind]
    if "name" not in row:
        assert row["told"] in report.not_looked_at
        return
    parts = [part for part in report.text.split("\n### ")[1:] if part.startswith(row["name"])]
    assert any(row["told"] in part for part in parts), report.text
