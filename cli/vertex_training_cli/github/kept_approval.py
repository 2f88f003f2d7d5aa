"""What the workflow that reports keeps for the one that deploys: an artifact of its own run.

A comment can be written by every workflow that a branch brings along, in the same name. A run's
artifacts come from that run alone, and GitHub says of a run which workflow of which branch it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import pydantic
from pydantic import BaseModel, ConfigDict

from vertex_training.errors import ApprovalParseError, CommandError
from vertex_training_cli.deploy.approval import Approval
from vertex_training_cli.github import artifact, gh

#: The workflow that reports. On this event GitHub runs it as it is on the default branch.
WORKFLOW: Final = ".github/workflows/report.yml"
EVENT: Final = "workflow_run"
BRANCH: Final = "main"
FILE: Final = "approval.json"
#: So many artifacts of the name are looked at, from the newest on: others may have it, too.
_MOST: Final = 30


class KeptApproval(BaseModel):
    """What merging a pull request approves, and the comment that a person read before."""

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
        """For a comment as GitHub answers it."""
        return cls(
            comment=comment["id"],
            updated_at=comment["updated_at"],
            body=hashlib.sha256(comment["body"].encode()).hexdigest(),
            approval=approval,
        )


def name_of(stack: str, pull: int) -> str:
    """Name of the artifact."""
    return f"approval-{stack}-{pull}"


def find(repository: str, stack: str, pull: int) -> KeptApproval | None:
    """What the newest report on a pull request kept; None if no report did.

    Raises:
        CommandError: GitHub could not be asked.
        ApprovalParseError: what was kept is damaged.
    """
    name = name_of(stack, pull)
    pages = gh.read(f"repos/{repository}/actions/artifacts?name={name}&per_page=100")
    listed = [each for page in pages for each in page.get("artifacts") or ()]
    for each in sorted(listed, key=lambda one: one["id"], reverse=True)[:_MOST]:
        run = int((each.get("workflow_run") or {}).get("id") or 0)
        if each.get("expired") or each.get("name") != name or not _is_report(repository, run):
            continue
        content = artifact.read_file(artifact.download(repository, run, name), FILE)
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
    found = [each for each in listed if each["id"] == kept.comment]
    if not found or KeptApproval.of(found[0], kept.approval) != kept:
        raise CommandError(
            f"the report on pull request {pull} was changed or deleted after it was written: "
            "who merged may have read another one.",
            "read the report of its run, and run the workflow deploy by hand with its digest.",
        )


def _is_report(repository: str, run: int) -> bool:
    """Whether a run is one of the workflow that reports, as it is on the main branch."""
    found = gh.read(f"repos/{repository}/actions/runs/{run}")[0]
    return (
        str(found.get("path")).partition("@")[0] == WORKFLOW
        and found.get("event") == EVENT
        and found.get("head_branch") == BRANCH
        and (found.get("repository") or {}).get("full_name") == repository
        and (found.get("head_repository") or {}).get("full_name") == repository
    )
