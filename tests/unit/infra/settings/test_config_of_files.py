"""The whole config that a stack's files give, as the engine gives it, and what they do wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from vertex_training.settings import stack_files
from vertex_training.stack import SCHEMA

PROJECT = """\
name: acme
runtime: python
config:
  vertex-training:labels: {type: object, default: {team: ml}}
  vertex-training:projectNumber: {type: string}
  gcp:region: {value: us-central1}
  topic: {default: events}
  other: x
"""
STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:zone: 3
  gcp:skipRegionValidation: true
  vertex-training:projectNumber: 210987654321
  vertex-training:tensorboard: 7.5
  vertex-training:onChange: 1.5
  vertex-training:buckets:
    2024: [{1: 2}]
  pulumi:tags: {owner: ml}
  own: 1
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(PROJECT)
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK)
    return tmp_path


def test_included_values_are_shown(root: Path) -> None:
    assert stack_files.shown_config(stack_files.read_raw(SCHEMA, root, "dev"), SCHEMA) == {}
    (root / "shared.yaml").write_text(
        "config:\n  vertex-training:limits: {maxUsdPerJob: 1, allowUnpriced: true}\n"
        "  vertex-training:onChange: cancel\n"
    )
    (root / "Pulumi.dev.yaml").write_text("config:\n  vertex-training:include: [shared.yaml]\n")
    found = stack_files.read_raw(SCHEMA, root, "dev")
    assert stack_files.shown_config(found, SCHEMA) == {
        "vertex-training:include": '["shared.yaml"]',
        "vertex-training:labels": '{"team": "ml"}',
        "vertex-training:limits": '{"allowUnpriced": true, "maxUsdPerJob": 1}',
    }
