"""Which report's record counts for a pull request, and what stands against it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.unit.vt.github.conftest import approval_of, archive_of, plan_text
from vertex_training.errors import ApprovalParseError, CommandError
from vertex_training_cli.deploy.approval import Approval, parse_approval
from vertex_training_cli.github import artifact, gh, kept_approval, repository
from vertex_training_cli.github.kept_approval import KeptApproval
from vertex_training_cli.github.repository import Repository

REPO = "acme/training"
NAME = "approval-dev-7"
COMMENT = {"id": 31, "updated_at": "2026-11-24T10:00:00Z", "body": "the réport\n", "user": None}
OWN = {"full_name": REPO}
REPORTED = {
    "path": ".github/workflows/report.yml", "event": "workflow_run",
    "head_branch": "main", "repository": OWN, "head_repository": OWN,
}  # fmt: skip
LIST = f"repos/{REPO}/actions/artifacts?name={NAME}&per_page=100"
COMMENTS = f"repos/{REPO}/issues/7/comments?per_page=100"


@pytest.fixture
def approval() -> Approval:
    return parse_approval(approval_of(plan_text()))


class Hub:
    """GitHub's documents by path, and the archives of runs by run and name."""

    def __init__(self) -> None:
        self.documents: dict[str, list[Any]] = {LIST: [], COMMENTS: [COMMENT]}
        self.archives: dict[tuple[str, int, str], bytes] = {}
        self.asked: list[str] = []

    def read(self, path: str) -> list[Any]:
        self.asked.append(path)
        return copy.deepcopy(self.documents[path])

    def download(self, *what: Any) -> bytes:
        return self.archives[what]

    def keep(self, number: int, content: str | None, *, run: Any = None, **changed: Any) -> None:
        """A run, of the number and a thousand, has kept ``content`` as the artifact ``number``."""
        made = 1000 + number
        entry = {"id": number, "name": NAME, "expired": False, "workflow_run": {"id": made}}
        self.documents[LIST].append({"artifacts": [entry | changed]})
        self.documents[f"repos/{REPO}/actions/runs/{made}"] = [REPORTED | (run or {})]
        files = {"other.json": "{}"} if content is None else {"approval.json": content}
        self.archives[REPO, made, NAME] = archive_of(files)


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch) -> Hub:
    found = Hub()
    monkeypatch.setattr(gh, "read", found.read)
    monkeypatch.setattr(artifact, "download", found.download)
    return found


def kept(approval: Approval | None, **changed: Any) -> KeptApproval:
    return KeptApproval.of(COMMENT | changed, approval)


@pytest.mark.parametrize(
    "changed",
    [
        {"expired": True},
        {"name": "approval-dev-70"},
        {"run": {"path": ".github/workflows/other.yml"}},
        {"run": {"path": "x/.github/workflows/report.yml"}},
        {"run": {"event": "pull_request"}},
        {"run": {"head_branch": "topic"}},
        {"run": {"repository": {"full_name": "mallory/training"}}},
        {"run": {"head_repository": {"full_name": "mallory/training"}}},
        {"run": {"repository": None}},
        {"run": {"head_repository": None}},
    ],
)
def test_what_another_run_keeps_under_the_name_is_passed_over(
    github: Hub, approval: Approval, changed: dict[str, Any]
) -> None:
    github.keep(1, kept(approval).model_dump_json())
    github.keep(2, kept(None).model_dump_json(), **changed)
    assert kept_approval.find(REPO, "dev", 7) == kept(approval)


def test_an_artifact_of_no_run_is_passed_over(github: Hub) -> None:
    github.documents[f"repos/{REPO}/actions/runs/0"] = [{}]
    github.keep(1, kept(None).model_dump_json(), workflow_run=None)
    assert kept_approval.find(REPO, "dev", 7) is None
    assert github.asked[-1] == f"repos/{REPO}/actions/runs/0"


