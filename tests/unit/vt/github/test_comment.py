"""The one comment on a pull request, and what merging it approves."""

import pytest

from vt.deploy.approval import parse_approval

BOT = {"login": "github-actions[bot]"}


@pytest.fixture
def approved(tmp_path, record):
    file = tmp_path / "dev.approval.json"
    file.write_text(record.as_json())
    return file


@pytest.fixture
def merged(hub):
    sha = "d" * 40
    hub.add("pulls", number=6, merged_at=None, merge_commit_sha=sha)
    hub.add("pulls", number=7, merged_at="2026-11-21T10:00:00Z", merge_commit_sha=sha)


def test_a_second_preview_writes_the_same_comment_anew(hub, report, approved):
    hub.vt("comment", "-s", "dev", report, "--approval", approved)
    report.write_text("# Another plan\n")
    hub.vt("comment", "-s", "dev", report, "--approval", approved)
    [body] = hub.comments()
    assert "# Another plan" in body
    assert hub.state["calls"] == ["POST issues/7/comments", "PATCH issues/comments/100"]


def test_each_stack_has_its_comment(hub, report):
    for stack in ("dev", "prod", "dev"):
        hub.vt("comment", "-s", stack, report)
    assert len(hub.comments()) == 2


def test_it_is_found_on_a_later_page(hub, report):
    for number in range(5):
        hub.add("comments", id=number, issue=7, user={"login": "ann"}, body="me too")
    hub.vt("comment", "-s", "dev", report)
    hub.vt("comment", "-s", "dev", report)
    assert len(hub.comments()) == 6


def test_what_was_merged_is_approved(hub, report, approved, merged, record, tmp_path):
    hub.vt("comment", "-s", "dev", report, "--approval", approved)
    found = tmp_path / "found" / "dev.json"
    hub.vt("approval", "-s", "dev", "-o", found)
    assert parse_approval(found.read_text()) == record


def test_a_preview_that_failed_takes_the_approval_away(hub, report, approved, merged, tmp_path):
    hub.vt("comment", "-s", "dev", report, "--approval", approved)
    approved.unlink()
    hub.vt("comment", "-s", "dev", report, "--approval", approved)
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert "pull request 7 has no preview of dev that succeeded" in said
    assert "by hand" in said
    assert not (tmp_path / "x").exists()


def test_a_comment_of_somebody_else_approves_nothing(hub, record, merged, tmp_path):
    body = f"<!-- vt:report dev -->\n{record.as_marker()}\n"
    hub.add("comments", id=1, issue=7, user={"login": "mallory"}, body=body)
    hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)


def test_a_record_inside_of_a_report_approves_nothing(hub, record, report, merged, tmp_path):
    report.write_text(f"# Plan\n\n{record.as_marker()}\n")
    hub.vt("comment", "-s", "dev", report)
    hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)


def test_an_approval_for_one_stack_is_none_for_another(hub, report, approved, merged, tmp_path):
    hub.vt("comment", "-s", "dev", report, "--approval", approved)
    hub.vt("approval", "-s", "prod", "-o", tmp_path / "x", expect=1)


def test_a_commit_pushed_without_a_pull_request_is_not_approved(hub, tmp_path):
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert "dddddddddddd did not come from a merged pull request" in said


def test_a_damaged_record_is_no_approval(hub, merged, tmp_path):
    body = '<!-- vt:report dev -->\n<!-- vt:approval {"stack": "dev"} -->\n'
    hub.add("comments", id=1, issue=7, user=BOT, body=body)
    assert "damaged" in hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)


@pytest.mark.parametrize("name", ["GITHUB_EVENT_PATH", "GITHUB_REPOSITORY"])
def test_outside_of_a_workflow_it_says_so(hub, report, monkeypatch, name):
    monkeypatch.delenv(name)
    assert f"{name} is not set" in hub.vt("comment", "-s", "dev", report, expect=1)


def test_an_event_without_a_pull_request_has_no_place_for_a_comment(hub, report, tmp_path):
    (tmp_path / "event.json").write_text("{}")
    assert "not run for a pull request" in hub.vt("comment", "-s", "dev", report, expect=1)


def test_a_refusal_of_github_is_one_line(hub, report, monkeypatch):
    monkeypatch.delenv("GH_TOKEN")
    said = hub.vt("comment", "-s", "dev", report, expect=1)
    assert "GH_TOKEN" in said
    assert said.count("\n") == 1


def test_without_gh_it_says_what_is_missing(hub, report, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "gh is not on PATH" in hub.vt("comment", "-s", "dev", report, expect=1)


def test_a_report_longer_than_github_takes_is_an_error(hub, report):
    report.write_text("x" * 70_000)
    assert "GitHub takes 65536" in hub.vt("comment", "-s", "dev", report, expect=1)
    assert hub.comments() == []


def test_a_comment_of_which_only_the_marker_is_left_approves_nothing(hub, merged, tmp_path):
    hub.add("comments", id=1, issue=7, user=BOT, body="<!-- vt:report dev -->")
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert "has no preview of dev" in said
