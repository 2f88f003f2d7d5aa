"""A GitHub repository: comments on pull requests, approvals, and drift issues.

An invisible marker identifies each text, so that later runs update the text. Only texts by the bot
count, because any user can write a comment with a marker.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pydantic
from pydantic import BaseModel, ConfigDict

from vertex_training.errors import ApprovalParseError, CommandError
from vertex_training_cli.deploy.approval import Approval
from vertex_training_cli.drift.findings import DriftOutcome, title
from vertex_training_cli.engine.values import redact
from vertex_training_cli.github import gh

#: Kinds of texts in markers.
REPORT: Final = "report"
DRIFT: Final = "drift"
#: Hint for a commit without an approved pull request.
BY_HAND: Final = "run the workflow deploy by hand with the digest of a reviewed report."


def write_comment(repository: str, number: int, stack: str, *texts: str) -> dict[str, Any]:
    """Write the comment for ``stack`` on a pull request, and return GitHub's response."""
    text = {"body": body(REPORT, stack, *texts)}
    comments = gh.read(f"repos/{repository}/issues/{number}/comments?per_page=100")
    if comment := find_own(comments, REPORT, stack):
        path = f"repos/{repository}/issues/comments/{comment['id']}"
        return gh.write("PATCH", path, text)
    return gh.write("POST", f"repos/{repository}/issues/{number}/comments", text)


def read_approval(repository: str, commit: str, stack: str) -> Approval:
    """Return the approval given by merging the pull request with ``commit``.

    Raises CommandError without an approval, and ApprovalParseError for a damaged record.
    """
    pulls = gh.read(f"repos/{repository}/commits/{commit}/pulls?per_page=100")
    # The merge commit of a rebase is the last of its commits.
    merged = [
        pull for pull in pulls if pull.get("merged_at") and pull.get("merge_commit_sha") == commit
    ]
    if not merged:
        what = f"commit {commit[:12]} is not from a merged pull request."
        raise CommandError(what, BY_HAND)
    number = merged[0]["number"]
    kept = find_kept_approval(repository, stack, number)
    if kept is None or kept.approval is None:
        what = f"pull request {number} has no successful preview of {stack}."
        raise CommandError(what, BY_HAND)
    ensure_unchanged(repository, number, kept)
    return kept.approval


def update_drift_issue(
    repository: str, stack: str, outcome: DriftOutcome, report: str, run: str
) -> str:
    """Open, update, reopen or close the drift issue of ``stack``, and return the action.

    A failed comparison does not change the issue.
    """
    issues = gh.read(f"repos/{repository}/issues?state=all&labels={DRIFT}&per_page=100")
    issue = find_own(issues, DRIFT, stack)
    is_open = issue is not None and issue["state"] == "open"
    if outcome is DriftOutcome.FAILED or (outcome is DriftOutcome.CLEAN and not is_open):
        return "the issue is unchanged" if issue else "no issue exists"
    seen = f"\nLast compared by {run}\n" if run else ""
    text: dict[str, Any] = {"body": body(DRIFT, stack, report, seen)}
    if issue is None:
        # GitHub creates a missing label.
        text |= {"title": title(stack), "labels": [DRIFT]}
        return f"opened {gh.write('POST', f'repos/{repository}/issues', text)['html_url']}"
    text["state"] = "closed" if outcome is DriftOutcome.CLEAN else "open"
    answer = gh.write("PATCH", f"repos/{repository}/issues/{issue['number']}", text)
    verb = "closed" if outcome is DriftOutcome.CLEAN else "renewed" if is_open else "reopened"
    return f"{verb} {answer['html_url']}"


#: GitHub's name for the author of texts that a workflow writes with its own token.
AUTHOR: Final = "github-actions[bot]"
#: Maximum length of a comment: https://docs.github.com/rest/issues/comments
MAX_BODY: Final = 65_536


def marker(kind: str, stack: str) -> str:
    """Return the hidden marker at the beginning of a text of this kind for this stack."""
    return f"<!-- vt:{kind} {stack} -->"


