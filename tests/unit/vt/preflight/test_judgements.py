"""Judgements of a preflight, without a cloud: documents in, answers out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.infra.stacks import BASE
from tests.unit.vt.preflight.conftest import PROJECT
from vertex_training.stack import from_raw
from vertex_training_cli.declared import DeclaredStack
from vertex_training_cli.preflight.context import Verdict, question
from vertex_training_cli.preflight.quotas import (
    JobNeed,
    endpoint_needs,
    judge_endpoints,
    judge_jobs,
)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, Verdict.OK), (12, Verdict.OK), (11, Verdict.WARNING), (7, Verdict.REFUSED)],
)
def test_a_job_above_the_limit_is_refused_and_jobs_above_it_wait(
    limit: int | None, expected: Verdict
) -> None:
    need = JobNeed("m", {"small": 4, "large": 8})
    found = judge_jobs(question("m", "limit"), need, PROJECT, limit)
    assert found.verdict is expected
    assert limit == 12 or not limit or f"{need.peak}" in found.mend


def test_endpoints_take_quota_with_all_replicas_of_all_versions_and_only_warn(
    tmp_path: Path,
) -> None:
    (tmp_path / "job.yaml").write_text("workerPoolSpecs: []\n")
    image = f"us-central1-docker.pkg.dev/acme/serve/serve@sha256:{'0' * 64}"
    gpu = {"type": "NVIDIA_TESLA_T4", "count": 2}
    sections = {
        "jobs": {"titanic": {"file": "job.yaml", "run": 4}},
        "models": {"titanic": {"run": [3, 4], "container": image}},
        "endpoints": {
            "titanic": {
                "machine": "n1-standard-2", "accelerator": gpu, "replicas": {"min": 1, "max": 3},
                "split": {"run 3": 90, "run 4": 10},
            },
            "wide": {
                "model": "titanic", "machine": "a2-ultragpu-1g", "split": {"run 3": 100},
                "accelerator": {"type": "NVIDIA_A100_80GB", "count": 1},
            },
            "bare": {"model": "titanic", "machine": "n1-standard-4", "split": {"run 3": 100}},
        },
    }  # fmt: skip
    declared = DeclaredStack(from_raw(BASE | sections, tmp_path), {}, ())
    prefix = "aiplatform.googleapis.com/custom_model_serving"
    gpus = JobNeed(f"{prefix}_nvidia_t4_gpus", {"titanic": 2 * 3 * 2})
    assert endpoint_needs(declared) == [
        JobNeed(f"{prefix}_cpus", {"titanic": 2 * 3 * 2, "bare": 4}),
        JobNeed(f"{prefix}_nvidia_a100_80gb_gpus", {"wide": 1}),
        gpus,
    ]
    asked = question("m", "limit")
    verdicts = [judge_endpoints(asked, gpus, PROJECT, limit).verdict for limit in (None, 12, 11, 0)]
    assert verdicts == [Verdict.OK, Verdict.OK, Verdict.WARNING, Verdict.WARNING]
