"""A repository on GitHub: the comment on a pull request, its approval, the issue on drift.

Each text stands in one place, where it is found again and written anew, by a marker that Markdown
does not show. Only what a bot wrote is taken for ours: anybody may write a comment, and put a
marker into it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pydantic
from pydantic import BaseModel, ConfigDict

from vertex_training.errors import ApprovalParseError, CommandError
from vertex_training_cli.deploy.approval import Approval
from vertex_training_cli.drift.findings import DriftOutcome
from vertex_training_cli.drift.report import title
from vertex_training_cli.engine.values import redact
from vertex_training_cli.github import gh

#: Kinds of texts, which their markers name.
REPORT: Final = "report"
DRIFT: Final = "drift"
#: What to do where no pull request approves a commit.
BY_HAND: Final = "run the workflow deploy by hand, with the digest of a report you have read."


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository: OWNER/NAME."""

    name: str

    def write_comment(self, number: int, stack: str, *texts: str) -> dict[str, Any]:
        """Write the one comment for ``stack`` on a pull request, and return what GitHub answers."""
        text = {"body": body(REPORT, stack, *texts)}
        comments = gh.read(f"repos/{self.name}/issues/{number}/comments?per_page=100")
        if comment := find_own(comments, REPORT, stack):
            path = f"repos/{self.name}/issues/comments/{comment['id']}"
            return gh.write("PATCH", path, text)
        return gh.write("POST", f"repos/{self.name}/issues/{number}/comments", text)

    def read_approval(self, commit: str, stack: str) -> Approval:
        """Return what was approved by merging the pull request that ``commit`` came from.

        Raises:
            CommandError: it came from none, or no report on it approves anything.
            ApprovalParseError: the record that a report kept is damaged.
        """
        pulls = gh.read(f"repos/{self.name}/commits/{commit}/pulls?per_page=100")
        merged = [pull for pull in pulls if pull.get("merged_at") and _is_of(pull, commit)]
        if not merged:
            raise CommandError(f"{commit[:12]} did not come from a merged pull request.", BY_HAND)
        number = merged[0]["number"]
        kept = find_kept_approval(self.name, stack, number)
        if kept is None or kept.approval is None:
            what = f"pull request {number} has no preview of {stack} that succeeded."
            raise CommandError(what, BY_HAND)
        ensure_unchanged(self.name, number, kept)
        return kept.approval

    def update_drift_issue(self, stack: str, outcome: DriftOutcome, report: str, run: str) -> str:
        """Open, renew, reopen or close the one issue on drift of ``stack``; what was done.

        A comparison that failed leaves the issue as it is: nothing is known.
        """
        issues = gh.read(f"repos/{self.name}/issues?state=all&labels={DRIFT}&per_page=100")
        issue = find_own(issues, DRIFT, stack)
        is_open = issue is not None and issue["state"] == "open"
        if outcome is DriftOutcome.FAILED or (outcome is DriftOutcome.CLEAN and not is_open):
            return "the issue stays as it is" if issue else "there is no issue"
        seen = f"\nLast looked at by {run}\n" if run else ""
        text: dict[str, Any] = {"body": body(DRIFT, stack, report, seen)}
        if issue is None:
            # GitHub makes a label that it does not have yet.
            text |= {"title": title(stack), "labels": [DRIFT]}
            return f"opened {gh.write('POST', f'repos/{self.name}/issues', text)['html_url']}"
        text["state"] = "closed" if outcome is DriftOutcome.CLEAN else "open"
        answer = gh.write("PATCH", f"repos/{self.name}/issues/{issue['number']}", text)
        verb = "closed" if outcome is DriftOutcome.CLEAN else "renewed" if is_open else "reopened"
        return f"{verb} {answer['html_url']}"


def _is_of(pull: Mapping[str, Any], commit: str) -> bool:
    """Return True if merging this pull request created ``commit``, the last one after a rebase."""
    return pull.get("merge_commit_sha") == commit


#: The author, for GitHub, of what a workflow writes with its own token.
AUTHOR: Final = "github-actions[bot]"
#: GitHub refuses a longer body, https://docs.github.com/rest/issues/comments: 65,536 characters
MAX_BODY: Final = 65_536


def marker(kind: str, stack: str) -> str:
    """Return what a text of this kind for this stack begins with."""
    return f"<!-- vt:{kind} {stack} -->"


