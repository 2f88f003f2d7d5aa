"""Tests the chapter "Recovery" of ``docs/operations.md``, word by word, on two clones of
one state.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.only_jobs import ROOT, Project

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1700)]

PAGE = (ROOT / "docs" / "operations.md").read_text().partition("\n## Recovery\n")[2]
PAGE = PAGE.partition("\n## ")[0]
#: The local cloud restores nothing; ``tests/teams/test_deleted_data.py`` follows this section.
#: ``test_lost_state.py`` follows the other.
IN_THE_CLOUD = {"A bucket or a secret was deleted by hand", "The state is lost"}
BUSY = {"script": "exec sleep 600"}


@dataclass(frozen=True)
class Clone:
    """A clone of the repository, in the environment of the shared local cloud."""

    path: Path
    project: Project

    def run(self, script: str, code: int | None = 0) -> str:
        """Run a script in the local shell of this clone and return its output."""
        done = subprocess.run(
            ["vt", "local", "shell", "-c", script], cwd=self.path, env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            timeout=300, check=False,
        )  # fmt: skip
        assert code in (None, done.returncode), f"exit code {done.returncode}\n{done.stdout}"
        assert "Traceback" not in done.stdout
        return done.stdout

    @property
    def env(self) -> dict[str, str]:
        names = {
            f"GIT_{who}_{what}": "test@example.com"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        return {**self.project.env, **names, "PULUMI_OPTION_NON_INTERACTIVE": "true"}

    def follow(self, heading: str) -> str:
        """Run the command block below this heading of the page, unchanged."""
        return self.run(f"set -e\n{block(heading)}")

    def commit(self, **jobs: Any) -> None:
        """Change the jobs of the stack."""
        (self.path / "jobs.json").write_text(json.dumps(jobs))
        self.git("add", "-A")
        self.git("commit", "-qm", "change")

    def git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self.path, env=self.env, check=True)


def sections() -> dict[str, str]:
    """Return the text of each section by its heading."""
    found = re.split(r"^### (.*)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def block(heading: str) -> str:
    """Return the only block of a section that needs no cloud."""
    parts = re.split(r"```sh\n(.*?)```", sections()[heading], flags=re.DOTALL)
    texts, blocks = parts[::2], parts[1::2]
    [found] = [b for before, b in zip(texts, blocks, strict=False) if "(*cloud*)" not in before]
    return found


@pytest.fixture(scope="module")
def clones(project: Project, tmp_path_factory: pytest.TempPathFactory) -> tuple[Clone, Clone]:
    beside = tmp_path_factory.mktemp("beside")
    origin, ours = beside / "origin.git", Clone(project.path, project)
    (project.path / ".gitignore").write_text(".vt-local\n__pycache__\n")
    ours.git("init", "-q", "-b", "main")
    ours.commit(train={**BUSY, "run": 1})
    ours.git("clone", "-q", "--bare", ".", str(origin))
    ours.git("remote", "add", "origin", str(origin))
    ours.git("fetch", "-q")
    ours.git("branch", "-q", "-u", "origin/main")
    theirs = Clone(beside / "theirs", project)
    ours.git("clone", "-q", str(origin), str(theirs.path))
    return ours, theirs


def foreign_lock(project: Project) -> Path:
    """Create a lock of the stack as another machine would leave it."""
    file = project.home.pulumi / ".pulumi/locks/organization/only-jobs/local/lost.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = {
        "pid": 1,
        "username": "u",
        "hostname": "lost-laptop",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    file.write_text(json.dumps(lock))
    return file


def test_every_section_of_the_recovery_page_has_one_command_block() -> None:
    assert all(block(heading) for heading in sections().keys() - IN_THE_CLOUD)
    assert len(sections()) == 10


def test_two_clones_follow_the_recovery_page_without_losses(clones: tuple[Clone, Clone]) -> None:
    ours, theirs = clones
    ours.follow("A deployment stopped half way")
    assert ours.project.live("train") == ["1"]

    # The laptop that held the lock is gone: the other clone goes on, after a person said so.
    lock = foreign_lock(ours.project)
    told = theirs.follow("The machine of an up is lost")
    assert "is in use by pulumi, process 1 on lost-laptop" in told
    assert not lock.exists()
    assert ours.project.live("train") == ["1"]

    # One clone deploys a change; the other has neither pulled nor deployed.
    ours.commit(train={**BUSY, "run": 2})
    ours.git("push", "-q")
    ours.run("vt up --stack local --yes --skip-preview")
    assert ours.project.live("train") == ["2"]
    assert "Nothing changes" in theirs.follow("An approval is stale")

    # It takes that change back, and the first clone has a change of its own meanwhile.
    theirs.follow("A change has to be taken back")
    assert ours.project.live("train") == ["1"]
    theirs.git("push", "-q")
    (ours.path / "notes.md").write_text("a change beside\n")
    ours.git("add", "-A")
    ours.git("commit", "-qm", "beside")
    ours.follow("Two pull requests change the same job")
    assert ours.project.live("train") == ["1"]
    assert len(ours.project.accepted("train")) == 3

    # An older state comes back after a submission.
    ours.run("pulumi stack export --stack local --file ../before.json")
    ours.commit(train={**BUSY, "run": 3})
    ours.git("push", "-q")
    ours.run("vt up --stack local --yes --skip-preview")
    assert ours.project.live("train") == ["3"]
    ours.run("pulumi stack import --stack local --file ../before.json")
    theirs.follow("The state was restored")
    assert ours.project.live("train") == ["3"]
    assert len(ours.project.accepted("train")) == 4

    # Somebody cancels by hand: nothing is submitted by itself.
    theirs.run("vt jobs cancel train --stack local --yes && vt jobs wait train --stack local", None)
    theirs.follow("A job was cancelled by hand")
    assert ours.project.live("train") == []
    assert len(ours.project.accepted("train")) == 4

    told = ours.follow("An environment is taken down")
    assert "no resource was deleted. To destroy the stack, add `--yes --name local`" in told
    left = ours.project.state().get("resources") or []
    assert not [x for x in left if x["custom"]]
