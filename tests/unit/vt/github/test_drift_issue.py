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


def test_drift_opens_an_issue_and_the_next_night_renews_it(hub, night):
    assert night("drifted") == "vt github: opened https://github.example/issues\n"
    assert night("drifted") == "vt github: renewed https://github.example/issues/1\n"
    [issue] = hub.state["issues"]
    assert issue["title"] == "Drift in dev"
    assert issue["labels"] == ["drift"]
    assert issue["body"] == (
        "<!-- vt:drift dev -->\ndev is drifted\n\n"
        "Last looked at by https://github.example/acme/training/actions/runs/42\n"
    )


def test_outside_of_a_run_nobody_has_looked(hub, night, monkeypatch):
    monkeypatch.delenv("GITHUB_RUN_ID")
    night("drifted")
    assert hub.state["issues"][0]["body"] == "<!-- vt:drift dev -->\ndev is drifted\n"


def test_a_clean_night_closes_it_and_drift_opens_it_again(hub, night):
    night("drifted")
    assert night("clean") == "vt github: closed https://github.example/issues/1\n"
    assert hub.state["issues"][0]["state"] == "closed"
    assert night("drifted") == "vt github: reopened https://github.example/issues/1\n"
    assert [issue["state"] for issue in hub.state["issues"]] == ["open"]


def test_a_clean_stack_needs_no_issue(hub, night):
    assert night("clean") == "vt github: there is no issue\n"
    assert hub.state["issues"] == []


@pytest.mark.parametrize("outcome", ["clean", "failed"])
def test_where_there_is_nothing_to_say_nothing_is_written(hub, night, outcome):
    night("drifted")
    night("clean")
    before = hub.state
    assert "stays as it is" in night(outcome)
    assert hub.state == before


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


def test_an_issue_of_somebody_else_is_left_alone(hub, night):
    body = "<!-- vt:drift dev -->\nmine"
    hub.add(
        "issues", id=1, number=1, state="open", labels=["drift"], body=body, user={"login": "ann"}
    )
    night("drifted")
    assert hub.state["issues"][0]["body"] == body
    assert len(hub.state["issues"]) == 2


def test_a_pull_request_is_no_issue(hub, night):
    bot = {"login": "github-actions[bot]"}
    body = "<!-- vt:drift dev -->\nx"
    entry = {"id": 1, "number": 1, "state": "open", "labels": ["drift"], "body": body, "user": bot}
    hub.add("issues", pull_request={}, **entry)
    night("drifted")
    assert hub.state["issues"][0]["body"] == body
    assert len(hub.state["issues"]) == 2
