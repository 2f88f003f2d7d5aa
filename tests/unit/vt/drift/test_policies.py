"""Members of policies that a stack does not declare: who counts, and who does not."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from tests.unit.vt.review import plans
from vertex_training.errors import CommandError
from vertex_training.settings.model import AllowedMember
from vertex_training_cli.drift import command
from vertex_training_cli.drift.policies import (
    Declared,
    Membership,
    declared,
    read,
    undeclared,
)
from vertex_training_cli.rest import RestClient

TRAINER = "serviceAccount:trainer-dev@p-1.iam.gserviceaccount.com"
PROJECT = "gcp:projects/iAMMember:IAMMember"


def kept(type_: str, resource: str, /, **inputs: object) -> plans.Event:
    return plans.step("same", type_, resource, inputs, inputs)


PLAN = plans.plan(
    kept(plans.BUCKET, "data", name="data"),
    kept("gcp:serviceaccount/account:Account", "trainer", project="p-1", accountId="trainer-dev"),
    kept(plans.MEMBER, "reads", bucket="data", role="roles/storage.objectViewer", member=TRAINER),
    kept(PROJECT, "logs", project="p-1", role="roles/logging.logWriter", member=TRAINER),
)
READS = Membership("b/data", "roles/storage.objectViewer", TRAINER)
LOGS = Membership("projects/p-1", "roles/logging.logWriter", TRAINER)


def found(*more: Membership, allowed: tuple[AllowedMember, ...] = ()) -> list[Membership]:
    return undeclared(declared(PLAN), [READS, LOGS, *more], allowed)


def test_a_member_is_allowed_by_its_role_and_policy_with_a_reason() -> None:
    added = Membership("b/data", "roles/storage.objectViewer", "group:audit@example.com")
    exception = AllowedMember(
        member=added.member, role=added.role, policy="b/*", reason="the auditors read all buckets"
    )
    assert found(added, allowed=(exception,)) == []
    wider = Membership("b/data", "roles/storage.objectAdmin", added.member)
    assert found(wider, allowed=(exception,)) == [wider]


OWNER = Membership("projects/p-1", "roles/owner", "user:bob@gmail.com")
SPEECH = Membership("projects/p-1", "roles/logging.logWriter", "serviceAccount:s@p-1.x")
NUMBER = "123456789012"


def google(role: str, address: str) -> Membership:
    return Membership("projects/p-1", role, f"serviceAccount:{address}")


@pytest.mark.parametrize(
    ("added", "is_drift"),
    [
        (OWNER, True),
        (SPEECH, False),  # another stack of the checkout declares it
        (google("roles/editor", "speech@p-1.iam.gserviceaccount.com"), True),
        (google("roles/editor", f"{NUMBER}-compute@developer.gserviceaccount.com"), True),
        # what Google gives by itself, in this project and no other
        (google("roles/owner", f"{NUMBER}@cloudservices.gserviceaccount.com"), True),
        (
            google("roles/x.serviceAgent", f"service-{NUMBER}@gcp-sa-x.iam.gserviceaccount.com"),
            False,
        ),
    ],
)  # fmt: skip
def test_a_stranger_on_a_project_of_ones_own_is_drift_once_it_is_judged(
    added: Membership, is_drift: bool
) -> None:
    judged = declared(PLAN).with_project("p-1", NUMBER, [SPEECH])
    assert undeclared(judged, [READS, LOGS, added], ()) == [added] * is_drift
    assert judged.others([added]) == []
    unjudged = dataclasses.replace(declared(PLAN), project_number=NUMBER)
    assert undeclared(unjudged, [READS, LOGS, added], ()) == []


def test_strangers_of_a_project_that_is_not_judged_are_listed() -> None:
    assert command.lines_of_projects(declared(PLAN), [READS, LOGS, OWNER]) == [
        "projects/p-1: roles/owner of user:bob@gmail.com (drift.projectPolicy: own)"
    ]


CONFIG = {"gcp:project": "p-1", "gcp:region": "us-central1"}


def of_team(*steps: plans.Event) -> Declared:
    """What a team's resources declare, in a stack of these settings."""
    return declared(dataclasses.replace(plans.plan(*steps), config=CONFIG))


