"""What an approval binds beside the plan: where a deployment goes, and as whom."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from vertex_training_cli.deploy.target import Target, target_of
from vertex_training_cli.engine.stacks import StackRef

STACK_FILE = """\
config:
  gcp:project: acme-ml-dev
  aws:region: eu-west-1
  vertex-training:jobs: {titanic: {file: jobs/titanic.yaml}}
  training:own: 1
  plain: 2
"""


def test_settings_of_other_providers_are_bound_and_the_programs_own_are_in_the_plan(
    tmp_path: Path,
) -> None:
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK_FILE)
    ref = StackRef(tmp_path, "training", "dev", "acme-ml-dev", "us-central1")
    target = target_of(ref, {"PULUMI_BACKEND_URL": "gs://acme-state"})
    assert target.settings == {"aws:region": "eu-west-1", "gcp:project": "acme-ml-dev"}


def test_a_local_stack_has_the_local_state_unless_its_processes_were_given_another(
    tmp_path: Path,
) -> None:
    (tmp_path / "Pulumi.local.yaml").write_text("config: {}\n")
    ref = StackRef(tmp_path, "training", "local", "local-project", "us-central1")
    given = {"PULUMI_BACKEND_URL": "gs://acme-state"}
    assert target_of(ref, given).backend == ref.local_backend()
    inside = given | {"VERTEX_EMULATOR_HOST": "127.0.0.1:1"}
    assert target_of(ref, inside).backend == "gs://acme-state"


def test_nothing_changes_a_target_that_was_read() -> None:
    target = Target(backend="gs://acme-state")
    with pytest.raises(ValidationError, match="frozen"):
        target.backend = "gs://mallory"
    assert target.backend == "gs://acme-state"
