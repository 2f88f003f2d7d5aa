"""The commands in docs/operations.md: each is run, here or in the replay, or needs the cloud."""

import os
import re
import subprocess
import sys

import pytest

from tests.fixture_project import ROOT, copy_project, source_path

TEXT = (ROOT / "docs" / "operations.md").read_text().partition("\n## Recovery")[0]
REPLAY = (ROOT / "tests" / "e2e" / "test_gitops.py").read_text()
CLOUD = "*cloud*"


def blocks():
    """(The paragraph before a block, its commands without comments.)"""
    for before, block in re.findall(r"((?:[^\n]+\n)+)\n *```sh\n(.*?)```", TEXT, re.DOTALL):
        lines = [line.split(" #")[0].strip() for line in block.splitlines()]
        yield before, [line for line in lines if line]


def commands(*, cloud):
    return [
        command for before, lines in blocks() for command in lines if (CLOUD in before) == cloud
    ]


def test_the_page_has_commands_of_both_kinds():
    assert len(commands(cloud=False)) >= 6
    assert len(commands(cloud=True)) >= 4


@pytest.mark.parametrize("command", [c for c in commands(cloud=False) if c.startswith("vt ")])
def test_a_command_that_takes_a_moment_does_what_the_page_says(command, tmp_path):
    words = [sys.executable, "-m", "vertex_training_cli.cli", *command.split()[1:]]
    env = {**os.environ, "PYTHONPATH": source_path(ROOT)}
    done = subprocess.run(
        words, cwd=copy_project(tmp_path), env=env, capture_output=True, text=True, check=False
    )
    differ = command.startswith("vt diff")
    assert done.returncode == (1 if differ else 0), done.stderr


@pytest.mark.parametrize("command", [c for c in commands(cloud=False) if not c.startswith("vt ")])
def test_any_other_is_a_verb_that_the_replay_runs_with_these_variables(command):
    _, verb, *variables = command.split()
    assert f'"{verb}"' in REPLAY
    for name in {variable.partition("=")[0] for variable in variables} - {"STACK"}:
        assert f"{name}=" in REPLAY
    subprocess.run(["make", "-n", verb, *variables], cwd=ROOT, capture_output=True, check=True)


@pytest.mark.parametrize("command", commands(cloud=True))
def test_a_command_for_the_cloud_names_what_there_is(command):
    for part in command.split("&&"):
        program, verb, *_ = part.split()
        if program == "make":
            assert re.search(rf"^{verb}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
        elif program == "vt":
            words = [str(ROOT / ".venv" / "bin" / "vt"), verb, "--help"]
            subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
        else:
            assert program in ("export", "pulumi", "gcloud")
