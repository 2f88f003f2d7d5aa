"""The plan is reviewed anew by `vt review` in a process of its own."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from vertex_training.errors import CommandError
from vertex_training_cli.deploy import sources

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def started(monkeypatch):
    """The commands that are started; each one writes a report and ends with ``code``."""
    calls = SimpleNamespace(commands=[], options=[], code=0)

    def run(command, **options):
        calls.commands.append(command)
        calls.options.append(options)
        with open(command[command.index("--output") + 1], "w") as file:
            json.dump({"version": 1, "digest": DIGEST}, file)
        return subprocess.CompletedProcess(command, calls.code)

    monkeypatch.setattr(sources.subprocess, "run", run)
    return calls


def test_what_is_deployed_is_held_to_the_plan_of_that_review_and_no_older_one(started, tmp_path):
    plan = sources.engine_plan(tmp_path, "dev")
    plan.write_text("older")
    sources.review(tmp_path, "dev", [])
    assert not plan.exists()
    assert plan.parent.stat().st_mode & 0o077 == 0
    options = sources.plan_options("policy", tmp_path / "levels.json", refresh=True)
    assert sources.up_command(tmp_path, "dev", options) == [
        *(sys.executable, "-m", "vertex_training_cli.cli", "up", "--stack", "dev"),
        *("--yes", "--skip-preview", "--non-interactive"),
        *("--policy-pack", "policy", "--policy-levels", str(tmp_path / "levels.json"), "--refresh"),
        *("--plan", str(plan)),
    ]


def test_a_review_that_ended_otherwise_is_no_plan(started, tmp_path):
    for code in (1, 4):
        started.code = code
        with pytest.raises(CommandError) as refused:
            sources.review(tmp_path, "dev", [])
        assert refused.value.message == f"the review of stack dev ended with exit code {code}."
        assert refused.value.hint == "run `make preview STACK=dev` to see the whole report."


#: Takes the plan, and then becomes another process, as a deployment does.
DEPLOYS = """
import os, pathlib, sys
from vertex_training_cli.deploy import sources
with sources.plan_held(pathlib.Path(sys.argv[1]), "dev"):
    os.execv("/bin/sh", ["sh", "-c", "echo; read x"])
"""


def test_two_deployments_of_a_folder_do_not_use_the_same_plan(tmp_path):
    """A later one would remove or replace what the engine of the first is held to."""
    command = [sys.executable, "-c", DEPLOYS, str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as first:
        first.stdout.readline()
        with pytest.raises(CommandError) as refused, sources.plan_held(tmp_path, "dev"):
            pytest.fail("held twice")
        assert refused.value.message == (
            "another `vt deploy` of stack dev is running in this folder."
        )
        with sources.plan_held(tmp_path, "prod"):
            pass
        first.communicate(b"\n", timeout=10)
    for _ in range(2):  # an end of any kind frees it
        with sources.plan_held(tmp_path, "dev"):
            pass
