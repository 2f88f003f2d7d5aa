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
from vertex_training.errors import CommandError
from vertex_training_cli.deploy.approval import parse_approval
from vertex_training_cli.github import repository
from vertex_training_cli.github.preview_run import PreviewRun


@pytest.fixture
def merged(hub):
    sha = "d" * 40
    hub.add("pulls", number=6, merged_at=None, merge_commit_sha=sha)
    hub.add("pulls", number=7, merged_at="2026-11-21T10:00:00Z", merge_commit_sha=sha)


def test_the_log_shows_where_the_comment_is(hub):
    assert hub.told(approval=True) == "vt github: https://github.example/issues/7/comments\n"
    assert "(https://github.example/acme/training/actions/runs/42)" in hub.comments()[0]


def test_what_was_merged_is_approved_and_the_log_shows_the_record(hub, merged, tmp_path):
    hub.told(approval=True)
    found = tmp_path / "new" / "found" / "dev.json"
    said = hub.vt("approval", "-s", "dev", "-o", found)
    record = parse_approval(found.read_text())
    assert record.as_json() in said
    assert (record.commit, record.tree) == (MERGE, TREE)
    assert record.report == digest_of(plan_text())


def test_backend_and_accounts_are_those_of_the_job_that_comments(hub, merged, tmp_path):
    target = {"backend": "gs://x", "settings": {"a": "b"}}
    hub.told(approval=approval_of(plan_text(), target=target))
    hub.vt("approval", "-s", "dev", "-o", tmp_path / "x")
    target = parse_approval((tmp_path / "x").read_text()).target
    assert (target.backend, target.deploy_account) == ("gs://acme-state", "deploy@acme")
    assert (target.identity_provider, target.settings) == ("projects/1/x", {"a": "b"})


def test_a_preview_that_failed_takes_the_approval_away(hub, merged, tmp_path):
    hub.told(approval=True)
    assert "a merge does not approve this plan: the run has no approval record" in hub.told()
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert "pull request 7 has no successful preview of dev" in said
    assert "by hand" in said
    assert not (tmp_path / "x").exists()


def test_a_preview_without_an_artifact_takes_the_approval_away(hub, merged, tmp_path):
    hub.told(approval=True)
    hub.uploaded(b"", id=999)
    assert hub.tell(expect=1).splitlines()[1] == (
        "vt github: the preview of dev has no report: run 999 has no artifact report-dev."
    )
    assert hub.comments()[0].splitlines()[:4] == [
        "<!-- vt:report dev -->", "## Review of stack `dev`", "",
        "This preview has no report: run 999 has no artifact report-dev.",
    ]  # fmt: skip
    hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)


def test_a_commit_that_is_no_longer_the_newest_is_not_told(hub):
    hub.told(approval=True)
    kept, before = hub.file.with_name("kept.json"), hub.comments()
    assert hub.told(head_sha="0" * 40) == (
        "vt github: this commit no longer has an open pull request.\n"
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


def test_an_artifact_without_a_plan_or_a_record_is_told_by_what_it_lacks(hub):
    hub.uploaded(archive_of({"prod.plan": plan_text()}))
    hub.tell(expect=1)
    assert "\nThis preview has no report: the artifact has no dev.plan.\n" in hub.comments()[0]
    hub.told()
    assert "A merge does not approve this plan: the run has no approval" in hub.comments()[0]


def test_an_approval_for_one_stack_is_none_for_another(hub, merged, tmp_path):
    hub.told(approval=True)
    hub.vt("approval", "-s", "prod", "-o", tmp_path / "x", expect=1)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("GITHUB_EVENT_PATH", None, "GITHUB_EVENT_PATH is not set"),
        ("GITHUB_REPOSITORY", None, "GITHUB_REPOSITORY is not set"),
        ("GH_TOKEN", None, "GH_TOKEN"),
        ("PATH", "/nonexistent", "gh is not on PATH"),
    ],
)
def test_comment_without_its_environment_is_refused(hub, monkeypatch, name, value, says):
    hub.previewed()
    if value:
        monkeypatch.setenv(name, value)
    else:
        monkeypatch.delenv(name)
    said = hub.tell(expect=1)
    assert says in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("event", ["{}", '{"pull_request": {"number": 7}}', '{"workflow_run": 1}'])
def test_an_event_of_another_kind_has_no_place_for_a_comment(hub, tmp_path, event):
    (tmp_path / "event.json").write_text(event)
    assert "is not a workflow_run event of a preview" in hub.tell(expect=1)


BY_HAND = "run the workflow deploy by hand with the digest of a reviewed report."


@pytest.mark.parametrize(
    ("pull", "says"),
    [
        ({"merged_at": None}, "commit dddddddddddd is not from a merged pull request."),
        ({"merge_commit_sha": "b" * 40}, "commit dddddddddddd is not from a merged pull request."),
        ({}, "pull request 7 has no successful preview of dev."),
    ],
)
def test_commit_without_an_approval_is_deployed_by_hand(hub, tmp_path, pull, says):
    """GitHub lists every pull request that a commit belongs to, merged or not."""
    merge = {"merged_at": "2026-11-24T11:00:00Z", "merge_commit_sha": "d" * 40}
    hub.add("pulls", number=7, **merge | pull)
    said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "x", expect=1)
    assert said == f"vt github approval: {says} Hint: {BY_HAND}\n"


