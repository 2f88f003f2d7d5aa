"""`vt github` as a workflow runs it: its variables, and a stand-in for gh on PATH."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vt.deploy.approval import Approval
from vt.deploy.target import Target
from vt.github.command import github

STAND_IN = Path(__file__).with_name("stand_in.py")


class GitHub:
    """What the repository holds, and what is asked of it."""

    def __init__(self, file):
        self.file = file
        file.write_text(json.dumps({"comments": [], "issues": [], "pulls": [], "calls": []}))

    @property
    def state(self):
        return json.loads(self.file.read_text())

    def add(self, kind, **entry):
        state = self.state
        state[kind].append(entry)
        self.file.write_text(json.dumps(state))

    def comments(self):
        return [each["body"] for each in self.state["comments"]]

    def vt(self, *words, expect=0):
        done = CliRunner().invoke(github, [str(word) for word in words])
        assert done.exit_code == expect, done.stderr
        return done.stderr


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    command = shlex.join([sys.executable, str(STAND_IN)])
    (folder / "gh").write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    (folder / "gh").chmod(0o755)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
    variables = {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "GH_STATE": str(tmp_path / "state.json"),
        "GH_TOKEN": "t",
        "GITHUB_REPOSITORY": "acme/training",
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_SHA": "d" * 40,
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_RUN_ID": "42",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return GitHub(tmp_path / "state.json")


@pytest.fixture
def record():
    target = Target(backend="gs://acme-state")
    return Approval(stack="dev", commit="c" * 40, tree="a" * 40, report="f" * 64, target=target)


@pytest.fixture
def report(tmp_path):
    file = tmp_path / "dev.md"
    file.write_text("# Plan of dev\n\nNothing changes.\n")
    return file
