"""What all stack files of a checkout pin."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training.images import pinned

ONE, TWO, ZERO = (f"sha256:{digit * 64}" for digit in "120")
DEV = f"""\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:images:
    train: {{context: jobs/train, digest: "{ONE}", builtFrom: context-{"a" * 32}}}
    next: {{context: jobs/next, digest: "{ZERO}"}}
    new: {{context: jobs/new}}
"""
PROD = f"""\
config:
  gcp:project: acme-ml-prod
  gcp:region: us-central1
  vertex-training:images:
    tool: {{uri: "us-central1-docker.pkg.dev/acme-ml-dev/training-dev/tool@{TWO}"}}
    train: {{digest: "{ONE}"}}
"""
REPOSITORY = "us-central1-docker.pkg.dev/acme-ml-dev/training-dev"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.dev.yaml").write_text(DEV)
    (tmp_path / "Pulumi.prod.yaml").write_text(PROD)
    return tmp_path


def test_a_repository_keeps_what_another_environment_pins_in_it(root: Path) -> None:
    assert pinned.digests_in(REPOSITORY, pinned.records(root)) == (ONE, TWO)


def test_a_repository_whose_name_begins_alike_is_another_one(root: Path) -> None:
    assert pinned.digests_in(REPOSITORY[:-1], pinned.records(root)) == ()


def test_a_record_says_where_a_digest_came_from_as_far_as_the_file_does(root: Path) -> None:
    [dev, tool, train] = pinned.records(root)
    assert (dev.stack, dev.context, dev.version.tags) == (
        "dev",
        "jobs/train",
        (f"context-{'a' * 32}",),
    )
    assert (tool.uri, tool.version.package) == (f"{REPOSITORY}/tool", "tool")
    assert (train.context, train.version.tags) == ("", None)


@pytest.mark.parametrize(
    "content",
    [
        b"config: {",
        b"\xff",
        b"config: [1]",
        b"config: {gcp:project: 5, vertex-training:images: [1]}",
        b"config: {vertex-training:images: {x: 5, y: {digest: no}, z: {digest: '%s'}}}"
        % ONE.encode(),
        b"config: " + b"[" * 10_000,
        b"",
    ],
)
def test_a_stack_file_that_cannot_be_read_keeps_nobody_from_working(
    content: bytes, root: Path
) -> None:
    (root / "Pulumi.odd.yaml").write_bytes(content)
    assert len(pinned.records(root)) == 3