@pytest.mark.parametrize(
    ("given", "members"),
    [
        ({"member": "user:a"}, ["user:a"]),
        ({"members": ["user:a", "group:b"]}, ["user:a", "group:b"]),
        ({"members": [], "member": "user:a"}, ["user:a"]),
    ],
)
@pytest.mark.parametrize(
    ("condition", "expression"),
    [(None, ""), ({"title": "t"}, ""), ({"expression": "request.time < x"}, "request.time < x")],
)
def test_a_binding_declares_each_of_its_members_under_its_condition(
    given: dict[str, object], members: list[str], condition: object, expression: str
) -> None:
    binding = {"bucket": "data", "role": "r", "condition": condition, **given}
    kind = "gcp:storage/bucketIAMBinding:BucketIAMBinding"
    found = of_team(kept(plans.BUCKET, "data", name="data"), kept(kind, "all", **binding))
    assert found.policies == ("b/data",)
    assert found.memberships == {Membership("b/data", "r", each, expression) for each in members}


def test_a_policy_that_a_team_declares_as_a_whole_is_left_to_the_refresh() -> None:
    kind = "gcp:storage/bucketIAMPolicy:BucketIAMPolicy"
    policy = kept(kind, "all", bucket="data", policyData='{"bindings": []}')
    wanted = of_team(kept(plans.BUCKET, "data", name="data"), policy)
    assert (wanted.policies, wanted.memberships) == ((), frozenset())


class Iam:
    """Google's IAM methods over HTTP, as far as a policy is read."""

    def __init__(self) -> None:
        self.policies: dict[str, dict[str, object]] = {}
        iam = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                code, document = iam.answer(self.path)
                text = json.dumps(document).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: str) -> tuple[int, dict[str, object]]:
        path = re.sub(r"^/(storage/v1|compute/v1|v1|v3)/", "", path.partition("?")[0])
        name, _, verb = path.rpartition(":")
        for ending in ("/iam", "/getIamPolicy"):
            if not name and verb.endswith(ending):
                name = verb.removesuffix(ending)
        if name not in self.policies:
            return (403, {}) if "forbidden" in name else (404, {})
        return 200, self.policies[name]


@pytest.fixture
def iam() -> Iterator[Iam]:
    made = Iam()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def client(iam: Iam) -> RestClient:
    session = requests.Session()
    session.trust_env = False
    return RestClient(session, f"127.0.0.1:{iam.server.server_port}")


NAMES = (
    "b/data",
    "projects/p-1",
    "projects/p-1/serviceAccounts/a@p-1.iam.gserviceaccount.com",
    "projects/p-1/secrets/s",
    "projects/p-1/locations/us-central1/repositories/r",
    "projects/p-1/regions/us-central1/subnetworks/n",
    "projects/p-1/locations/us-central1/keyRings/k/cryptoKeys/c",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_is_read_with_its_conditions(iam: Iam, client: RestClient, name: str) -> None:
    condition = {"title": "t", "expression": "request.time < x"}
    iam.policies[name] = {
        "etag": "e",
        "bindings": [
            {"role": "roles/x", "members": ["user:a@example.com", "allUsers"]},
            {"role": "roles/x", "members": ["allUsers"], "condition": condition},
            {"role": "roles/y", "members": ["allUsers"]},
        ],
    }
    assert read(client, name) == [
        Membership(name, "roles/x", "user:a@example.com"),
        Membership(name, "roles/x", "allUsers"),
        Membership(name, "roles/x", "allUsers", "request.time < x"),
        Membership(name, "roles/y", "allUsers"),
    ]


def test_a_policy_of_what_is_not_there_has_no_members(client: RestClient) -> None:
    assert read(client, "b/gone") == []


def test_a_policy_that_cannot_be_read_is_an_error_and_not_an_empty_one(
    client: RestClient,
) -> None:
    with pytest.raises(CommandError, match="b/forbidden: IAM policy cannot be read: 403"):
        read(client, "b/forbidden")
    with pytest.raises(CommandError, match="cannot find the service that stores this IAM policy"):
        read(client, "folders/1")
