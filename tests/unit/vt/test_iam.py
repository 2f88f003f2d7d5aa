"""Grants that a team's `extra.py` declares, as `vt iam` shows them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.extra_page import EXAMPLE
from tests.fixture_project import copy_project
from vertex_training.errors import CommandError, ConfigError
from vertex_training_cli.iam import UNKNOWN, _grants, record
from vertex_training_cli.review.grants import IamBinding

HEAD = "import json\nimport pulumi\nimport pulumi_gcp as gcp\n\ndef declare(environment):\n"
READ = "roles/storage.objectViewer"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Stack files without jobs, so that nothing but their own text is judged."""
    copy_project(tmp_path)
    (tmp_path / "Pulumi.yaml").write_text("name: search\nruntime: python\n")
    file = tmp_path / "Pulumi.dev.yaml"
    document = yaml.safe_load(file.read_text())
    for section in ("jobs", "tuningJobs", "packages", "images"):
        document["config"].pop(f"vertex-training:{section}", None)
    document["config"] |= {"search:reader": "group:a@example.com", "search:limit": 3}
    document["config"]["search:token"] = {"secure": "v1:abc"}
    file.write_text(yaml.safe_dump(document))
    return tmp_path


def grants(root: Path, text: str) -> set[IamBinding]:
    """The grants that are there with this `extra.py`, and not without it."""
    before = record(root, "dev").grants
    (root / "extra.py").write_text(text, encoding="utf-8")
    return {*record(root, "dev").grants} - {*before}


def test_the_grant_of_the_pages_example_is_shown(root: Path) -> None:
    [found] = grants(root, EXAMPLE)
    assert found == IamBinding(
        "group:analysts@example.com", "storage.objectViewer", "bucket", "acme-ml-dev-reports"
    )


def test_stacks_are_recorded_one_after_another(root: Path) -> None:
    (root / "extra.py").write_text(EXAMPLE, encoding="utf-8")
    assert record(root, "dev") == record(root, "dev")


def test_an_account_that_leaves_its_project_to_the_provider_is_named(root: Path) -> None:
    [found] = grants(
        root,
        HEAD + "    robot = gcp.serviceaccount.Account('robot', account_id='report-robot')\n"
        "    gcp.storage.BucketIAMBinding(\n"
        f"        'all', bucket='x', role='{READ}', members=[robot.member])\n",
    )
    member = "serviceAccount:report-robot@acme-ml-dev.iam.gserviceaccount.com"
    assert found == IamBinding(member, "storage.objectViewer", "bucket", "x")


def test_a_whole_policy_is_shown_member_by_member(root: Path) -> None:
    members = ["user:a@example.com", "user:b@example.com"]
    bindings = {"bindings": [{"role": READ, "members": members}]}
    known = f"policy_data={json.dumps(bindings)!r}"
    found = grants(root, f"{HEAD}    gcp.storage.BucketIAMPolicy('p', bucket='x', {known})\n")
    assert found == {IamBinding(each, "storage.objectViewer", "bucket", "x") for each in members}
    unknown = "gcp.storage.Bucket('b', location='EU').url.apply(lambda url: url)"
    [found] = grants(
        root, f"{HEAD}    gcp.storage.BucketIAMPolicy('p', bucket='x', policy_data={unknown})\n"
    ) - {*found}
    assert found == IamBinding(UNKNOWN, UNKNOWN, "bucket", "x")


ELSEWHERE = {
    "condition": {"expression": "x"}, "location": "l", "member": "group:g", "members": ["group:h"],
    "policyData": "{}", "project": "p", "region": "r", "role": "organizations/1/roles/own",
}  # fmt: skip


@pytest.mark.parametrize(
    ("token", "inputs", "found"),
    [
        ("pubsub/topicIAMBinding:TopicIAMBinding", {**ELSEWHERE, "topic": "projects/p/topics/t"},
         ("group:h", "own", "topic", "t", "x")),
        ("pubsub/topicIAMMember:TopicIAMMember", {"role": "r", "member": "m", "topic": "t"},
         ("m", "r", "topic", "t", "")),
        ("pubsub/topicIAMMember:TopicIAMMember", {}, (UNKNOWN, UNKNOWN, "project", UNKNOWN, "")),
        ("endpoints/serviceIamMember:ServiceIamMember", {"member": "m", "project": "p"},
         ("m", UNKNOWN, "project", "p", "")),
        ("projects/iAMMember:IAMMember", {"bucket": "b", "project": "p", "condition": None},
         (UNKNOWN, UNKNOWN, "bucket", "b", "")),
        ("projects/iAMMember:IAMMember", {"project": "projects/p", "zone": "z"},
         (UNKNOWN, UNKNOWN, "project", "p", "")),
        ("storage/bucketIAMMember:BucketIAMMember", {"bucket": "b/x", "project": "p"},
         (UNKNOWN, UNKNOWN, "bucket", "x", "")),
        ("storage/bucket:Bucket", {"bucket": "b", "member": "m"}, None),
    ],
)  # fmt: skip
def test_a_grant_is_on_what_its_input_names(
    token: str, inputs: dict[str, object], found: tuple[str, ...] | None
) -> None:
    assert list(_grants(f"gcp:{token}", inputs)) == ([IamBinding(*found)] if found else [])


@pytest.mark.parametrize("policy", ["[]", "x", UNKNOWN, None])
def test_a_policy_that_cannot_be_read_is_one_grant_to_nobody_known(policy: object) -> None:
    inputs = {"bucket": "b", "policyData": policy}
    [found] = _grants("gcp:storage/bucketIAMPolicy:BucketIAMPolicy", inputs)
    assert found == IamBinding(UNKNOWN, UNKNOWN, "bucket", "b")


def test_a_teams_own_config_is_what_the_engine_would_give_it(root: Path) -> None:
    [found] = grants(
        root,
        HEAD + "    own = pulumi.Config()\n"
        "    assert own.require_int('limit') == 3 and own.require_secret('token')\n"
        "    assert pulumi.get_project() == 'search' and pulumi.get_stack() == 'dev'\n"
        f"    gcp.storage.BucketIAMMember('m', bucket='x', role='{READ}',\n"
        "        member=own.require('reader'))\n",
    )
    assert found.member == "group:a@example.com"


def test_what_is_raised_where_a_value_is_applied_is_one_line(root: Path) -> None:
    (root / "extra.py").write_text(
        HEAD + "    bucket = gcp.storage.Bucket('b', name='n', location='EU')\n"
        "    pulumi.export('x', bucket.name.apply(lambda name: 1 / 0))\n"
    )
    with pytest.raises(ConfigError, match=r"extra.py:7: apply raised ZeroDivisionError"):
        record(root, "dev")


@pytest.mark.parametrize("call", ["get_bucket", "get_bucket_output"])
def test_a_lookup_is_refused_with_a_hint(root: Path, call: str) -> None:
    (root / "extra.py").write_text(f"{HEAD}    gcp.storage.{call}(name='x')\n")
    with pytest.raises((ConfigError, CommandError), match="recording it asks no cloud"):
        record(root, "dev")
