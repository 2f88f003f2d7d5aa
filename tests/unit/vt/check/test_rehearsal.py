"""``vt check`` with a local stack says what this machine does not run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
JOB = """\
serviceAccount: ${{serviceAccounts.trainer}}
scheduling: {{timeout: 600s}}
workerPoolSpecs:
  - replicaCount: 1
    machineSpec: {{machineType: n1-standard-4}}
    pythonPackageSpec:
      executorImageUri: us-docker.pkg.dev/vertex-ai/training/{image}:latest
      packageUris: ["${{packages.titanic}}"]
      pythonModule: titanic.task
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Pulumi.yaml", "Pulumi.local.yaml", "Pulumi.dev.yaml"):
        shutil.copy(ROOT / name, tmp_path / name)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "jobs", tmp_path / "jobs", ignore=ignored)
    return tmp_path


def check(checkout: Path, image: str, stack: str) -> tuple[int, list[dict[str, Any]]]:
    (checkout / "jobs/new.yaml").write_text(JOB.format(image=image))
    command = [
        sys.executable,
        "-m",
        "vertex_training.vt.cli",
        "check",
        "jobs/new.yaml",
        "-s",
        stack,
    ]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(checkout)}
    done = subprocess.run([*command, "--format", "json"], cwd=checkout, env=env,
                          capture_output=True, text=True, check=False)  # fmt: skip
    findings = [each for file in json.loads(done.stdout)["files"] for each in file["findings"]]
    return done.returncode, [each for each in findings if each["rule"] == "local-cannot-run"]


def test_an_image_without_a_stand_in_is_found_at_its_line(checkout: Path) -> None:
    code, [only] = check(checkout, "tf-cpu.2-9.py310", "local")
    assert code == 1
    assert (only["line"], only["level"]) == (7, "error")
    assert "has no stand-in here" in only["message"]


def test_an_image_with_one_is_not(checkout: Path) -> None:
    assert check(checkout, "sklearn-cpu.1-6.py310", "local") == (0, [])


def test_a_stack_in_the_cloud_is_not_judged_by_this_machine(checkout: Path) -> None:
    _, found = check(checkout, "tf-cpu.2-9.py310", "dev")
    assert found == []
