"""A repository on GitHub: the comment on a pull request, its approval, the issue on drift.

Each text stands in one place, where it is found again and written anew, by a marker that Markdown
does not show. Only what a bot wrote is taken for ours: anybody may write a comment, and put a
marker into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.deploy.approval import Approval
from vertex_training_cli.drift.findings import DriftOutcome
from vertex_training_cli.drift.report import title
from vertex_training_cli.engine.values import redact
from vertex_training_cli.github import gh, kept_approval

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
        if found := find_own(comments, REPORT, stack):
            path = f"repos/{self.name}/issues/comments/{found['id']}"
            return gh.write("PATCH", path, text)
        return gh.write("POST", f"repos/{self.name}/issues/{number}/comments", text)

    def read_approval(self, commit: str, stack: str) -> Approval:
        """What was approved by merging the pull request that ``commit`` came from.

        Raises:
            CommandError: it came from none, or no report on it approves anything.
            ApprovalParseError: the record that a report kept is damaged.
        """
        pulls = gh.read(f"repos/{self.name}/commits/{commit}/pulls?per_page=100")
        merged = [pull for pull in pulls if pull.get("merged_at") and _is_of(pull, commit)]
        if not merged:
            raise CommandError(f"{commit[:12]} did not come from a merged pull request.", BY_HAND)
        number = merged[0]["number"]
        kept = kept_approval.find(self.name, stack, number)
        if kept is None or kept.approval is None:
            what = f"pull request {number} has no preview of {stack} that succeeded."
            raise CommandError(what, BY_HAND)
        kept_approval.ensure_unchanged(self.name, number, kept)
        return kept.approval

    def update_drift_issue(self, stack: str, outcome: DriftOutcome, report: str, run: str) -> str:
        """Open, renew, reopen or close the one issue on drift of ``stack``; what was done.

        A comparison that failed leaves the issue as it is: nothing is known.
        """
        issues = gh.read(f"repos/{self.name}/issues?state=all&labels={DRIFT}&per_page=100")
        found = find_own(issues, DRIFT, stack)
        is_open = found is not None and found["state"] == "open"
        if outcome is DriftOutcome.FAILED or (outcome is DriftOutcome.CLEAN and not is_open):
            return "the issue stays as it is" if found else "there is no issue"
        seen = f"\nLast looked at by {run}\n" if run else ""
        text: dict[str, Any] = {"body": body(DRIFT, stack, report, seen)}
        if found is None:
            # GitHub makes a label that it does not have yet.
            text |= {"title": title(stack), "labels": [DRIFT]}
            return f"opened {gh.write('POST', f'repos/{self.name}/issues', text)['html_url']}"
        text["state"] = "closed" if outcome is DriftOutcome.CLEAN else "open"
        answer = gh.write("PATCH", f"repos/{self.name}/issues/{found['number']}", text)
        verb = "closed" if outcome is DriftOutcome.CLEAN else "renewed" if is_open else "reopened"
        return f"{verb} {answer['html_url']}"


def _is_of(pull: Mapping[str, Any], commit: str) -> bool:
    """Whether merging this pull request made ``commit``: a rebase gives the last of several."""
    return pull.get("merge_commit_sha") == commit


#: The author, for GitHub, of what a workflow writes with its own token.
AUTHOR: Final = "github-actions[bot]"
#: GitHub refuses a longer body, https://docs.github.com/rest/issues/comments: 65,536 characters
MAX_BODY: Final = 65_536


def marker(kind: str, stack: str) -> str:
    """What a text of this kind for this stack begins with."""
    return f"<!-- vt:{kind} {stack} -->"


def body(kind: str, stack: str, *texts: str) -> str:
    """The text as it is stored, with what looks like a secret redacted.

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
