"""Tests reported and valid command lines of each launcher in the local cloud.

A rule that the rehearsal contradicts is wrong. What runs is real: shells, launchers and PyTorch.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud import aiplatform_v1 as vertex

from tests.fixture_project import sample
from tests.unit.infra.customjob.test_job_cases import IMAGE, check
from tests.unit.localcloud.conftest import Cloud, cloud, home, make_cloud, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]
__all__ = ["cloud", "home", "make_cloud"]
ROWS = yaml.safe_load(Path(__file__).with_name("command_lines.yaml").read_text("utf-8"))
LIB = sample("lib")
TORCH = "us-docker.pkg.dev/vertex-ai/training/pytorch-xla.2-4.py310:latest"
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
#: Rules about images, regions and costs, which are not the subject here.
OTHERS = ("machine-type", "region-machines", "image-name", "image-prebuilt")


def job_of(row: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    machine = {"machineType": "n1-standard-8"}
    if gpus := row.get("gpus"):
        machine = {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4"}
        machine |= {"acceleratorCount": gpus}
    pools = [
        {"machineSpec": machine, "replicaCount": count, "containerSpec": container}
        for count in row.get("pools", [1])
    ]
    timeout = {"timeout": f"{row.get('seconds', 900)}s"}
    return {"displayName": "x", "jobSpec": {"scheduling": timeout, "workerPoolSpecs": pools}}


def reported(job: dict[str, Any]) -> list[str]:
    """Return the rules that a job violates, as warnings or errors."""
    found = check({"job": job}).problems
    return [each.rule for each in found if each.level != "note" and each.rule not in OTHERS]


def run(cloud: Cloud, job: dict[str, Any]) -> tuple[str, str]:
    """Return the end state of a job, and its output."""
    request = vertex.CustomJob.from_json(json.dumps(job))
    assert isinstance(request, vertex.CustomJob)
    submitted = cloud.submit(request)

    def state() -> str:
        name = cloud.client.get_custom_job(name=submitted.name).state.name
        return name.removeprefix("JOB_STATE_")

    wait_until(lambda: state() in ENDED, 1000)
    return state(), cloud.log(submitted)


@pytest.mark.parametrize("row", ROWS["wrong"], ids=lambda row: " ".join(row["line"])[:60])
def test_reported_command_line_really_misbehaves(
    row: dict[str, Any], tmp_path: Path, cloud: Cloud
) -> None:
    script = tmp_path / "train.py"
    script.write_text(ROWS["code"]["TRAIN"])
    line = [word.replace("TRAIN", str(script)) for word in row["line"]]
    env = [{"name": name, "value": value} for name, value in row.get("env", {}).items()]
    container = {"imageUri": row.get("image", IMAGE), "command": line, "env": env}
    job = job_of(row, {key: value for key, value in container.items() if value})
    assert reported(job) == row["rules"]
    if "skip" in row:
        pytest.skip(row["skip"])
    if (engine := row.get("unless")) and shutil.which(engine):
        done = subprocess.run([engine, "info"], capture_output=True, check=False, timeout=60)
        if done.returncode == 0:
            pytest.skip(f"{engine} runs on this machine, and not on Vertex AI's")
    if row.get("torch"):
        for pool in job["jobSpec"]["workerPoolSpecs"]:
            pool["containerSpec"] = {**pool["containerSpec"], "imageUri": TORCH}
    ended, log = run(cloud, job)
    assert ended in row["state"].split(" or "), log
    assert row.get("log", "") in log
    assert "never" not in row or row["never"] not in log.partition("in place of")[2]


@pytest.mark.parametrize("row", ROWS["right"], ids=lambda row: row["name"])
def test_valid_launcher_command_runs_as_one_training(
    row: dict[str, Any], cloud: Cloud, tmp_path: Path
) -> None:
    install = row.get("install")
    packages = tmp_path / "installed"
    if install:
        pip = ["python", "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
        code = f"{' '.join(pip)} --target={packages} {install}"
        built, log = run(cloud, job_of({}, {"imageUri": TORCH, "command": ["sh", "-c", code]}))
        if built != "SUCCEEDED":
            pytest.skip(f"{row['name']} does not install here: {log[-300:]}")
    line = row["script"].replace("LIB", str(LIB)).replace("installed", str(packages))
    script = f'printf %s "$SUM" > sum.py && eval "$(python -c "$CLUSTER")" && {line}'
    env = [{"name": name, "value": ROWS["code"][name]} for name in ("CLUSTER", "SUM")]
    container = {"imageUri": TORCH, "command": ["bash", "-c", script], "env": env}
    job = job_of({"pools": [1, 1], **row}, container)
    assert reported(job) == []
    ended, log = run(cloud, job)
    assert ended == "SUCCEEDED", log
    assert "processes 2" in log
