"""``vt check`` with a local stack says what this machine does not run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixture_project import ROOT, copy_project, source_path

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


RIGHT = "pytorch-xla.2-4.py310"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_project(tmp_path)


def check(
    checkout: Path, image: str, stack: str, text: str = ""
) -> tuple[int, list[dict[str, Any]]]:
    (checkout / "jobs/new.yaml").write_text(text or JOB.format(image=image))
    command = [
        sys.executable,
        "-m",
        "vertex_training_cli.cli",
        "check",
        "jobs/new.yaml",
        "-s",
        stack,
    ]
    env = {"PYTHONPATH": source_path(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(checkout)}
    done = subprocess.run([*command, "--format", "json"], cwd=checkout, env=env,
                          capture_output=True, text=True, check=False)  # fmt: skip
    findings = [each for file in json.loads(done.stdout)["files"] for each in file["findings"]]
    return done.returncode, [each for each in findings if each["rule"] == "local-cannot-run"]


@pytest.mark.parametrize(
    ("image", "stack", "levels"),
    [
        ("tf-cpu.2-9.py310", "local", ["error"]),
        ("sklearn-cpu.1-6.py310", "local", []),
        ("tf-cpu.2-9.py310", "dev", []),  # a stack in the cloud does not run here
    ],
)
def test_an_image_without_a_stand_in_is_an_error_at_its_line(
    checkout: Path, image: str, stack: str, levels: list[str]
) -> None:
    (checkout / ".vt-local").mkdir()  # settings that a clone brought along
    (checkout / ".vt-local/nearest-images").touch()
    _, rows = check(checkout, image, stack)
    assert [row["level"] for row in rows] == levels
    for row in rows:
        assert row["line"] == 7
        assert "no stand-in for the executor image" in row["message"]
        assert "`vt local start --prebuilt nearest` uses that image" in row["hint"]


def tuned(checkout: Path, image: str, stopping: str) -> str:
    """The tuning job of this checkout with another image and a way of stopping."""
    text = (checkout / "jobs/titanic-tuning.yaml").read_text()
    text = text.replace(', "${packages.vertex-job}"', "")  # the local stack has none
    text = text.replace("studySpec:\n", f"studySpec:\n  {stopping}\n")
    return text.replace("pytorch-xla.2-4.py310", image)


@pytest.mark.parametrize(
    ("image", "stopping", "stack", "level", "words"),
    [
        *((RIGHT, rule, "local", "warning", "without effect: every trial runs") for rule in (
            "decayCurveStoppingSpec: {}", "medianAutomatedStoppingSpec: {}",
            "convex_automated_stopping_spec: {}",
            "studyStoppingConfig: {maxNumTrialsNoProgress: 3}")),
        (RIGHT, "decayCurveStoppingSpec: {}", "dev", "", ""),
        ("tf-cpu.2-9.py310", "algorithm: RANDOM_SEARCH", "local", "error", "tf-cpu.2-9"),
    ],
)  # fmt: skip
def test_a_part_of_a_tuning_job_that_this_machine_does_not_run_is_found_at_its_line(
    checkout: Path, image: str, stopping: str, stack: str, level: str, words: str
) -> None:
    text = tuned(checkout, image, stopping)
    _, rows = check(checkout, "", stack, text)
    assert [row["level"] for row in rows] == ([level] if level else [])
    for row in rows:
        assert words in row["message"]
        assert (stopping if level == "warning" else image) in text.splitlines()[row["line"] - 1]