@pytest.fixture
def approved(hub, merged, tmp_path):
    """An approved preview, and a function that returns what the deployment would fetch."""
    hub.told(approval=True)

    def fetch(expect=0):
        said = hub.vt("approval", "-s", "dev", "-o", tmp_path / "found", expect=expect)
        return said if expect else parse_approval((tmp_path / "found").read_text())

    return fetch


@pytest.mark.parametrize(
    "changed", [{"expired": True}, {"name": "approval-dev-70"}, {"workflow_run": None}]
)
def test_unusable_artifact_of_the_name_is_skipped(hub, approved, changed):
    hub.add("runs", id=0)
    about = {"id": 99, "name": "approval-dev-7", "expired": False, "workflow_run": {"id": 1001}}
    hub.add("artifacts", **about | changed)
    assert approved().commit == MERGE


@pytest.mark.parametrize(("others", "expect"), [(29, 0), (30, 1)])
def test_only_the_thirty_newest_artifacts_are_read(hub, approved, others, expect):
    state = hub.state
    state["artifacts"] += [
        {"id": 10 + n, "name": "approval-dev-7", "expired": True, "workflow_run": {"id": 1}}
        for n in range(others)
    ]
    hub.file.write_text(json.dumps(state))
    approved(expect)


@pytest.mark.parametrize("content", ["", "{}", "[]", "no JSON"])
def test_damaged_record_is_not_replaced_by_an_older_one(hub, approved, content):
    hub.keep("approval-dev-7", content)
    assert "approval record of run" in approved(1)


def test_report_replaced_by_another_comment_approves_nothing(hub, approved):
    state = hub.state
    state["comments"][0]["id"] += 1
    hub.file.write_text(json.dumps(state))
    said = approved(1)
    assert "the report on pull request 7 was changed or deleted before the deployment" in said
    assert "run the workflow deploy by hand with its digest" in said


def test_pull_request_is_found_by_commit_repository_and_branch(hub):
    hub.file.write_text(json.dumps(hub.state | {"open_pulls": []}))
    branch = "a/b&c"
    hub.open_pull(5, base="release", branch=branch)
    hub.open_pull(6, sha="0" * 40, branch=branch)
    hub.open_pull(7, repository="acme/fork", branch=branch)
    assert "no longer has an open pull request" in hub.told(head_branch=branch)
    hub.open_pull(8, branch=branch)
    assert "/issues/8/comments" in hub.told(head_branch=branch)


@pytest.mark.parametrize(
    ("kind", "changed", "says"),
    [
        ("commits", {"parents": [{"sha": "b"}]}, "the record's content differs from the commit"),
        ("commits", {"parents": None}, "the record's content differs from the commit"),
        ("commits", {"tree": None}, "the record's content differs from the commit"),
        ("open_pulls", {"merge_commit_sha": None},
         "the record's commit differs from GitHub's current merge commit"),
        ("open_pulls", {"base": {"ref": "release"}}, "no longer has an open pull request"),
    ],
)  # fmt: skip
def test_preview_of_another_merge_is_not_approved(hub, kind, changed, says):
    state = hub.state
    state[kind][0] |= changed
    hub.file.write_text(json.dumps(state))
    assert says in hub.told(approval=True)


def test_unknown_backend_is_not_approved(hub, monkeypatch):
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    assert "PULUMI_BACKEND_URL is not set, so the deployment" in hub.told(approval=True)


RUN = {
    "id": 5, "event": "pull_request", "path": ".github/workflows/preview.yml@refs/heads/main",
    "head_sha": "e", "head_branch": "topic",
}  # fmt: skip
REPOSITORY = {"default_branch": "main"}


@pytest.mark.parametrize(
    "event",
    [
        {"workflow_run": RUN},
        {"repository": REPOSITORY},
        {"repository": REPOSITORY, "workflow_run": RUN | {"id": "x"}},
        {"repository": REPOSITORY, "workflow_run": RUN | {"path": None}},
        *(
            {"repository": REPOSITORY, "workflow_run": {k: RUN[k] for k in RUN if k != missing}}
            for missing in RUN
        ),
    ],
)
def test_incomplete_event_is_refused(event):
    says = r"\Athe event is not a workflow_run event of a preview\.\Z"
    with pytest.raises(CommandError, match=says):
        PreviewRun.of_event(event, "acme/training")


def test_body_longer_than_github_accepts_is_refused():
    room = 65_536 - len(repository.body("report", "dev", "")) - len("\n")
    assert len(repository.body("report", "dev", "x" * room)) == 65_536
    with pytest.raises(CommandError, match="65537 characters"):
        repository.body("report", "dev", "x" * (room + 1))
