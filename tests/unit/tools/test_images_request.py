"""When `make images-request` starts a build; ``gh`` and ``vt`` are stand-ins."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GH = """#!/bin/sh
printf '%s\\n' "$*" >>"$CALLS"
case "$1 $2" in
"pr list") echo "$NUMBER" ;;
"api --paginate") cat "$FILES" ;;
esac
"""
VT = """#!/bin/sh
echo '[{"context": "jobs/titanic"}, {"context": ""}, {"context": "jobs/spot_resume"}]'
"""
Request = Callable[..., list[str]]


@pytest.fixture
def request_images(tmp_path: Path) -> Request:
    for name, text in (("gh", GH), ("vt", VT)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def run(files: str, number: str = "7", branch: str = "topic") -> list[str]:
        calls = tmp_path / "calls"
        calls.write_text("")
        (tmp_path / "files").write_text(files + "\n")
        env = {
            **os.environ,
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "STACK": "dev",
            "BRANCH": branch,
            "COMMIT": "a" * 40,
            "GITHUB_REPOSITORY": "acme/training",
            "NUMBER": number,
            "FILES": str(tmp_path / "files"),
            "CALLS": str(calls),
        }
        subprocess.run([str(ROOT / "tools" / "images-request")], env=env, check=True)
        return [line for line in calls.read_text().splitlines() if line.startswith("workflow")]

    return run


@pytest.mark.parametrize(
    "files",
    [
        "jobs/titanic/train.py",
        "README.md\njobs/spot_resume/deep/er/x.py",
        "Pulumi.dev.yaml",
        "jobs/moved/x.py\njobs/titanic/x.py",
    ],
)
def test_a_change_of_a_folder_or_of_the_stack_file_starts_one_build(
    files: str, request_images: Request
) -> None:
    [started] = request_images(files)
    assert started == f"workflow run images.yml --ref main -f branch=topic -f commit={'a' * 40}"


@pytest.mark.parametrize(
    "files",
    [
        "README.md",
        "jobs/titanic.yaml",
        "jobs/titanic_two/x",
        "Pulumi.prod.yaml",
        "x/jobs/titanic/y",
    ],
)
def test_other_changes_start_none(files: str, request_images: Request) -> None:
    assert request_images(files) == []


@pytest.mark.parametrize("number", ["", "7; rm -rf /", "--web"])
def test_without_a_pull_request_at_that_commit_nothing_is_started(
    number: str, request_images: Request
) -> None:
    assert request_images("jobs/titanic/train.py", number=number) == []


@pytest.mark.parametrize("branch", ["--web", "$(touch x)", "a b", "x\\ny", "-f ref=other"])
def test_the_name_of_a_branch_is_one_value_whatever_it_says(
    branch: str, request_images: Request, tmp_path: Path
) -> None:
    [started] = request_images("jobs/titanic/train.py", branch=branch)
    assert started == f"workflow run images.yml --ref main -f branch={branch} -f commit={'a' * 40}"
    assert not (tmp_path / "x").exists()


def test_a_pull_request_may_change_more_files_than_a_variable_has_room_for(
    request_images: Request,
) -> None:
    many = "\n".join(f"data/part-{number:06}.csv" for number in range(50_000))
    assert request_images(many) == []
    assert request_images(f"{many}\njobs/titanic/train.py")


def test_names_of_files_are_text(request_images: Request) -> None:
    assert request_images("jobs/.*/x\n$(touch y)\n`id`\n\\n") == []
