"""What others change by hand, with clients of their own: each kind is reported or listed.

One stack and two comparisons, before and after: all changes are made, and each test looks for its
own in the second report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.conftest import running_checkout
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
    """What one comparison told, for people and for programs."""

    text: str
    document: dict[str, Any]

    def about(self, name: str) -> str:
        """The part of the report on one resource."""
        parts = [each for each in self.text.split("\n### ") if each.startswith(name)]
        assert parts, f"{name} is not reported:\n{self.text}"
        return parts[0]

    @property
    def not_looked_at(self) -> str:
        """What it says that it did not judge."""
        return "\n".join(self.document["not_looked_at"])


@dataclass(frozen=True)
class ByHand:
    """One kind of drift: what somebody does, and what is reported of it."""

    do: Callable[[Hand], object]
    name: str
    """How the report's part on it begins; empty for what is not judged."""
    told: str
    """Text of that part, or of the list of what was not looked at."""


def bucket(key: str, hand: Hand) -> str:
    return f"/storage/v1/b/{hand.stack.project}-{key}-{hand.stack.name}"


def in_project(rest: str, hand: Hand) -> str:
    return f"/v1/projects/{hand.stack.project}/{rest}".replace("STACK", hand.stack.name)


def compute(rest: str, hand: Hand) -> str:
    path = f"/compute/v1/projects/{hand.stack.project}/{rest}"
    return path.replace("STACK", hand.stack.name)


def repository(hand: Hand) -> str:
    found = [id_ for id_, type_ in hand.stack.left().items() if type_.endswith(":Repository")]
    return f"/v1/{found[0]}"


def changes(path: Callable[[Hand], str], **body: Any) -> Callable[[Hand], object]:
    return lambda hand: hand.change(path(hand), body)


def deletes(path: Callable[[Hand], str]) -> Callable[[Hand], object]:
    return lambda hand: hand.call("DELETE", path(hand))


def grants(path: Callable[[Hand], str], role: str, member: str) -> Callable[[Hand], object]:
    return lambda hand: hand.grant(path(hand), role, member)


def submits(account: str, name: str, **more: Any) -> Callable[[Hand], object]:
    return lambda hand: hand.submit(hand.address(account), name, **more)


def cancel_declared(hand: Hand) -> None:
    [job] = [each for each in hand.stack.jobs() if "idle" in json.dumps(each.labels)]
    hand.call("POST", f"/v1/{job.name}:cancel", {})


