"""The way back to a job that was cancelled for a request that was refused."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from vertex_training.customjob.protocol.withdrawal import CancelledJob
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.up.command import report_cancelled_jobs

STACK = """\
config:
  gcp:project: acme-ml-dev
  gcp:region: us-central1
  vertex-training:projectNumber: "210987654321"
  vertex-training:buckets: {artifacts: {}}
  vertex-training:serviceAccounts: {trainer: {writes: [artifacts]}}
  vertex-training:packages: {code: {path: jobs/code}, other: {path: jobs/other}}
  vertex-training:jobs: {renamed: {file: jobs/train.yaml, formerly: train}}
"""
JOB = """\
serviceAccount: ${serviceAccounts.trainer}
workerPoolSpecs:
  - machineSpec: {machineType: n1-standard-4}
    replicaCount: 1
    pythonPackageSpec: {packageUris: ["${packages.code}"], pythonModule: code.task}
"""
FILES = {
    "Pulumi.yaml": "name: demo\nruntime: python\n",
    "Pulumi.dev.yaml": STACK,
    "jobs/train.yaml": JOB,
    "jobs/code/task.py": "print(1)\n",
    "jobs/other/task.py": "print(1)\n",
}
ENDED = CancelledJob("train", 1, "projects/1/locations/r/customJobs/8", 312.0, "")


@pytest.fixture
def stack(tmp_path: Path) -> StackRef:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return StackRef(tmp_path, "demo", "dev", "acme-ml-dev", "us-central1")


def git(stack: StackRef, *words: str) -> str:
    who = ("-c", "user.name=Kim", "-c", "user.email=kim@example.com")
    command = ["git", *who, *words]
    done = subprocess.run(command, cwd=stack.root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(stack: StackRef, name: str) -> str:
    """Change a file in a commit of its own; returns that commit."""
    with (stack.root / name).open("a") as file:
        file.write("\n# changed\n")
    git(stack, "add", "-A")
    git(stack, "commit", "-qm", name)
    return git(stack, "log", "-1", "--format=%h")


def told(stack: StackRef, *ended: CancelledJob) -> list[str]:
    lines: list[str] = []
    notes = stack.root / "notes"
    notes.write_text("".join(f"{json.dumps(dataclasses.asdict(each))}\n" for each in ended))
    report_cancelled_jobs(stack, notes, lines.append)
    notes.unlink()
    return lines


def way_back(stack: StackRef) -> str:
    return told(stack, ENDED)[-1].removeprefix("to submit the previous request again: ")


def test_what_is_not_committed_is_put_aside(stack: StackRef) -> None:
    git(stack, "init", "-q")
    commit(stack, "jobs/train.yaml")
    (stack.root / "jobs/code/task.py").write_text("print(2)\n")
    assert way_back(stack) == "git stash && vt up --stack dev"


def test_without_git_the_way_is_in_words(stack: StackRef) -> None:
    assert way_back(stack) == "restore the previous files of the job, then run vt up --stack dev"


def test_a_stack_file_that_cannot_be_read_leaves_the_whole_checkout(stack: StackRef) -> None:
    git(stack, "init", "-q")
    commit(stack, "jobs/train.yaml")
    expected = commit(stack, "jobs/other/task.py")
    (stack.root / "Pulumi.dev.yaml").unlink()
    git(stack, "rm", "-q", "--cached", "Pulumi.dev.yaml")
    git(stack, "commit", "-qm", "gone")
    assert way_back(stack).startswith("git revert --no-edit ")
    assert expected not in way_back(stack)
