"""The run of a preview, by what GitHub says of it, and what of its approval is verified."""

import json
from dataclasses import replace

import pytest

from tests.unit.vt.github.conftest import HEAD, MERGE, TREE
from vertex_training.errors import ApprovalParseError, CommandError
from vertex_training_cli.github.preview_run import PreviewRun

EVENT = {
    "workflow_run": {
        "id": 5, "event": "pull_request", "path": ".github/workflows/preview.yml@refs/heads/main",
        "head_sha": HEAD, "head_branch": "topic", "head_repository": {"full_name": "acme/training"},
        "actor": {"login": "ann"}, "triggering_actor": {"login": "bob"},
    },
    "repository": {"default_branch": "main"},
}  # fmt: skip
RUN = PreviewRun("acme/training", 5, HEAD, "topic", "acme/training", "main", ("ann", "bob"))
ENV = {
    "PULUMI_BACKEND_URL": "gs://acme-state",
    "VT_DEPLOY_ACCOUNT": "deploy@acme",
    "VT_IDENTITY_PROVIDER": "projects/1/x",
}


def event(**changed):
    return {**EVENT, "workflow_run": EVENT["workflow_run"] | changed}


def without(key):
    run = {name: value for name, value in EVENT["workflow_run"].items() if name != key}
    return {**EVENT, "workflow_run": run}


@pytest.mark.parametrize(
    "event",
    [
        {"workflow_run": EVENT["workflow_run"]},
        {"repository": {"default_branch": "main"}},
        event(id="x"),
        event(path=None),
        *(without(key) for key in ("id", "event", "path", "head_sha", "head_branch")),
    ],
)
def test_an_event_that_lacks_something_is_none_after_a_preview(event):
    with pytest.raises(CommandError, match=r"\Athis workflow does not run after a preview\.\Z"):
        PreviewRun.of_event(event, "acme/training")


def pull(**changed):
    source = {"sha": HEAD, "ref": "topic", "repo": {"full_name": "acme/training"}}
    return {
        "number": 8,
        "head": source,
        "base": {"ref": "main"},
        "merge_commit_sha": MERGE,
    } | changed


def test_the_pull_request_is_read_anew_by_its_number(hub):
    """GitHub computes what it would merge only when one pull request is asked for."""
    hub.file.write_text(json.dumps(hub.state | {"open_pulls": []}))
    hub.open_pull(6, base="release")
    hub.open_pull(7, sha="0" * 40)
    hub.open_pull(8)
    found = RUN.find_pull()
    assert found is not None
    assert found["number"] == 8


@pytest.mark.parametrize(
    "listed",
    [
        [],
        [pull(head={"sha": "0" * 40, "repo": {"full_name": "acme/training"}})],
        [pull(head={"sha": HEAD, "repo": {"full_name": "acme/fork"}})],
        [pull(head={"sha": HEAD, "repo": None})],
        [pull(head=None)],
        [pull(base={"ref": "release"})],
        [pull(base=None)],
    ],
)
def test_a_pull_request_of_another_commit_place_or_branch_is_not_the_runs(monkeypatch, listed):
    asked = []
    monkeypatch.setattr(
        "vertex_training_cli.github.gh.read", lambda path: asked.append(path) or listed
    )
    assert RUN.find_pull() is None
    assert asked == ["repos/acme/training/pulls?state=open&head=acme%3Atopic&per_page=100"]
    asked.clear()
    assert replace(RUN, head_branch="a/b&c").find_pull() is None
    assert asked == ["repos/acme/training/pulls?state=open&head=acme%3Aa%2Fb%26c&per_page=100"]


def verified(record, monkeypatch, env=None, commit=None, pull=None, digest=None):
    """What is approved, where GitHub has ``commit`` of the merge."""
    made = {"tree": {"sha": TREE}, "parents": [{"sha": "b"}, {"sha": HEAD}]}
    asked = []

    def read(path):
        asked.append(path)
        return [made if commit is None else commit]

    monkeypatch.setattr("vertex_training_cli.github.gh.read", read)
    found = RUN.verified_approval(
        record,
        {"merge_commit_sha": MERGE} if pull is None else pull,
        record.report if digest is None else digest,
        ENV if env is None else env,
    )
    assert asked == [f"repos/acme/training/git/commits/{MERGE}"]
    return found


TOKEN = "hf_" + "canary" * 6


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"digest": "0" * 64}, "its digest is not that of the plan in the report"),
        ({"pull": {}}, "its commit is not what GitHub would merge now"),
        ({"pull": {"merge_commit_sha": None}}, "its commit is not what GitHub would merge now"),
        (
            {"commit": {"tree": {"sha": TREE}, "parents": [{"sha": "b"}]}},
            "its content is not that of the commit",
        ),
        (
            {"commit": {"tree": {"sha": TREE}, "parents": None}},
            "its content is not that of the commit",
        ),
        (
            {"commit": {"tree": {"sha": "0" * 40}, "parents": [{"sha": HEAD}]}},
            "its content is not that of the commit",
        ),
        (
            {"commit": {"tree": None, "parents": [{"sha": HEAD}]}},
            "its content is not that of the commit",
        ),
        ({"env": {}}, "PULUMI_BACKEND_URL is not set, so its target is not known"),
    ],
)
def test_what_is_for_another_plan_or_content_is_refused_by_its_reason(
    record, monkeypatch, given, says
):
    with pytest.raises(ApprovalParseError) as refused:
        verified(record, monkeypatch, **given)
    assert str(refused.value) == says


@pytest.mark.parametrize("settings", [{"gcp:x": TOKEN}, {TOKEN: "x"}])
def test_a_target_with_a_secret_is_not_kept(record, monkeypatch, settings):
    target = record.target.model_copy(update={"settings": settings})
    with pytest.raises(ApprovalParseError, match=r"\Aits target has what looks like a secret\Z"):
        verified(record.model_copy(update={"target": target}), monkeypatch)