@pytest.mark.parametrize(("others", "is_found"), [(29, True), (30, False)])
def test_thirty_artifacts_of_the_name_are_looked_at(
    github: Hub, approval: Approval, others: int, is_found: bool
) -> None:
    github.keep(1, kept(approval).model_dump_json())
    for number in range(2, 2 + others):
        github.keep(number, None, expired=True)
    found = kept_approval.find(REPO, "dev", 7)
    assert found == (kept(approval) if is_found else None)


@pytest.mark.parametrize("content", ["", "{}", "[]", "no JSON", None])
def test_a_record_that_is_damaged_is_no_older_one(
    github: Hub, approval: Approval, content: str | None
) -> None:
    github.keep(1, kept(approval).model_dump_json())
    github.keep(2, content)
    with pytest.raises(ApprovalParseError) as refused:
        kept_approval.find(REPO, "dev", 7)
    assert str(refused.value) == "what run 1002 kept is no record"


CHANGED = (
    "the report on pull request 7 was changed or deleted after it was written: who merged may have "
    "read another one."
)


@pytest.mark.parametrize(
    "comments",
    [
        [],
        [COMMENT | {"id": 32}],
        [COMMENT | {"body": "another\n"}],
        [COMMENT | {"updated_at": "2026-11-24T10:00:01Z"}],
    ],
)
def test_a_report_that_was_changed_or_deleted_approves_nothing(
    github: Hub, approval: Approval, comments: list[Any]
) -> None:
    github.documents[COMMENTS] = comments
    with pytest.raises(CommandError) as refused:
        kept_approval.ensure_unchanged(REPO, 7, kept(approval))
    assert (refused.value.message, refused.value.hint) == (
        CHANGED, "read the report of its run, and run the workflow deploy by hand with its digest.",
    )  # fmt: skip


COMMIT = "d" * 40
PULLS = f"repos/{REPO}/commits/{COMMIT}/pulls?per_page=100"
MERGED = {"number": 7, "merged_at": "2026-11-24T11:00:00Z", "merge_commit_sha": COMMIT}


def test_a_commit_is_approved_by_the_pull_request_that_it_came_from(
    github: Hub, approval: Approval
) -> None:
    other = {"number": 6, "merged_at": "2026-11-24T09:00:00Z", "merge_commit_sha": "b" * 40}
    github.documents[PULLS] = [{"number": 5, "merge_commit_sha": COMMIT}, other, MERGED]
    github.keep(1, kept(approval).model_dump_json())
    assert Repository(REPO).read_approval(COMMIT, "dev") == approval
    github.documents[COMMENTS] = []
    with pytest.raises(CommandError, match="changed or deleted"):
        Repository(REPO).read_approval(COMMIT, "dev")


@pytest.mark.parametrize(
    ("pulls", "records", "says"),
    [
        ([], [], "dddddddddddd did not come from a merged pull request."),
        ([MERGED | {"merged_at": None}], [],
         "dddddddddddd did not come from a merged pull request."),
        ([MERGED | {"merge_commit_sha": "b" * 40}], [],
         "dddddddddddd did not come from a merged pull request."),
        ([MERGED], [], "pull request 7 has no preview of dev that succeeded."),
        ([MERGED], [None], "pull request 7 has no preview of dev that succeeded."),
    ],
)  # fmt: skip
def test_without_an_approval_a_commit_is_deployed_by_hand(
    github: Hub, pulls: list[Any], records: list[None], says: str
) -> None:
    github.documents[PULLS] = pulls
    for approval in records:
        github.keep(1, kept(approval).model_dump_json())
    with pytest.raises(CommandError) as refused:
        Repository(REPO).read_approval(COMMIT, "dev")
    assert (refused.value.message, refused.value.hint) == (says, repository.BY_HAND)
    assert repository.BY_HAND == (
        "run the workflow deploy by hand, with the digest of a report you have read."
    )
