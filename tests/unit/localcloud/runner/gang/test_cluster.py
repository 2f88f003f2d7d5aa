"""The replicas of a job, what each of them sees, and what this machine refuses.

The golden files have the shapes of docs.cloud.google.com/…/training/distributed-training, with host
names of this form: cmle-training-workerpool1-ID-0.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from localgcp.errors import StartRefusedError
from localgcp.runner import environment
from localgcp.runner.gang import cluster, hosts

FIXTURES = Path(__file__).resolve().parents[4] / "fixtures/replicas"
REDUCTION = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
#: Replicas of each pool; 0 stands for a pool that is skipped by ``{}``.
LAYOUTS = {
    "one-pool": [1],
    "two-pools": [1, 2],
    "three-pools": [1, 2, 1],
    "four-pools": [1, 2, 1, 1],
    "workers-skipped": [1, 0, 2],
    "evaluator-alone": [1, 1, 0, 1],
}


def spec(counts: list[int], image: str = "python:3.11") -> dict[str, Any]:
    pools: list[dict[str, Any]] = [
        {
            "replicaCount": str(count),
            "containerSpec": {"imageUri": image, "args": [f"--pool={number}"]},
        }
        if count
        else {}
        for number, count in enumerate(counts)
    ]
    return {"workerPoolSpecs": pools}


def seen(counts: list[int]) -> dict[str, dict[str, Any]]:
    """What every replica finds in its environment, JSON decoded."""
    job = spec(counts)
    members = cluster.replicas(job)
    names = {each.name: f"{hosts.host_name(each, 'ab')}:{cluster.PORT}" for each in members}
    found: dict[str, dict[str, Any]] = {}
    for name, placement in cluster.placements(members, names).items():
        variables = environment.service_variables(
            job_id="42", project_number="123456789012", spec=job, placement=placement
        )
        found[name] = {key: decoded(value) for key, value in variables.items()}
    return found


def decoded(value: str) -> Any:
    return json.loads(value) if value.startswith("{") else value


def test_a_reduction_server_is_refused_with_the_reason() -> None:
    job = spec([1, 1])
    job["workerPoolSpecs"].append({"replicaCount": "2", "containerSpec": {"imageUri": REDUCTION}})
    with pytest.raises(StartRefusedError, match=r"workerpool2-0 is a reduction server: .* NCCL"):
        cluster.replicas(job)


if __name__ == "__main__":
    for layout, counts in LAYOUTS.items():
        text = json.dumps(seen(counts), indent=2) + "\n"
        (FIXTURES / f"{layout}.json").write_text(text)
