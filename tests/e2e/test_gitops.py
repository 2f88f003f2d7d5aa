"""Tests GitOps on this machine: two clones, real engine, local cloud, and the workflows' verbs.

One story in order: a branch is reported on, merged and deployed; a plan that is not the approved
one stops; the cloud is changed by hand, which is found, told and undone. GitHub itself is a
stand-in for its command `gh`; everything else is what the workflows run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from localgcp.inventory.store import BUCKET, Binding, Store
from tests.conftest import ROOT, copy_checkout
from tests.fixture_project import clean_environment, source_path
from tests.unit.vt.github.conftest import STAND_IN, GitHub, archive_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

STACK = """\
config:
  gcp:project: local-training
  gcp:region: us-central1
  vertex-training:projectNumber: "971240389164"
  vertex-training:labels: {team: ml-platform}
  vertex-training:buckets:
    data: {forceDestroy: true}
    artifacts: {forceDestroy: true}
  vertex-training:serviceAccounts:
    trainer: {reads: [data], writes: [artifacts]}
"""


@dataclass
class Clone:
    """A clone of the origin, in which a workflow's steps run."""

    path: Path
    env: dict[str, str]

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=ann", "-c", "user.email=ann@example.com", *words],
            cwd=self.path, env=self.env, text=True, capture_output=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def make(self, verb: str, expect: int = 0, **variables: str) -> str:
        """Run a verb; return the exit code of `make` (2 for any failure) and the output."""
        done = subprocess.run(
            ["make", "-o", "setup", verb],
            cwd=self.path, text=True, capture_output=True, check=False, timeout=600,
            env={**self.env, "STACK": "local", **variables},
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert done.returncode == expect, f"make {verb}: {done.returncode}\n{said[-6000:]}"
        assert "Traceback" not in said
        return said

    def vt(self, *words: str, expect: int = 0) -> None:
        done = subprocess.run(
            [".venv/bin/vt", *words],
            cwd=self.path, env=self.env, text=True, capture_output=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == expect, done.stdout + done.stderr

    def change(self, old: str, new: str) -> None:
        file = self.path / "Pulumi.local.yaml"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def report(self, name: str) -> str:
        return (self.path / ".build" / "reports" / name).read_text()


class World:
    """The origin, two clones, one cloud, and GitHub's data."""

    def __init__(self, folder: Path) -> None:
        self.cloud, self.hub = folder / "cloud", GitHub(folder / "hub.json")
        seed = copy_checkout(folder / "seed").path
        (seed / "Pulumi.local.yaml").write_text(STACK)
        env = clean_environment("VT_", "GITHUB_", "GH_")
        bin_ = folder / "bin"
        bin_.mkdir()
        (bin_ / "gh").write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
        (bin_ / "gh").chmod(0o755)
        env |= {
            "PATH": f"{bin_}{os.pathsep}{env['PATH']}",
            "VT_LOCAL_HOME": str(self.cloud),
            "NO_COLOR": "1",
            "GH_STATE": str(self.hub.file),
            "GH_TOKEN": "t",
            "GITHUB_REPOSITORY": "acme/training",
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
        }
        self.origin = folder / "origin.git"
        first = Clone(seed, env)
        (seed / ".venv").unlink()
        first.git("init", "-q", "-b", "main")
        first.git("add", "-A")
        first.git("commit", "-qm", "first")
        first.git("clone", "-q", "--bare", str(seed), str(self.origin))
        self.author = self._clone(folder / "author", env)
        self.runner = self._clone(folder / "runner", env)

    def _clone(self, path: Path, env: dict[str, str]) -> Clone:
        subprocess.run(["git", "clone", "-q", self.origin, path], env=env, check=True)
        # One environment for all, which `make -o setup` leaves alone; the clone's own packages
        # come first in it.
        (path / ".venv").symlink_to(ROOT / ".venv")
        return Clone(path, {**env, "PYTHONPATH": source_path(path)})

    def upload(self, branch: str) -> None:
        """Upload the reports of the author's branch as an artifact, after its preview."""
        head, tree = self.author.git("rev-parse", "HEAD", "HEAD^{tree}").split()
        reports = (self.author.path / ".build" / "reports").iterdir()
        source = {"sha": head, "ref": branch, "repo": {"full_name": "acme/training"}}
        pull = {"number": 7, "head": source, "base": {"ref": "main"}, "merge_commit_sha": head}
        commit = {"sha": head, "tree": {"sha": tree}, "parents": [{"sha": head}]}
        self.hub.file.write_text(
            json.dumps(self.hub.state | {"open_pulls": [pull], "commits": [commit]})
        )
        archive = archive_of({each.name: each.read_bytes() for each in reports})
        self.hub.uploaded(archive, "report-local", head_sha=head, head_branch=branch)

    def keep(self) -> None:
        """Store the output of the report workflow as an artifact of its run."""
        kept = self.runner.path / ".build" / "kept" / "approval.json"
        self.hub.keep("approval-local-7", kept.read_text())

    def merge(self, branch: str) -> dict[str, str]:
        """Squash a branch into main like GitHub; return the variables of the following run."""
        self.author.git("checkout", "-q", "main")
        self.author.git("merge", "-q", "--squash", branch)
        self.author.git("commit", "-qm", f"Merge {branch}")
        self.author.git("push", "-q", "origin", "main")
        commit = self.author.git("rev-parse", "HEAD")
        self.hub.add("pulls", number=7, merged_at="now", merge_commit_sha=commit, commits=[commit])
        self.runner.git("pull", "-q")
        return {"GITHUB_SHA": commit}

    def bucket(self, name: str = "data") -> dict:
        found = self.store.get(BUCKET, f"local-training-{name}-local")
        assert found is not None
        return found.outputs

    @property
    def store(self) -> Store:
        return Store(self.cloud / "cloud.sqlite")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(tmp_path_factory.mktemp("gitops"))
    yield made
    made.runner.make("clean-local")


def test_preflight_reports_refusals_before_any_creation(world):
    fault = ("cloudbilling", "patch", "--patch", '{"billingEnabled": false}')
    world.runner.vt("local", "fault", "add", *fault)
    said = world.runner.make("preflight", expect=2)
    assert "fix: gcloud billing projects link local-training --billing-account=" in said
    assert world.store.list(BUCKET) == []
    world.runner.vt("local", "fault", "clear")
    said = world.runner.make("preflight")
    assert ", 0 refused, 0 unknown" in said


def test_first_deployment_is_approved_by_its_report_digest(world):
    world.runner.make("preview")
    assert "Preflight: " in world.runner.report("local.md")
    digest = json.loads(world.runner.report("local.json"))["digest"]
    world.runner.make("approval", DIGEST=digest)
    world.runner.make("deploy")
    assert world.bucket()["versioning"] == {"enabled": True}
    # What `make deployed` reads in a bucket.
    [update] = world.cloud.rglob(".pulumi/history/*/local/*.history.json")
    deployed = json.loads(update.read_text())["environment"]["git.head"]
    assert deployed == world.runner.git("rev-parse", "HEAD").strip()


def test_pull_request_gets_one_comment_with_its_changes(world):
    author = world.author
    author.git("checkout", "-qb", "keep-less")
    author.change("data: {forceDestroy: true}", "data: {forceDestroy: true, keepNoncurrentDays: 7}")
    author.git("commit", "-qam", "Keep less")
    author.make("preview")
    world.upload("keep-less")
    for _ in range(2):
        # Rendered in another clone, which has main checked out.
        world.runner.make("comment", PULUMI_BACKEND_URL=f"file://{world.cloud}/pulumi")
    world.keep()
    [comment] = world.hub.state["comments"]
    assert "storage-data" in comment["body"]
    assert "storage-artifacts" not in comment["body"].partition("<!-- unchanged")[0]


def test_merge_deploys_the_changes_in_the_comment(world):
    run = world.merge("keep-less")
    world.runner.make("approval", **run)
    said = world.runner.make("deploy", **run)
    assert "the plan of local equals the approved plan" in said
    assert any("7" in json.dumps(rule) for rule in world.bucket()["lifecycleRules"])


def test_approval_is_valid_for_only_one_plan(world):
    """The state has changed, so the plan of the same commit differs from the approved plan."""
    said = world.runner.make("deploy", expect=2)
    assert "the plan differs from the approved plan" in said
    assert "Nothing was changed" in said


def test_unreviewed_push_is_not_deployed(world):
    author = world.author
    author.change("keepNoncurrentDays: 7", "keepNoncurrentDays: 1")
    author.git("commit", "-qam", "Straight to main")
    author.git("push", "-q", "origin", "main")
    world.runner.git("pull", "-q")
    sha = world.runner.git("rev-parse", "HEAD")
    assert "is not from a merged" in world.runner.make("approval", 2, GITHUB_SHA=sha)
    said = world.runner.make("deploy", expect=2)
    assert "but another commit is checked out" in said
    author.git("revert", "-n", "HEAD")
    author.git("commit", "-qm", "Back")
    author.git("push", "-q", "origin", "main")
    world.runner.git("pull", "-q")


@pytest.mark.nightly
def test_manual_change_is_reported_in_one_issue(world):
    name = "local-training-data-local"
    found = world.store.get(BUCKET, name)
    assert found is not None
    opened = {**found.outputs, "publicAccessPrevention": "inherited"}
    world.store.put(BUCKET, name, found.project, found.inputs, opened)
    policy = world.store.policy(f"b/{name}")
    world.store.set_policy(f"b/{name}", (), expected_etag=policy.etag)
    world.store.set_policy(
        f"b/{name}",
        (Binding("roles/storage.objectAdmin", ("allAuthenticatedUsers",)),),
        expected_etag=world.store.policy(f"b/{name}").etag,
    )
    of_project = world.store.policy("projects/local-training")
    trainer = "serviceAccount:trainer-local@local-training.iam.gserviceaccount.com"
    world.store.set_policy(
        "projects/local-training",
        (*of_project.bindings, Binding("roles/owner", (trainer,))),
        expected_etag=of_project.etag,
    )
    world.runner.make("drift", expect=2)
    for _ in range(2):
        world.runner.make("drift-issue")
    [issue] = world.hub.state["issues"]
    assert "publicAccessPrevention | inherited | enforced" in issue["body"]
    assert "trainer-reads-data is declared, but does not exist" in issue["body"]
    assert "roles/storage.objectAdmin | allAuthenticatedUsers" in issue["body"]
    assert "| roles/owner | serviceAccount" in issue["body"]
    assert "A deployment did not finish" not in issue["body"]


@pytest.mark.nightly
def test_repair_plan_reverts_a_manual_change(world):
    runner, policies = world.runner, ("b/local-training-data-local", "projects/local-training")
    for name in policies:  # a deployment removes no members
        policy = world.store.policy(name)
        world.store.set_policy(name, policy.bindings[:-1], expected_etag=policy.etag)
    runner.make("preview", REFRESH="1")
    digest = json.loads(runner.report("local.json"))["digest"]
    runner.make("approval", DIGEST=digest)
    runner.make("deploy", REFRESH="1")
    assert world.bucket()["publicAccessPrevention"] == "enforced"
    runner.make("drift")
    runner.make("drift-issue")
    assert [issue["state"] for issue in world.hub.state["issues"]] == ["closed"]


def test_fork_gets_a_report_without_cloud_access(world, tmp_path):
    """Runs the steps of a fork's pull request: no state, no token, no cloud of its own."""
    summary = tmp_path / "summary.md"
    world.author.make(
        "report", STACK="dev", GH_TOKEN="", GITHUB_STEP_SUMMARY=str(summary),
        VT_LOCAL_HOME=str(tmp_path / "home"),
    )  # fmt: skip
    assert summary.read_text() == world.author.report("dev.md")
    assert "offline" in summary.read_text()
    assert not (world.author.path / ".build/reports/dev.approval.json").exists()
