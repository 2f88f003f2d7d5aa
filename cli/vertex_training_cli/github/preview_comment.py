"""The comment on a pull request, rendered here of what its preview uploaded as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vertex_training.errors import ApprovalParseError, ArtifactError, PreviewParseError
from vertex_training_cli.deploy.approval import Approval, parse_approval
from vertex_training_cli.deploy.sources import OFFLINE
from vertex_training_cli.engine import plan_file
from vertex_training_cli.github import artifact
from vertex_training_cli.github.preview_run import PreviewRun
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport


@dataclass(frozen=True, slots=True)
class PreviewComment:
    """What is told on a pull request, and what merging it approves."""

    text: str
    approval: Approval | None = None
    reason: str = ""
    """Why it approves nothing, or why there is no report; for the log."""
    is_refused: bool = False
    """Whether the artifact is not what a preview uploads."""


def make(
    run: PreviewRun, pull: Mapping[str, Any], stack: str, env: Mapping[str, str]
) -> PreviewComment:
    """The comment for ``stack`` of a run that has ended, whatever it uploaded.

    Raises:
        CommandError: GitHub could not be asked.
    """
    try:
        archive = artifact.download(run.repository, run.id, f"report-{stack}")
        content = artifact.read_file(archive, f"{stack}.plan")
        if content is None:
            raise ArtifactError("the artifact has no plan.")
        found, text = _render(content, stack)
        record = artifact.read_file(archive, f"{stack}.approval.json")
    except (ArtifactError, PreviewParseError) as refused:
        reason = f"there is no report of {stack}: {refused}"
        text = f"## Review of stack `{stack}`\n\nThis preview has no report: {refused}\n"
        return PreviewComment(text, reason=reason, is_refused=True)
    try:
        approval = _approval(record, run, pull, found, env)
    except ApprovalParseError as reason:
        text += f"\nMerging approves nothing: {reason}.\n"
        return PreviewComment(text, reason=f"merging approves nothing: {reason}")
    return PreviewComment(text, approval)


def _render(content: bytes, stack: str) -> tuple[ReviewReport, str]:
    """The report of a plan, and its text.

    Raises:
        PreviewParseError: it is no plan of ``stack``, or none that can be rendered.
    """
    parsed = plan_file.parse(content, stack)
    try:
        found = report.build(parsed.plan, source=parsed.source, problems=parsed.problems)
        return found, markdown.render(found)
    except Exception:
        # Values of other types than the engine's lead anywhere; none of it may be quoted.
        raise PreviewParseError("its plan has values that no preview has") from None


def _approval(
    record: bytes | None,
    run: PreviewRun,
    pull: Mapping[str, Any],
    found: ReviewReport,
    env: Mapping[str, str],
) -> Approval:
    """What merging approves.

    Raises:
        ApprovalParseError: nothing.
    """
    if not run.may_approve:
        raise ApprovalParseError("the pull request is of a fork or of Dependabot")
    if found.source.startswith(OFFLINE):
        raise ApprovalParseError("the report was made offline, against an empty state")
    if found.outcome is not ReviewOutcome.CLEAN:
        raise ApprovalParseError("something stands against the plan")
    if record is None:
        raise ApprovalParseError("the run has recorded no approval")
    try:
        claimed = parse_approval(record.decode("utf-8"))
    except (UnicodeDecodeError, ApprovalParseError, RecursionError):
        raise ApprovalParseError("the run's record is damaged") from None
    if claimed.stack != found.stack:
        raise ApprovalParseError("the run's record is for another stack")
    return run.verified_approval(claimed, pull, found.digest, env)
