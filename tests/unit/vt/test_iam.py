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


def test_stacks_are_recorded_one_after_another(root: Path) -> None:
    (root / "extra.py").write_text(EXAMPLE, encoding="utf-8")
    assert record(root, "dev") == record(root, "dev")


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


@pytest.mark.parametrize(
    ("token", "inputs", "found"),
    [
        ("pubsub/topicIAMMember:TopicIAMMember", {}, (UNKNOWN, UNKNOWN, "project", UNKNOWN, "")),
        ("endpoints/serviceIamMember:ServiceIamMember", {"member": "m", "project": "p"},
         ("m", UNKNOWN, "project", "p", "")),
        ("projects/iAMMember:IAMMember", {"bucket": "b", "project": "p", "condition": None},
         (UNKNOWN, UNKNOWN, "bucket", "b", "")),
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
    with pytest.raises((ConfigError, CommandError), match="the program calls gcp:"):
        record(root, "dev")
