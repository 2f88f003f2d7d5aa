"""The next run of a job of a stack, or of a job file, before it is sent."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from tests.unit.infra.stacks import BASE
from vertex_training.errors import CheckUnavailableError, ConfigError
from vertex_training.stack import Stack, read_settings
from vertex_training_cli.run import submission

IMAGE = f"us-docker.pkg.dev/acme/train/x@sha256:{'0' * 64}"
JOB = """serviceAccount: ${serviceAccounts.trainer}
baseOutputDirectory: {outputUriPrefix: "${buckets.artifacts}/x/${job.requestId}"}
scheduling: {timeout: 3600s}
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-4}
  containerSpec:
    imageUri: IMAGE
    args: [--a=1]
""".replace("IMAGE", IMAGE)
CHANGES = {
    "buckets": {"artifacts": {}},
    "serviceAccounts": {"trainer": {"writes": ["artifacts"]}},
    "jobs": {"train": {"file": "train.yaml"}},
}


def jobs(*runs: tuple[str, str]) -> Any:
    """The service with a job that has ended for each name and run."""
    labels = [{"vt-request-id": "x", "vt-job": name, "vt-run": run} for name, run in runs]
    made = [
        CustomJob(display_name="x", labels=each, state=JobState.JOB_STATE_FAILED) for each in labels
    ]
    return SimpleNamespace(list=lambda: made, ref=SimpleNamespace(stack="dev"))


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.yaml").write_text(JOB)
    return Stack(read_settings(BASE | CHANGES, tmp_path), tmp_path, {})


def arguments(run: submission.PreparedRun) -> list[str]:
    return run.request.message["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]


def test_a_file_runs_as_the_job_that_has_it_else_by_its_own_name(
    stack: Stack, tmp_path: Path
) -> None:
    (tmp_path / "My_File.yaml").write_text(JOB)

    def run(wanted: str, *words: str, name: str = "") -> tuple[str, int, list[str]]:
        made = submission.prepare(stack, jobs(("run_mine", "1")), wanted, words, name)
        return made.request.submission.job, made.request.submission.run, arguments(made)

    assert run("train.yaml") == ("run_train", 1, ["--a=1"])
    assert run("My_File.yaml", "--a=2", "x") == ("run_my-file", 1, ["--a=2", "x"])
    assert run("train", name="mine") == ("run_mine", 2, ["--a=1"])


def test_what_is_neither_a_job_nor_a_file_is_named(stack: Stack) -> None:
    with pytest.raises(CheckUnavailableError) as refused:
        submission.prepare(stack, jobs(), "trian", [])
    assert str(refused.value) == (
        "trian is not a job of this stack and not a file; did you mean 'train'?"
    )


def refusals(stack: Stack, wanted: str, *words: str) -> list[tuple[str, str, str]]:
    """File, path and value of every problem."""
    with pytest.raises(ConfigError) as refused:
        submission.prepare(stack, jobs(), wanted, words)
    found = refused.value.problems
    return [(each.location.file, ".".join(map(str, each.path)), each.value) for each in found]


def test_every_mistake_of_a_file_is_told_and_nothing_is_sent(stack: Stack, tmp_path: Path) -> None:
    wrong = JOB.replace("n1-standard-4", "n1-standard-5").replace("3600s", "1h")
    (tmp_path / "wrong.yaml").write_text(wrong)
    expected = [
        ("wrong.yaml", "scheduling.timeout", "1h"),
        ("wrong.yaml", "workerPoolSpecs.0.machineSpec.machineType", "n1-standard-5"),
    ]
    assert refusals(stack, "wrong.yaml") == refusals(stack, "wrong.yaml", "--a=2") == expected
    (tmp_path / "broken.yaml").write_text("a: [")
    assert [each[0] for each in refusals(stack, "broken.yaml", "--a=2")] == ["broken.yaml"]
    document = yaml.safe_load(wrong)
    with pytest.raises(ConfigError) as refused:
        submission.of_document(document, stack.submission("run_x", 1), stack, {})
    assert [".".join(map(str, each.path)) for each in refused.value.problems] == [
        path for _, path, _ in expected
    ]


def test_a_run_over_a_limit_of_the_stack_is_refused(stack: Stack) -> None:
    changes = {**CHANGES, "limits": {"maxUsdPerEnvironment": 0.01}}
    limited = Stack(read_settings(BASE | changes, stack.root), stack.root, {})
    with pytest.raises(ConfigError) as refused:
        submission.prepare(limited, jobs(), "train", [])
    assert str(refused.value) == (
        "Pulumi.prod.yaml: vertex-training:limits.maxUsdPerEnvironment: all jobs together may cost "
        "$0.22, the limit is $0.01. Hint: shorten timeouts, use fewer machines, or raise the "
        "limit; most expensive: run_train $0.22"
    )


def test_a_document_is_a_run_with_what_it_uploads(stack: Stack) -> None:
    place = stack.submission("run_x", 4)
    made = submission.of_document(yaml.safe_load(JOB), place, stack, {"gs://b/x": b"x"})
    assert made.request.submission == place
    assert (arguments(made), made.uploads) == (["--a=1"], {"gs://b/x": b"x"})
