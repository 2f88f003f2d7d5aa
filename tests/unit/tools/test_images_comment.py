"""What `make images-comment` tells a pull request; ``gh`` is a stand-in that keeps it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GH = """#!/bin/sh
if [ "$2" = list ]; then echo "$*" >&2; echo "$NUMBER"; exit 0; fi
echo "$1 $2 $3"; cat "$5"
"""
BEFORE = "images:\n  titanic:\n    context: jobs/titanic\n"


@pytest.fixture
def comment(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    source, tools = tmp_path / "source", tmp_path / "bin"
    tools.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    source.mkdir()
    git = ["git", "-C", str(source), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (source / "Pulumi.dev.yaml").write_text(BEFORE)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)

    def run(after: str, number: str = "7", branch: str = "topic"):
        (source / "Pulumi.dev.yaml").write_bytes(after.encode())
        env = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "STACK": "dev",
            "SOURCE": str(source),
            "BRANCH": branch,
            "NUMBER": number,
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        }
        command = [str(ROOT / "tools" / "images-comment")]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True)
        # Not text=True, which takes a carriage return for the end of a line.
        told = (each.decode() for each in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(command, 0, *told)

    return run


def test_the_change_of_the_stack_file_is_told_as_code(comment) -> None:
    told = comment(BEFORE + "    digest: sha256:0\n").stdout
    assert told.startswith("pr comment 7\n")
    assert "\n    +    digest: sha256:0\n" in told


def test_text_of_the_branch_cannot_leave_the_code(comment) -> None:
    told = comment(BEFORE + "# ```\n# @everybody ![x](https://example.com)\n").stdout
    body = told.split("apply this change:\n", 1)[1]
    assert all(not line or line.startswith("    ") for line in body.splitlines())


@pytest.mark.parametrize(
    "text", ["\r", "\r\n", "\x0b", "\x0c", "\x85", "\u2028", "\x1b[2J", "\u202e", "\u3164", "\x00"]
)
def test_no_character_of_the_branch_ends_the_code_or_hides(comment, text: str) -> None:
    told = comment(BEFORE + f"# a{text}</details>@everybody\n").stdout
    body = told.split("apply this change:\n", 1)[1]
    assert all(not line or line.startswith("    ") for line in re.split(r"\r\n|\n|\r", body))
    assert text not in body or text == "\r\n"
    assert body.isascii()


def test_where_nothing_is_to_be_pinned_no_comment_is_made(comment) -> None:
    done = comment(BEFORE)
    assert "All images of `dev` are built and pinned." in done.stderr
    assert not done.stdout


def test_a_branch_without_a_pull_request_is_no_error(comment) -> None:
    done = comment(BEFORE + "    digest: sha256:0\n", number="")
    assert "branch topic has no open pull request" in done.stderr
    assert not done.stdout


def test_a_branch_that_looks_like_an_option_or_a_number_is_a_branch(comment) -> None:
    after = BEFORE + "    digest: sha256:0\n"
    assert "--head=--web" in comment(after, branch="--web").stderr
    assert "--head=12" in comment(after, branch="12").stderr