KINDS: Final[dict[str, ByHand]] = {
    "a label of a bucket": ByHand(
        changes(lambda h: bucket("data", h), labels={"owner": "mallory"}), "storage-data", "mallory"
    ),
    "versions of a bucket switched off": ByHand(
        changes(lambda h: bucket("artifacts", h), versioning={"enabled": False}),
        "storage-artifacts", "versioning.enabled",
    ),
    "a bucket opened to public members": ByHand(
        changes(
            lambda h: bucket("artifacts", h),
            iamConfiguration={"publicAccessPrevention": "inherited"},
        ),
        "storage-artifacts", "publicAccessPrevention",
    ),
    "access by object lists": ByHand(
        changes(
            lambda h: bucket("artifacts", h),
            iamConfiguration={"uniformBucketLevelAccess": {"enabled": False}},
        ),
        "storage-artifacts", "uniformBucketLevelAccess",
    ),
    "everybody reads a bucket": ByHand(
        grants(lambda h: bucket("data", h), "roles/storage.objectViewer", "allUsers"),
        "b/", "allUsers",
    ),
    "a member taken from a bucket": ByHand(
        lambda h: h.grant(
            bucket("data", h), "roles/storage.objectViewer",
            f"serviceAccount:{h.address()}", take=True,
        ),
        "trainer-reads-data", "is declared, and is not there",
    ),
    "a bucket deleted": ByHand(
        lambda h: h.storage.bucket(f"{h.stack.project}-spare-{h.stack.name}").delete(),
        "storage-spare", "is declared, and is not there",
    ),
    "an object in a bucket": ByHand(
        lambda h: (
            h.storage.bucket(f"{h.stack.project}-data-{h.stack.name}").blob("x").upload_from_string("x")
        ),
        "", "objects of buckets",
    ),
    "a label of a secret": ByHand(
        changes(lambda h: in_project("secrets/key-STACK", h), labels={"owner": "mallory"}),
        "secrets-key", "mallory",
    ),
    "a secret deleted": ByHand(
        deletes(lambda h: in_project("secrets/token-STACK", h)),
        "secrets-token", "is declared, and is not there",
    ),
    "somebody reads a secret": ByHand(
        grants(
            lambda h: in_project("secrets/key-STACK", h), "roles/secretmanager.secretAccessor", EVE
        ),
        "projects/", "secretAccessor",
    ),
    "tags of images that can be moved": ByHand(
        changes(repository, dockerConfig={"immutableTags": False}),
        "registry-docker", "immutableTags",
    ),
    "somebody writes images": ByHand(
        grants(repository, "roles/artifactregistry.writer", EVE),
        "projects/", "artifactregistry.writer",
    ),
    "an account switched off": ByHand(
        lambda h: h.call("POST", in_project(f"serviceAccounts/{h.address('other')}:disable", h)),
        "other-account", "disabled",
    ),
    "somebody signs as an account": ByHand(
        grants(
            lambda h: in_project(f"serviceAccounts/{h.address()}", h),
            "roles/iam.serviceAccountTokenCreator", EVE,
        ),
        "projects/", "serviceAccountTokenCreator",
    ),
    "an owner of the project": ByHand(
        lambda h: h.grant_on_project("roles/owner", "user:bob@gmail.com"),
        "projects/", "| roles/owner | user:bob@gmail.com",
    ),
    "a role of an own account on the project": ByHand(
        lambda h: h.grant_on_project("roles/editor", f"serviceAccount:{h.address()}"),
        "projects/", "| roles/editor | serviceAccount:trainer",
    ),
    "everybody in the project": ByHand(
        lambda h: h.grant_on_project("roles/viewer", "allAuthenticatedUsers"),
        "projects/", "allAuthenticatedUsers",
    ),
    "a member taken from the project": ByHand(
        lambda h: h.grant(
            f"/v3/projects/{h.stack.project}", "roles/logging.logWriter",
            f"serviceAccount:{h.address('other')}", take=True,
        ),
        "other-logs", "is declared, and is not there",
    ),
    "an API switched off": ByHand(
        lambda h: h.call("POST", in_project("services/artifactregistry.googleapis.com:disable", h)),
        "apis-artifactregistry", "is declared, and is not there",
    ),
    "a rule opened to the internet": ByHand(
        changes(
            lambda h: compute("global/firewalls/training-STACK-db", h), sourceRanges=["0.0.0.0/0"]
        ),
        "network-allow-db", "0.0.0.0/0",
    ),
    "a rule deleted": ByHand(
        deletes(lambda h: compute("global/firewalls/training-STACK-workers", h)),
        "network-allow-workers", "is declared, and is not there",
    ),
    "a rule made": ByHand(
        lambda h: h.insert(
            "global/firewalls", "ssh-open", direction="INGRESS", sourceRanges=["0.0.0.0/0"],
            allowed=[{"IPProtocol": "tcp", "ports": ["22"]}],
        ),
        "ssh-open", "tcp:22",
    ),
    "an allowed rule": ByHand(
        lambda h: h.insert(
            "global/firewalls", "iap-ssh", direction="INGRESS", sourceRanges=["35.235.240.0/20"],
            allowed=[{"IPProtocol": "tcp", "ports": ["22"]}],
        ),
        "", "firewalls/iap-ssh",
    ),
    "a subnet made": ByHand(
        lambda h: h.insert(
            f"regions/{REGION}/subnetworks", "side-door", ipCidrRange="10.77.0.0/24",
            region=f"https://www.googleapis.com/compute/v1/projects/p/regions/{REGION}",
        ),
        "side-door", "10.77.0.0/24",
    ),
    "a subnet without Google's APIs": ByHand(
        changes(
            lambda h: compute(f"regions/{REGION}/subnetworks/training-STACK", h),
            privateIpGoogleAccess=False,
        ),
        "network-subnet", "privateIpGoogleAccess",
    ),
    "somebody uses a subnet": ByHand(
        grants(
            lambda h: compute(f"regions/{REGION}/subnetworks/training-STACK", h),
            "roles/compute.networkUser", EVE,
        ),
        "projects/", "compute.networkUser",
    ),
    "a route made": ByHand(
        lambda h: h.insert(
            "global/routes", "through-mallory", destRange="10.0.0.0/8", nextHopIp="10.20.0.9",
            priority=1000,
        ),
        "through-mallory", "10.0.0.0/8",
    ),
    "a peering made": ByHand(
        lambda h: h.call(
            "POST", f"{h.network}/addPeering",
            {"networkPeering": {"name": "to-mallory", "network": "projects/p/global/networks/n"}},
        ),
        "to-mallory", "network peering",
    ),
    "a NAT deleted": ByHand(
        deletes(lambda h: compute(f"regions/{REGION}/routers/training-STACK", h)),
        "network-router", "is declared, and is not there",
    ),
    "an attachment with another preference": ByHand(
        changes(
            lambda h: compute(f"regions/{REGION}/networkAttachments/training-STACK", h),
            connectionPreference="ACCEPT_MANUAL",
        ),
        "network-psc-attachment", "connectionPreference",
    ),
    "a reservation that grew": ByHand(
        changes(
            lambda h: compute(f"zones/{REGION}-a/reservations/cpu-STACK", h),
            specificReservation={
                "count": 9, "instanceProperties": {"machineType": "n1-standard-4"}
            },
        ),
        "capacity-cpu", "count",
    ),
    "a job": ByHand(submits("trainer", "mining"), "mining", "account"),
    "a tuning job": ByHand(submits("trainer", "wide", tuning=True), "wide", "account"),
    "an allowed job": ByHand(submits("trainer", "notebook-7"), "", "customJobs/notebook-7"),
    "a job that says it is of another stack": ByHand(
        submits(
            "trainer", "disguised",
            labels={"vt-stack": "elsewhere", "vt-request-id": "0" * 32, "vt-job": "disguised"},
        ),
        "disguised", "account",
    ),
    "a declared job cancelled": ByHand(cancel_declared, "training-idle", "raise its run"),
}  # fmt: skip


