"""``vt check`` with a local stack says what this machine does not run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from localgcp.containers import host
from localgcp.errors import LocalCloudError
from localgcp.home import Home
from localgcp.runner import substitutes
from tests.fixture_project import ROOT, copy_project, source_path
from vertex_training_cli.check import rehearsal

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


def test_an_image_without_a_stand_in_is_found_at_its_line(checkout: Path) -> None:
    code, [only] = check(checkout, "tf-cpu.2-9.py310", "local")
    assert code == 1
    assert (only["line"], only["level"]) == (7, "error")
    assert "has no stand-in here (the nearest is tf-cpu.2-16.py310)" in only["message"]
    assert "`vt local start --prebuilt nearest` takes it" in only["hint"]


def test_a_folder_that_a_clone_brought_along_has_no_settings(checkout: Path) -> None:
    (checkout / ".vt-local").mkdir()
    (checkout / ".vt-local/nearest-images").touch()
    code, [only] = check(checkout, "tf-cpu.2-9.py310", "local")
    assert (code, only["level"]) == (1, "error")


def test_an_image_with_one_is_not(checkout: Path) -> None:
    assert check(checkout, "sklearn-cpu.1-6.py310", "local") == (0, [])


def test_a_stack_in_the_cloud_is_not_judged_by_this_machine(checkout: Path) -> None:
    _, found = check(checkout, "tf-cpu.2-9.py310", "dev")
    assert found == []


def tuned(checkout: Path, image: str, stopping: str) -> str:
    """The tuning job of this checkout with another image and a way of stopping."""
    text = (checkout / "jobs/titanic-tuning.yaml").read_text()
    text = text.replace(', "${packages.vertex-job}"', "")  # the local stack has none
    text = text.replace("studySpec:\n", f"studySpec:\n  {stopping}\n")
    return text.replace("pytorch-xla.2-4.py310", image)


@pytest.mark.parametrize(
    "stopping",
    ["decayCurveStoppingSpec: {}", "convex_automated_stopping_spec: {}",
     "studyStoppingConfig: {maxNumTrialsNoProgress: 3}"],
)  # fmt: skip
def test_a_rule_of_stopping_that_is_stored_only_is_found_at_its_line(
    checkout: Path, stopping: str
) -> None:
    text = tuned(checkout, "pytorch-xla.2-4.py310", stopping)
    code, [only] = check(checkout, "", "local", text)
    assert (code, only["level"]) == (0, "warning")
    assert text.splitlines()[only["line"] - 1].strip() == stopping
    assert "stored and not carried out here" in only["message"]
    assert check(checkout, "", "dev", text)[1] == []


def test_the_rule_of_the_median_is_carried_out(checkout: Path) -> None:
    text = tuned(checkout, "pytorch-xla.2-4.py310", "medianAutomatedStoppingSpec: {}")
    assert check(checkout, "", "local", text) == (0, [])


def test_an_image_of_trials_without_a_stand_in_is_found_at_its_line(checkout: Path) -> None:
    text = tuned(checkout, "tf-cpu.2-9.py310", "algorithm: RANDOM_SEARCH")
    code, [only] = check(checkout, "", "local", text)
    assert (code, only["level"]) == (1, "error")
    assert "tf-cpu.2-9" in text.splitlines()[only["line"] - 1]


def test_a_folder_that_is_no_home_of_this_user_has_no_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(substitutes, "takes_nearest", lambda home: home is not None)
    assert rehearsal._takes_nearest() is True

    def find() -> Home:
        raise LocalCloudError("it belongs to another user.", "")

    monkeypatch.setattr(Home, "find", find)
    assert rehearsal._takes_nearest() is False


@pytest.mark.parametrize(
    ("registry", "engine", "why"),
    [
        (None, "buildah", f"there is no container registry ({host.MISSING})"),
        ("registry", None, f"nothing runs containers ({host.MISSING})"),
        ("registry", "buildah", ""),
    ],
)
def test_why_no_image_runs_here_is_told(
    monkeypatch: pytest.MonkeyPatch, registry: str | None, engine: str | None, why: str
) -> None:
    monkeypatch.setattr("localgcp.containers.registry.find_program", lambda: registry)
    monkeypatch.setattr(host, "find_engine", lambda _: engine)
    assert rehearsal._engine_missing.__wrapped__() == why
