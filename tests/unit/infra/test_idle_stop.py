"""``idleStop`` in a stack file: its words, what can have none, and what it makes of a stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stacks import BASE, refused
from vertex_training.components import apis
from vertex_training.customjob.request.job_file import JobFile, Submission, check_ladder
from vertex_training.settings.model import Job
from vertex_training.stack import read_settings

PLACE = Submission("acme-ml-prod", "us-central1", "prod", "train", 1)
T4 = {"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}


def stack_of(**job: Any) -> Any:
    return refused(jobs={"train": {"file": "x.yaml", **job}})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("30m", "must look like 5% for 30m"),
        ("5% for 9m", "from 10m on"),
        ("5% for 1441m", "looks back 23h30m at most"),
        ("100% for 30m", "must look like"),
        ("5%  for 30m", "must look like"),
    ],
)
def test_other_words_are_told(text: str, told: str) -> None:
    assert any(told in line for problem in stack_of(idleStop=text) for line in problem)


def test_batch_has_none() -> None:
    found = stack_of(idleStop="5% for 30m", backend="batch")
    assert "Batch tells no metric of accelerators" in str(found)


@pytest.mark.parametrize("idle", [None, "5% for 10m"])
def test_the_api_is_on_where_it_is_asked(idle: str | None) -> None:
    options = {"idleStop": idle} if idle else {}
    jobs = {"train": {"file": "x.yaml", **options, "schedule": {"cron": "0 6 * * 1"}}}
    settings = read_settings(BASE, Path("/nonexistent"))
    settings = settings.model_copy(update={"jobs": {"train": Job.model_validate(jobs["train"])}})
    assert ("monitoring" in apis.needed(settings)) is bool(idle)
    assert not settings.is_watched


def checked(pools: list[Any], *, idle: bool = True) -> list[str]:
    spec: dict[str, Any] = {"workerPoolSpecs": pools}
    body: Any = {"displayName": "train", "jobSpec": spec}
    one = JobFile(json.dumps(body).encode(), "x.yaml", PLACE, idle_stop=idle)
    return [str(problem) for problem in check_ladder(one, {}).errors if "idleStop" in str(problem)]


def pool(**machine: Any) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": "n1-standard-4", **machine},
        "replicaCount": 1,
        "containerSpec": {"imageUri": "us-docker.pkg.dev/p/r/i@sha256:" + "a" * 64},
    }


def test_a_job_without_accelerators_is_refused() -> None:
    [told] = checked([pool(), pool()])
    assert "no machine of the job has acceleratorCount" in told
    assert checked([pool(), pool()], idle=False) == []
    assert checked([pool(), pool(**T4)]) == []
