"""Who may pull an image of another project, by the policy of its repository."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localgcp.home import Home
from localgcp.inventory.store import EMPTY_POLICY, Binding, Store
from tests.unit.infra.stacks import unjudged
from tests.unit.vt.images.network import Network
from vertex_training.images import pins
from vertex_training_cli.images import pull_access, registry

DIGEST = "sha256:" + "5" * 64
REPOSITORY = "projects/acme/locations/us/repositories/images"
POLICY = (
    f"https://artifactregistry.googleapis.com/v1/{REPOSITORY}:getIamPolicy"
    "?options.requestedPolicyVersion=3"
)
#: Agents of project 109876543210: docs.cloud.google.com/vertex-ai/docs/general/access-control
AGENT = "service-109876543210@gcp-sa-aiplatform.iam.gserviceaccount.com"
CUSTOM_CODE = "service-109876543210@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"


def missing(root: Path, project: str = "acme", **changes: Any) -> list[str]:
    uri = f"us-docker.pkg.dev/{project}/images/tool@{DIGEST}"
    settings = unjudged(images={"x": {"uri": uri}}, **changes)
    return list(pull_access.missing(settings, pins.pin_of(settings, "x", root), root))


def cannot_pull(*agents: str, project: str = "acme") -> list[str]:
    return [
        f"its repository does not let {agent} pull: gcloud artifacts repositories "
        f"add-iam-policy-binding images --project={project} --location=us "
        f"--member='serviceAccount:{agent}' --role=roles/artifactregistry.reader"
        for agent in agents
    ]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network()
    session = made.client(pull_access.SERVICE, "t0")._transport.session
    monkeypatch.setattr(registry, "google_session", lambda: session)
    return made


def policy(*members: str, role: str = "reader") -> bytes:
    return json.dumps(
        {"bindings": [{"role": f"roles/artifactregistry.{role}", "members": members}]}
    ).encode()


@pytest.mark.parametrize(
    ("content", "agents"),
    [
        (policy(f"serviceAccount:{AGENT}", f"serviceAccount:{CUSTOM_CODE}"), ()),
        (policy(f"serviceAccount:{AGENT}"), (CUSTOM_CODE,)),
        (policy(f"serviceAccount:{CUSTOM_CODE}", role="admin"), (AGENT,)),
        (policy("user:a@example.com"), (AGENT, CUSTOM_CODE)),
        (policy("allUsers"), ()),
        (policy("allAuthenticatedUsers"), ()),
    ],
)
def test_agents_that_the_policy_does_not_have_are_named_with_a_command(
    network: Network, tmp_path: Path, content: bytes, agents: tuple[str, ...]
) -> None:
    network.answers[POLICY] = (200, {}, content)
    assert missing(tmp_path) == cannot_pull(*agents)
    assert network.asked == [("GET", POLICY, "Bearer t0")]
    assert network.sent[0][2]["stream"] is True  # read up to the bound of a document


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((403, {}, b"{}"), "the caller may not read its IAM policy"),
        ((404, {}, b'{"errors": [{"message": "gone"}]}'), "its project has no such repository"),
        (
            (400, {}, b'{"errors": [{"message": "busy"}]}'),
            f"{REPOSITORY}: the registry answered 400 to GET (busy).",
        ),
    ],
)
def test_a_policy_that_cannot_be_read_is_a_reason(
    network: Network, tmp_path: Path, answer: tuple[int, dict[str, str], bytes], reason: str
) -> None:
    network.answers[POLICY] = answer
    assert missing(tmp_path) == [f"who may pull it was not looked at: {reason}"]


def test_in_the_local_cloud_its_inventory_has_the_policy(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VT_LOCAL_HOME", raising=False)
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    assert missing(tmp_path, "local-other") == [
        "who may pull it was not looked at: the local cloud was never started."
    ]
    home = Home.find(cwd=tmp_path)
    home.create()
    here = "projects/local-other/locations/us/repositories/images"
    agent, custom_code = f"serviceAccount:{AGENT}", f"serviceAccount:{CUSTOM_CODE}"
    condition = {"title": "x", "expression": "false"}
    reader, writer = ("roles/artifactregistry.reader", "roles/artifactregistry.writer")
    version = EMPTY_POLICY
    for bindings, agents in (
        ((Binding(reader, (agent,)), Binding(writer, (custom_code,))), ()),
        ((Binding(reader, (agent,), condition), Binding(writer, (custom_code,))), (AGENT,)),
        ((Binding(reader, (agent,)), Binding("roles/viewer", (custom_code,))), (CUSTOM_CODE,)),
    ):
        version = Store(home.database).set_policy(here, bindings, expected_etag=version.etag)
        assert missing(tmp_path, "local-other") == cannot_pull(*agents, project="local-other")
    assert network.asked == []
