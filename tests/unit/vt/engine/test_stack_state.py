"""Resources and jobs in the state file of the local backend."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.local import results
from vertex_training_cli.local.results import StackState

PLACE = "projects/p/locations/us-central1"
JOB = "pulumi-python:dynamic/vertex:CustomJob"


def resource(type_: str, name: str, **more: Any) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::p::{type_}::{name}", "type": type_, "custom": True, **more}


STACK = resource(
    "pulumi:pulumi:Stack", "s",
    outputs={
        "jobs": {"fit": {"name": f"{PLACE}/customJobs/1"}, "odd": "text", "new": {"name": None}},
        "tuning": {"search": {"name": f"{PLACE}/hyperparameterTuningJobs/2"}},
    },
)  # fmt: skip
RESOURCES = [
    STACK,
    resource("pulumi:providers:gcp", "default"),
    resource("vertextraining:storage:Storage", "storage", custom=False),
    resource("a:b:C", "x"),
    resource("a:b:C", "y"),
    resource("a:b:C", "left", delete=True),
    resource(JOB, "training-fit", id=f"{PLACE}/customJobs/1"),
    resource(JOB, "training-search", id=f"{PLACE}/hyperparameterTuningJobs/2"),
    resource(JOB, "training-batch", id=f"{PLACE}/jobs/fit-1a"),
    resource(JOB, "training-old", id=f"{PLACE}/customJobs/3", delete=True),
    resource(JOB, "training-none", id=f"{PLACE}/other/4"),
]


def home(folder: Path) -> Any:
    return SimpleNamespace(pulumi=folder)


def write(folder: Path, name: str, content: object) -> None:
    file = folder / ".pulumi" / "stacks" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize(
    "content",
    ["{", {}, {"checkpoint": {}}, {"checkpoint": {"latest": None}},
     {"checkpoint": {"latest": {"resources": None}}}],
)  # fmt: skip
def test_a_stack_without_a_state_has_nothing(tmp_path: Path, content: object) -> None:
    write(tmp_path, "demo/dev.json", content)
    for stack in ("dev", "other"):
        found = results.read_state(home(tmp_path), "demo", stack)
        assert found == StackState(found.counts, ())
        assert not found.counts


def test_a_job_is_found_by_its_name_in_every_stack(tmp_path: Path) -> None:
    latest = {"checkpoint": {"latest": {"resources": RESOURCES}}}
    write(tmp_path, "demo/dev.json", latest)
    write(tmp_path, "other/dev.json", latest)
    assert results.job_ids_named(home(tmp_path), "fit") == ["1", "1"]
    assert results.job_ids_named(home(tmp_path), "training-batch") == ["fit-1a", "fit-1a"]
    assert results.job_ids_named(home(tmp_path), "gone") == []