def body(kind: str, stack: str, *texts: str) -> str:
    """Return the text with its marker and with possible secrets redacted. Raises CommandError."""
    parts = [marker(kind, stack), *(redact(text.rstrip("\n")) for text in texts if text)]
    whole = "\n".join(parts) + "\n"
    if len(whole) > MAX_BODY:
        raise CommandError(f"the text has {len(whole)} characters; GitHub's limit is {MAX_BODY}.")
    return whole


def find_own(
    entries: Iterable[Mapping[str, Any]], kind: str, stack: str
) -> Mapping[str, Any] | None:
    """Return the oldest comment or issue that a workflow wrote for ``stack``, else None."""
    begin = marker(kind, stack)
    own = [
        entry
        for entry in entries
        if (entry.get("user") or {}).get("login") == AUTHOR
        and (entry.get("body") or "").startswith(begin)
        and "pull_request" not in entry  # GitHub lists pull requests among issues
    ]
    return min(own, key=lambda entry: entry["id"], default=None)


#: Path of the workflow that writes reports. For the event ``workflow_run``, GitHub runs the version
#: of the workflow on the default branch.
WORKFLOW: Final = ".github/workflows/report.yml"
EVENT: Final = "workflow_run"
BRANCH: Final = "main"
FILE: Final = "approval.json"
#: Maximum number of artifacts to check. Artifacts of other workflows can have the same name.
_MOST: Final = 30


class KeptApproval(BaseModel):
    """The approval that a merge gives, and the comment that a user read before the merge."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    comment: int
    updated_at: str
    """Time of the comment's last change, from GitHub."""
    body: str
    """SHA-256 of the comment's text."""
    approval: Approval | None
    """None if a merge approves nothing."""

    @classmethod
    def of(cls, comment: Mapping[str, Any], approval: Approval | None) -> KeptApproval:
        """Return the record for a comment in GitHub's format."""
        return cls(
            comment=comment["id"],
            updated_at=comment["updated_at"],
            body=hashlib.sha256(comment["body"].encode()).hexdigest(),
            approval=approval,
        )


def name_of(stack: str, pull: int) -> str:
    """Return the name of the artifact that stores a pull request's approval."""
    return f"approval-{stack}-{pull}"


def find_kept_approval(repository: str, stack: str, pull: int) -> KeptApproval | None:
    """Return the approval that the newest report on a pull request stored; None without one."""
    name = name_of(stack, pull)
    for candidate in gh.artifacts(f"repos/{repository}/actions/artifacts", name, _MOST):
        run = int((candidate.get("workflow_run") or {}).get("id") or 0)
        if not _is_report(repository, run):
            continue
        content = gh.read_file(gh.artifact_of(repository, run, name), FILE)
        try:
            return KeptApproval.model_validate_json(content or b"")
        except pydantic.ValidationError:
            raise ApprovalParseError(f"the approval record of run {run} is damaged") from None
    return None


def ensure_unchanged(repository: str, pull: int, kept: KeptApproval) -> None:
    """Raise CommandError if the comment was changed or deleted after the report."""
    listed = gh.read(f"repos/{repository}/issues/{pull}/comments?per_page=100")
    comments = [comment for comment in listed if comment["id"] == kept.comment]
    if not comments or KeptApproval.of(comments[0], kept.approval) != kept:
        raise CommandError(
            f"the report on pull request {pull} was changed or deleted before the deployment, so "
            "the user who merged may have read another text.",
            "read the report of the run, and run the workflow deploy by hand with its digest.",
        )


def _is_report(repository: str, run: int) -> bool:
    workflow_run = gh.read(f"repos/{repository}/actions/runs/{run}")[0]
    return (
        str(workflow_run.get("path")).partition("@")[0] == WORKFLOW
        and workflow_run.get("event") == EVENT
        and workflow_run.get("head_branch") == BRANCH
        and (workflow_run.get("repository") or {}).get("full_name") == repository
        and (workflow_run.get("head_repository") or {}).get("full_name") == repository
    )
