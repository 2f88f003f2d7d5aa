"""What `vt local up` and `vt local fault add` make of their options."""

import pytest
from typer.testing import CliRunner

from localgcp.faults.table import FaultTable
from vertex_training_cli.cli import app


@pytest.fixture
def asked(monkeypatch):
    """What the flow is started with; its exit code is 3."""
    calls = []

    def run(home, stack, *, wait, images, report):
        calls.append((stack, wait, images))
        return 3

    monkeypatch.setattr("vertex_training_cli.local.up.run", run)
    return calls


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ("local", True, False)),
        (["--no-wait"], ("local", False, False)),
        (["--stack", "other"], ("other", True, False)),
        (["--images"], ("local", True, True)),
    ],
)
def test_the_options_reach_the_flow_and_its_exit_code_is_ours(asked, words, expected):
    assert CliRunner().invoke(app, ["local", "up", *words]).exit_code == 3
    assert asked == [expected]


def test_a_fault_without_options_happens_to_the_first_call_and_is_certain(home, monkeypatch):
    monkeypatch.setenv("VT_LOCAL_HOME", str(home.root))
    done = CliRunner().invoke(app, ["local", "fault", "add", "jobs", "drop"])
    [entry] = FaultTable(home.faults).entries()
    fault = entry.fault
    assert done.exit_code in (0, 1)
    assert (fault.method, fault.match, fault.when) == ("*", "", "before")
    assert (fault.nth, fault.probability, fault.seed) == (1, 1.0, 0)