@dataclass(frozen=True)
class Neighbour(SmallStack):
    """Another stack of the checkout in the same project."""

    shared: str

    @property
    def project(self) -> str:
        return self.shared


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hand]:
    with running_checkout(tmp_path_factory.mktemp("by-hand")) as copy:
        stack = SmallStack(copy, "hands")
        job = job_file(pscInterfaceConfig="${network.interface}")
        stack.write({"busy": job, "idle": job}, **STACK)
        stack.up()
        yield Hand(stack)


def compare(hand: Hand, expect: int) -> Report:
    hand.stack.checkout.run("vt", "drift", "-s", hand.stack.name, "-o", "drift", expect=expect)
    folder = hand.stack.checkout.path
    text = (folder / "drift.md").read_text().replace("\\", "").replace("\u200b", "")
    return Report(text, json.loads((folder / "drift.json").read_text()))


@pytest.fixture(scope="module")
def untouched(hand: Hand) -> Report:
    """The comparison of what was just deployed, beside what others have in the project.

    CI has an account and a job, and so has another stack of the checkout.
    """
    project = hand.stack.project
    neighbour = Neighbour(hand.stack.checkout, "beside", project)
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
    for kind in KINDS.values():
        kind.do(hand)
    return compare(hand, 7)


def test_what_was_deployed_is_as_declared_with_a_list_of_what_was_not_judged(
    untouched: Report,
) -> None:
    assert untouched.text.startswith("**hands** is as declared.")
    assert "Not looked at" in untouched.text
    assert "group:audit@example.com" in untouched.not_looked_at


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_by_hand_is_reported_or_said_not_to_be_judged(report: Report, kind: str) -> None:
    found = KINDS[kind]
    if not found.name:
        assert found.told in report.not_looked_at
        return
    parts = [part for part in report.text.split("\n### ")[1:] if part.startswith(found.name)]
    assert any(found.told in part for part in parts), report.text
