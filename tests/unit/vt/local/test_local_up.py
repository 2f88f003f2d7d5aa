"""What `vt local up` and `vt local fault add` make of their options."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from vertex_training_cli.cli import app
from vertex_training_cli.local.commands import report


@pytest.fixture
def asked(monkeypatch):
    """What the flow is started with; its exit code is 3."""
    calls = []

    def run(home, stack, *, wait, report, images=False):
        calls.append((stack, wait, images))
        return 3

    monkeypatch.setattr("vertex_training_cli.local.up.run", run)
    return calls


def test_endpoints_follow_the_jobs_in_a_stack_of_their_own(home, asked, monkeypatch):
    given, ups = [], []

    def run(found, stack, file, train, then, report):
        given.append((found, stack, file, report))
        train("s-endpoint")
        return then("s-endpoint") + 1

    def bring_up(found, stack, report):
        ups.append((found, stack, report))
        return 4

    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    monkeypatch.setattr("vertex_training_cli.local.endpoint_form.run", run)
    monkeypatch.setattr("vertex_training_cli.local.up._bring_up", bring_up)
    words = ["--stack", "s", "--endpoints", "added.yaml", "--no-wait"]
    assert CliRunner().invoke(app, ["local", "up", *words]).exit_code == 5
    [(found, *rest)] = given
    assert (found.root, *rest) == (home.root, "s", Path("added.yaml"), report)
    assert asked == [("s-endpoint", True, False)]
    assert ups == [(found, "s-endpoint", report)]
