"""What a program registers, recorded without an engine."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest

from tests.fixture_project import copy_project
from vertex_training.catalog.resource_types import JOB
from vertex_training.errors import ConfigError
from vertex_training_cli.declared import declare_stack, record_resources

BUCKET = "gcp:storage/bucket:Bucket"


def test_an_error_of_the_program_itself_is_raised_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: search\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {search:limit: 3}\n")

    def declare() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        record_resources(tmp_path, "dev", "acme-ml", declare)
    assert pulumi.Config("search").get("limit") is None


def test_code_of_a_team_that_cannot_be_loaded_is_no_stack(tmp_path: Path) -> None:
    copy_project(tmp_path)
    (tmp_path / "extra.py").write_text("def declare(environment:\n")
    with pytest.raises(ConfigError) as refused:
        declare_stack(tmp_path, "dev")
    assert [problem.location.file for problem in refused.value.problems] == ["extra.py"]


def test_a_stack_has_the_requests_of_its_jobs_and_the_resources_of_all_of_it(project: Path) -> None:
    found = declare_stack(project, "dev")
    assert found.stack.settings.stack == "dev"
    [(key, request)] = found.requests.items()
    assert (key, request.submission.job) == ("train", "train")
    [job] = (each for each in found.resources if each.type == JOB)
    assert (job.inputs["requestId"], job.id) == (request.request_id, "")
    buckets = {each.id for each in found.resources if each.type == BUCKET}
    assert buckets >= {f"acme-ml-dev-{name}-dev" for name in ("artifacts", "data", "staging")}


def test_every_mistake_in_jobs_is_told_before_anything_is_declared(project: Path) -> None:
    job = project / "jobs" / "train.yaml"
    text = job.read_text().replace("n1-standard-4", "n1-standard-3")
    job.write_text(text.replace("replicaCount: 1", "replicaCount: -1"))
    with pytest.raises(ConfigError) as refused:
        declare_stack(project, "dev")
    assert [each.location.file for each in refused.value.problems] == ["jobs/train.yaml"] * 2
