"""Tests a new repository, created by a checkout and run with only its wheels.

Its packages come from uv's cache or the package index, its engine from the cache of ``make setup``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.structure.tree import ROOT

pytestmark = pytest.mark.e2e

#: Variables of this process that lead a program back into the checkout.
OURS = (
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "VT_LOCAL_HOME",
    "PULUMI_BACKEND_URL",
    "MAKEFLAGS",
    "MAKELEVEL",
)


@dataclass(frozen=True)
class Repository:
    """A repository created by ``vt init``, and the environment of its commands."""

    root: Path
    env: dict[str, str]

    def run(self, *command: str | Path, code: int = 0) -> str:
        """Run a command and return its output."""
        done = subprocess.run(
            command, cwd=self.root, env=self.env, stdin=subprocess.DEVNULL, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        return done.stdout

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        return self.run("git", *identity, *arguments)

    def vt(self, *arguments: str) -> str:
        return self.run(self.root / ".venv/bin/vt", *arguments)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repository]:
    """Create a repository with the ``vt`` of this checkout, which builds its wheels there."""
    folder = tmp_path_factory.mktemp("a company ü")
    tools = folder / "tools"
    tools.mkdir()
    (tools / "uv").symlink_to(shutil.which("uv") or Path(sys.executable).with_name("uv"))
    here = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = [str(tools), *(part for part in here if not (Path(part) / "vt").exists())]
    env = {name: text for name, text in os.environ.items() if name not in OURS}
    env |= {"PATH": os.pathsep.join(path)}
    env["PYTHON"] = sys.executable
    # Where releases can be downloaded, nothing is built, and this is not read.
    env["VT_OFFLINE_ENGINE"] = str(ROOT / "tools" / "offline_engine")
    made = Repository(folder, env)
    vt = Path(sys.executable).with_name("vt")
    ids = ("--project", "acme-ml-dev", "--number", "210987654321")
    said = made.run(vt, "init", "acme", *ids)
    assert "Next: cd acme && git init && make local" in said
    yield (inside := Repository(folder / "acme", env))
    if (inside.root / ".venv/bin/vt").exists():
        inside.vt("local", "down", "--clean")


def test_two_commands_create_and_train_a_new_job(repository: Repository) -> None:
    listed = repository.run("make")
    assert "start the local cloud, run pulumi up, train" in listed
    said = repository.run("make", "local")
    assert "SUCCEEDED" in said
    assert "test_accuracy   0.9" in said
    again = repository.vt("local", "shell", "-c", "pulumi preview -s local --expect-no-changes")
    assert "unchanged" in again
    assert "is expected to have version" not in again


def test_deployment_installs_only_the_lock_file_by_hash(
    repository: Repository,
) -> None:
    repository.run("make", "lock")
    lock = (repository.root / "requirements.lock").read_text()
    for name in ("vertex_training", "localgcp"):
        wheel = next((repository.root / "wheels").glob(f"{name}-*.whl"))
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        assert f"./wheels/{wheel.name} \\\n    --hash=sha256:{digest}" in lock
    uv = repository.root / ".venv/bin/uv"
    folder = repository.root / ".venv/deploying"
    repository.run(uv, "venv", "--quiet", "--python", sys.executable, folder)
    install = (uv, "pip", "install", "--quiet", "--python", folder / "bin/python")
    repository.run(*install, "--require-hashes", "-r", "requirements.lock")
    assert "vt 0" in repository.run(folder / "bin/vt", "--version")
    before = wheel.read_bytes()
    try:
        with zipfile.ZipFile(wheel, "a") as changed:
            changed.writestr("localgcp/theirs.py", "")
        again = ("--reinstall", "--require-hashes", "-r", "requirements.lock")
        assert "Hash mismatch" in repository.run(*install, *again, code=1)
    finally:
        wheel.write_bytes(before)


@pytest.mark.nightly
def test_tests_of_a_new_repository_pass(repository: Repository) -> None:
    assert " passed" in repository.run("make", "test")


@pytest.mark.nightly
def test_additional_environment_needs_only_new_ids(repository: Repository) -> None:
    repository.git("init", "--quiet")
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--message", "first")
    repository.vt("init", "--environment", "staging")
    repository.git("cherry-pick", "vt-environment-staging")
    assert "no mistakes" in repository.run("make", "check")
    reviewed = repository.run("make", "review", "STACK=staging", "FLAGS=--offline")
    assert "Review of stack `staging`" in reviewed
    assert "Forbidden" not in reviewed
    before_it = "cd bootstrap && pulumi preview -s staging --non-interactive"
    assert "create" in repository.vt("local", "shell", "-c", before_it)


@pytest.mark.nightly
def test_policy_violation_is_reported_with_the_levels_of_the_stack_file(
    repository: Repository,
) -> None:
    """The policies come from the wheel, in the environment that ``make setup`` created."""
    stack = repository.root / "Pulumi.staging.yaml"
    before = stack.read_text()
    stack.write_text(before.replace("{protect: true, softDeleteDays", "{softDeleteDays"))
    try:
        said = repository.run("make", "report", "STACK=staging", code=2)
    finally:
        stack.write_text(before)
    assert "Forbidden by 1 policy violation" in said
    report = (repository.root / ".build/reports/staging.md").read_text()
    assert "forbidden by `data-protected` for `storage-artifacts`" in report
    assert "level lowered: `job-in-a-network` `mandatory` → `advisory`" in report
    assert not (repository.root / ".build/reports/staging.approval.json").exists()


@pytest.mark.nightly
def test_repositories_of_the_same_name_are_independent(repository: Repository) -> None:
    other = Repository(repository.root.parent / "other", repository.env)
    ids = ("--name", "acme", "--project", "acme-nlp-dev", "--number", "310987654321")
    repository.run(repository.root / ".venv/bin/vt", "init", other.root, *ids)
    (other.root / ".venv").symlink_to(repository.root / ".venv")
    before = repository.vt("jobs", "list", "--all", "--stack", "local")
    assert before.count("digits") == 1
    try:
        assert "SUCCEEDED" in other.vt("local", "up")
        assert repository.vt("jobs", "list", "--all", "--stack", "local") == before
    finally:
        other.vt("local", "down", "--clean")