def body(kind: str, stack: str, *texts: str) -> str:
    """Return the text as it is stored, with what looks like a secret redacted.

    Raises:
        CommandError: GitHub would refuse it.
    """
    parts = [marker(kind, stack), *(redact(text.rstrip("\n")) for text in texts if text)]
    whole = "\n".join(parts) + "\n"
    if len(whole) > MAX_BODY:
        raise CommandError(f"the text has {len(whole)} characters, and GitHub takes {MAX_BODY}.")
    return whole


def find_own(
    entries: Iterable[Mapping[str, Any]], kind: str, stack: str
) -> Mapping[str, Any] | None:
    """The oldest of these comments or issues that a workflow wrote for ``stack``, or None."""
    begin = marker(kind, stack)
    own = [
        entry
        for entry in entries
        if (entry.get("user") or {}).get("login") == AUTHOR
        and (entry.get("body") or "").startswith(begin)
        and "pull_request" not in entry  # GitHub lists pull requests among issues
    ]
    return min(own, key=lambda entry: entry["id"], default=None)


#: The workflow that reports. On this event GitHub runs it as it is on the default branch.
WORKFLOW: Final = ".github/workflows/report.yml"
EVENT: Final = "workflow_run"
BRANCH: Final = "main"
FILE: Final = "approval.json"
#: So many artifacts of the name are looked at, from the newest on: others may have it, too.
_MOST: Final = 30


class KeptApproval(BaseModel):
    """Approval that merging a pull request gives, and the comment that a person read before."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    comment: int
    updated_at: str
    """When the comment was written last; GitHub sets it at every change."""
    body: str
    """SHA-256 of its text."""
    approval: Approval | None
    """None: the preview approves nothing."""

    @classmethod
    def of(cls, comment: Mapping[str, Any], approval: Approval | None) -> KeptApproval:
        """Build the record from a comment as GitHub returns it."""
        return cls(
            comment=comment["id"],
            updated_at=comment["updated_at"],
            body=hashlib.sha256(comment["body"].encode()).hexdigest(),
            approval=approval,
        )


def name_of(stack: str, pull: int) -> str:
    """Name of the artifact."""
    return f"approval-{stack}-{pull}"


def find_kept_approval(repository: str, stack: str, pull: int) -> KeptApproval | None:
    """Return what the newest report on a pull request kept; None if no report did.

    Raises:
        CommandError: GitHub could not be asked.
        ApprovalParseError: what was kept is damaged.
    """
    name = name_of(stack, pull)
    pages = gh.read(f"repos/{repository}/actions/artifacts?name={name}&per_page=100")
    listed = [artifact for page in pages for artifact in page.get("artifacts") or ()]
    for candidate in sorted(listed, key=lambda one: one["id"], reverse=True)[:_MOST]:
        run = int((candidate.get("workflow_run") or {}).get("id") or 0)
        if (
            candidate.get("expired")
            or candidate.get("name") != name
            or not _is_report(repository, run)
        ):
            continue
        content = gh.read_file(gh.artifact_of(repository, run, name), FILE)
        try:
            return KeptApproval.model_validate_json(content or b"")
        except pydantic.ValidationError:
            raise ApprovalParseError(f"what run {run} kept is no record") from None
    return None


def ensure_unchanged(repository: str, pull: int, kept: KeptApproval) -> None:
    """Refuse an approval whose comment is not the one that the report wrote.

    Raises:
        CommandError: it was changed or deleted since, or GitHub could not be asked.
    """
    listed = gh.read(f"repos/{repository}/issues/{pull}/comments?per_page=100")
    comments = [comment for comment in listed if comment["id"] == kept.comment]
    if not comments or KeptApproval.of(comments[0], kept.approval) != kept:
        raise CommandError(
            f"the report on pull request {pull} was changed or deleted after it was written: "
            "who merged may have read another one.",
            "read the report of its run, and run the workflow deploy by hand with its digest.",
        )


def _is_report(repository: str, run: int) -> bool:
    """Return whether a run is one of the workflow that reports, as it is on the main branch."""
    workflow_run = gh.read(f"repos/{repository}/actions/runs/{run}")[0]
    return (
        str(workflow_run.get("path")).partition("@")[0] == WORKFLOW
        and workflow_run.get("event") == EVENT
        and workflow_run.get("head_branch") == BRANCH
        and (workflow_run.get("repository") or {}).get("full_name") == repository
        and (workflow_run.get("head_repository") or {}).get("full_name") == repository
    )
