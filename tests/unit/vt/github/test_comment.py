"""The one comment on a pull request, and what merging it approves."""

import json

import pytest

from tests.unit.vt.github.conftest import (
    MERGE,
    TREE,
    approval_of,
    archive_of,
    digest_of,
    plan_text,
)
from vertex_training_cli.deploy.approval import parse_approval


@pytest.fixture
def merged(hub):
    sha = "d" * 40
    hub.add("pulls", number=6, merged_at=None, merge_commit_sha=sha)
    hub.add("pulls", number=7, merged_at="2026-11-21T10:00:00Z", merge_commit_sha=sha)


def test_the_log_shows_where_the_comment_is(hub):
    assert hub.told(approval=True) == "vt github: https://github.example/issues/7/comments\n"


def test_what_was_merged_is_approved_and_the_log_shows_the_record(hub, merged, tmp_path):
    hub.told(approval=True)
    found = tmp_path / "new" / "found" / "dev.json"
    said = hub.vt("approval", "-s", "dev", "-o", found)
    record = parse_approval(found.read_text())
    assert record.as_json() in said
    assert (record.commit, record.tree) == (MERGE, TREE)
    assert record.report == digest_of(plan_text())


def test_backend_and_accounts_are_those_of_the_job_that_comments(hub, merged, tmp_path):
    hub.told(
        approval=approval_of(plan_text(), target={"backend": "gs://x", "settings": {"a": "b"}})
    )
    hub.vt("approval", "-s", "dev", "-o", tmp_path / "x")
    target = parse_approval((tmp_path / "x").read_text()).target
    assert (target.backend, target.deploy_account) == ("gs://acme-state", "deploy@acme")
    assert (target.identity_provider, target.settings) == ("projects/1/x", {"a": "b"})


def test_a_preview_that_failed_takes_the_approval_away(hub, merged, tmp_path):
    hub.told(approval=True)
    assert "merging approves nothing: the run has recorded no approval" in hub.told()
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert "pull request 7 has no preview of dev that succeeded" in said
    assert "by hand" in said
    assert not (tmp_path / "x").exists()


def test_a_preview_without_an_artifact_takes_the_approval_away(hub, merged, tmp_path):
    hub.told(approval=True)
    hub.uploaded(b"", id=999)
    assert "run 999 has no artifact report-dev" in hub.tell(expect=1)
    assert "This preview has no report" in hub.comments()[0]
    hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)


def test_a_commit_that_is_no_longer_the_newest_is_not_told(hub):
    hub.told(approval=True)
    kept, before = hub.file.with_name("kept.json"), hub.comments()
    assert hub.told(head_sha="0" * 40) == (
        "vt github: there is no open pull request of this commit any more.\n"
    )
    assert hub.comments() == before
    assert not kept.exists()  # what an earlier preview approved is not kept again


def test_outside_of_a_runner_no_output_is_written(hub, monkeypatch, tmp_path):
    hub.previewed(approval=True)
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name)
    kept = tmp_path / "new" / "one" / "kept.json"
    assert hub.vt("comment", "-s", "dev", "-o", kept).count("\n") == 1
    assert json.loads(kept.read_text())["approval"]["commit"] == MERGE
    assert not (tmp_path / "summary.md").exists()


def test_a_refused_artifact_is_told_whole(hub):
    hub.uploaded(b"", id=999)
    assert hub.tell(expect=1).splitlines()[1] == (
        "vt github: there is no report of dev: run 999 has no artifact report-dev."
    )
    assert hub.comments()[0].splitlines()[:4] == [
        "<!-- vt:report dev -->",
        "## Review of stack `dev`",
        "",
        "This preview has no report: run 999 has no artifact report-dev.",
    ]


def test_an_artifact_without_a_plan_or_a_record_is_told_by_what_it_lacks(hub):
    hub.uploaded(archive_of({"prod.plan": plan_text()}))
    hub.tell(expect=1)
    assert "\nThis preview has no report: the artifact has no plan.\n" in hub.comments()[0]
    hub.told()
    assert "\nMerging approves nothing: the run has recorded no approval.\n" in hub.comments()[0]


def test_a_pull_request_to_another_branch_is_not_told(hub):
    state = hub.state
    state["open_pulls"][0]["base"]["ref"] = "release"
    hub.file.write_text(json.dumps(state))
    assert "no open pull request" in hub.told(approval=True)


def test_an_approval_for_one_stack_is_none_for_another(hub, merged, tmp_path):
    hub.told(approval=True)
    hub.vt("approval", "-s", "prod", "-o", tmp_path / "x", expect=1)


def test_a_commit_pushed_without_a_pull_request_is_not_approved(hub, tmp_path):
    hub.add("pulls", number=6, merged_at=None, merge_commit_sha="d" * 40)
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert said == (
        "vt github approval: dddddddddddd did not come from a merged pull request. Hint: run the "
        "workflow deploy by hand, with the digest of a report you have read.\n"
    )


def test_a_damaged_record_is_no_approval(hub, merged, tmp_path):
    hub.keep("approval-dev-7", '{"stack": "dev"}')
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert said == (
        "vt github approval: the report's record is damaged: what run 1001 kept is no record\n"
    )


@pytest.mark.parametrize("name", ["GITHUB_EVENT_PATH", "GITHUB_REPOSITORY"])
def test_outside_of_a_workflow_it_says_so(hub, monkeypatch, name):
    hub.previewed()
    monkeypatch.delenv(name)
    assert f"{name} is not set" in hub.tell(expect=1)


@pytest.mark.parametrize("event", ["{}", '{"pull_request": {"number": 7}}', '{"workflow_run": 1}'])
def test_an_event_of_another_kind_has_no_place_for_a_comment(hub, tmp_path, event):
    (tmp_path / "event.json").write_text(event)
    assert "does not run after a preview" in hub.tell(expect=1)


def test_a_refusal_of_github_is_one_line(hub, monkeypatch):
    hub.previewed()
    monkeypatch.delenv("GH_TOKEN")
    said = hub.tell(expect=1)
    assert "GH_TOKEN" in said
    assert said.count("\n") == 1


def test_without_gh_it_says_what_is_missing(hub, monkeypatch, tmp_path):
    hub.previewed()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "gh is not on PATH" in hub.tell(expect=1)
