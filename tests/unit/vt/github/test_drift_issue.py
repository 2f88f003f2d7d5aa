"""The one issue on drift: opened, renewed, closed, reopened."""

import json

import pytest


@pytest.fixture
def night(hub, tmp_path):
    """A night's comparison that came to ``outcome``, told to GitHub."""

    def told(outcome, stack="dev"):
        report = tmp_path / f"{stack}.drift.md"
        report.write_text(f"{stack} is {outcome}\n")
        report.with_suffix(".json").write_text(json.dumps({"version": 1, "outcome": outcome}))
        return hub.vt("drift", "-s", stack, report)

    return told


def test_a_clean_night_closes_it_and_drift_opens_it_again(hub, night):
    night("drifted")
    assert night("clean") == "vt github: closed https://github.example/issues/1\n"
    assert hub.state["issues"][0]["state"] == "closed"
    assert night("drifted") == "vt github: reopened https://github.example/issues/1\n"
    assert [issue["state"] for issue in hub.state["issues"]] == ["open"]


def test_a_clean_stack_needs_no_issue(hub, night):
    assert night("clean") == "vt github: no issue exists\n"
    assert hub.state["issues"] == []


def test_a_failed_night_leaves_an_open_issue_open(hub, night):
    night("drifted")
    night("failed")
    assert "dev is drifted" in hub.state["issues"][0]["body"]
    assert hub.state["issues"][0]["state"] == "open"


def test_each_stack_has_its_issue(hub, night):
    night("drifted", "dev")
    night("drifted", "prod")
    night("drifted", "dev")
    assert [issue["title"] for issue in hub.state["issues"]] == ["Drift in dev", "Drift in prod"]
