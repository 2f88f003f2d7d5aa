"""The workflow run of a preview. Its properties are from GitHub's API: uploads are not trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from vertex_training.errors import (
    ApprovalParseError,
    ArtifactError,
    CommandError,
    PreviewParseError,
)
from vertex_training_cli.deploy.approval import (
    DEPLOY_ACCOUNT,
    IDENTITY_PROVIDER,
    Approval,
    parse_approval,
)
from vertex_training_cli.engine import plan_file
from vertex_training_cli.engine.pulumi_cli import BACKEND
from vertex_training_cli.engine.values import redact
from vertex_training_cli.github import gh
from vertex_training_cli.review import formats, report
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

#: Path of the workflow that runs the preview.
WORKFLOW: Final = ".github/workflows/preview.yml"
DEPENDABOT: Final = "dependabot[bot]"


@dataclass(frozen=True, slots=True)
class PreviewRun:
    """A run of the preview workflow for a pull request."""

    repository: str
    id: int
    head_sha: str
    head_branch: str
    head_repository: str
    default_branch: str
    actors: tuple[str, ...]

    @classmethod
    def of_event(cls, event: Mapping[str, Any], repository: str) -> PreviewRun:
        """Return the run in an event ``workflow_run``. Raises CommandError."""
        try:
            run = event["workflow_run"]
            preview_run = cls(
                repository=repository,
                id=int(run["id"]),
                head_sha=str(run["head_sha"]),
                head_branch=str(run["head_branch"]),
                head_repository=str((run.get("head_repository") or {}).get("full_name", "")),
                default_branch=str(event["repository"]["default_branch"]),
                actors=tuple(
                    str((run.get(key) or {}).get("login", ""))
                    for key in ("actor", "triggering_actor")
                ),
            )
            kind, path = run["event"], run["path"].partition("@")[0]
        except (KeyError, TypeError, ValueError, AttributeError):
            raise CommandError("the event is not a workflow_run event of a preview.") from None
        if kind != "pull_request" or path != WORKFLOW:
            raise CommandError(f"the run is not a run of {WORKFLOW} on a pull request.")
        return preview_run

    @property
    def may_approve(self) -> bool:
        """Return True if a merge can approve. Runs of forks and Dependabot have no credentials."""
        return self.head_repository == self.repository and DEPENDABOT not in self.actors

    def find_pull(self) -> Mapping[str, Any] | None:
        """Return the open pull request of the run's commit to the default branch.

        Return None without such a request, and after a later commit, which has another run.
        """
        owner = self.head_repository.partition("/")[0]
        head = quote(f"{owner}:{self.head_branch}", safe="")
        pulls = gh.read(f"repos/{self.repository}/pulls?state=open&head={head}&per_page=100")
        for pull in pulls:
            source, base = pull.get("head") or {}, pull.get("base") or {}
            if (
                source.get("sha") == self.head_sha
                and (source.get("repo") or {}).get("full_name") == self.head_repository
                and base.get("ref") == self.default_branch
            ):
                return gh.read(f"repos/{self.repository}/pulls/{int(pull['number'])}")[0]
        return None

    def verified_approval(
        self, record: Approval, pull: Mapping[str, Any], digest: str, env: Mapping[str, str]
    ) -> Approval:
        """Return the run's ``record`` with values from GitHub and from the variables ``env``.

        ``digest`` is the digest of the plan in the report. The rest of the target is in GitHub's
        merge commit, and is compared at the deployment. Raises ApprovalParseError.
        """
        if record.report != digest:
            raise ApprovalParseError(
                "the record's digest differs from the digest of the plan in the report"
            )
        merge = str(pull.get("merge_commit_sha") or "")
        if record.commit != merge:
            raise ApprovalParseError(
                "the record's commit differs from GitHub's current merge commit"
            )
        commit = gh.read(f"repos/{self.repository}/git/commits/{merge}")[0]
        parents = [parent.get("sha") for parent in commit.get("parents") or ()]
        if self.head_sha not in parents or (commit.get("tree") or {}).get("sha") != record.tree:
            raise ApprovalParseError("the record's content differs from the commit")
        known = {
            "backend": env.get(BACKEND, ""),
            "deploy_account": env.get(DEPLOY_ACCOUNT, ""),
            "identity_provider": env.get(IDENTITY_PROVIDER, ""),
            "redirects": {},  # the deploying job has no redirects
        }
        if not known["backend"]:
            raise ApprovalParseError(f"{BACKEND} is not set, so the deployment target is unknown")
        target = record.target.model_copy(update=known)
        if any(redact(text) != text for text in (*target.settings.values(), *target.settings)):
            raise ApprovalParseError("the record's target may contain a secret")
        return record.model_copy(update={"target": target})


@dataclass(frozen=True, slots=True)
class PreviewComment:
    """A comment on a pull request, and the approval that the merge gives."""

    text: str
    approval: Approval | None = None
    reason: str = ""
    """Text for the log: the reason for a missing approval or report."""
    is_refused: bool = False
    """True if the artifact is not from a preview."""


def make_comment(
    run: PreviewRun, pull: Mapping[str, Any], stack: str, env: Mapping[str, str]
) -> PreviewComment:
    """Return the comment for ``stack`` about an ended run and its uploads. Raises CommandError."""
    try:
        archive = gh.artifact_of(run.repository, run.id, f"report-{stack}")
        content = gh.read_file(archive, f"{stack}.plan")
        if content is None:
            raise ArtifactError(f"the artifact has no {stack}.plan.")
        rendered, text = _render(content, stack)
        record = gh.read_file(archive, f"{stack}.approval.json")
    except (ArtifactError, PreviewParseError) as refused:
        reason = f"the preview of {stack} has no report: {refused}"
        text = f"## Review of stack `{stack}`\n\nThis preview has no report: {refused}\n"
        return PreviewComment(text, reason=reason, is_refused=True)
    try:
        approval = _approval(record, run, pull, rendered, env)
    except ApprovalParseError as reason:
        text += f"\nA merge does not approve this plan: {reason}.\n"
        return PreviewComment(text, reason=f"a merge does not approve this plan: {reason}")
    return PreviewComment(text, approval)


def _render(content: bytes, stack: str) -> tuple[ReviewReport, str]:
    """Return the report of a plan, and its text. Raises PreviewParseError."""
    parsed = plan_file.parse(content, stack)
    try:
        review_report = report.build(parsed.plan, source=parsed.source, problems=parsed.problems)
        return review_report, formats.to_markdown(review_report)
    except Exception:
        # Values with unexpected types can cause any error, whose text is not safe to quote.
        raise PreviewParseError("the plan has values with unexpected types") from None


def _approval(
    record: bytes | None,
    run: PreviewRun,
    pull: Mapping[str, Any],
    review: ReviewReport,
    env: Mapping[str, str],
) -> Approval:
    """Return the approval that a merge of the pull request gives. Raises ApprovalParseError."""
    if not run.may_approve:
        raise ApprovalParseError("the pull request is from a fork or Dependabot")
    if review.is_offline:
        raise ApprovalParseError("the preview was offline and started from an empty state")
    if review.outcome is not ReviewOutcome.CLEAN:
        raise ApprovalParseError("the review does not allow the deployment of this plan")
    if record is None:
        raise ApprovalParseError("the run has no approval record")
    try:
        claimed = parse_approval(record.decode("utf-8"))
    except (UnicodeDecodeError, ApprovalParseError, RecursionError):
        raise ApprovalParseError("the run's approval record is damaged") from None
    if claimed.stack != review.stack:
        raise ApprovalParseError("the run's approval record is for another stack")
    return run.verified_approval(claimed, pull, review.digest, env)
