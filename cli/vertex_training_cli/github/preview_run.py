"""The run of a preview that a report is about: what GitHub says of it, never what it uploaded."""

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
from vertex_training_cli.review import markdown, report
from vertex_training_cli.review.report import ReviewOutcome, ReviewReport

#: The workflow whose runs are reported on.
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
        """Return the run that an event ``workflow_run`` is about.

        Raises:
            CommandError: it is another event, or another run than that of a pull request's preview.
        """
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
            raise CommandError("this workflow does not run after a preview.") from None
        if kind != "pull_request" or path != WORKFLOW:
            raise CommandError("the run before was not the preview of a pull request.")
        return preview_run

    @property
    def may_approve(self) -> bool:
        """Return whether merging may approve: not for forks and Dependabot, which never sign in."""
        return self.head_repository == self.repository and DEPENDABOT not in self.actors

    def find_pull(self) -> Mapping[str, Any] | None:
        """The open pull request of the run's commit to the default branch; None if there is none.

        None as well if another commit was pushed since: that one's run tells about it.
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
        """``record``, which the run made, with what is known better here.

        ``digest`` was computed from the plan that the report shows. The content is the merge that
        GitHub made of the pull request. Backend and accounts are those of ``env``, the variables of
        this job; the rest of the target is in the commit, and compared when it is deployed.

        Raises:
            ApprovalParseError: it is not for this plan or this content.
        """
        if record.report != digest:
            raise ApprovalParseError("its digest is not that of the plan in the report")
        merge = str(pull.get("merge_commit_sha") or "")
        if record.commit != merge:
            raise ApprovalParseError("its commit is not what GitHub would merge now")
        commit = gh.read(f"repos/{self.repository}/git/commits/{merge}")[0]
        parents = [parent.get("sha") for parent in commit.get("parents") or ()]
        if self.head_sha not in parents or (commit.get("tree") or {}).get("sha") != record.tree:
            raise ApprovalParseError("its content is not that of the commit")
        known = {
            "backend": env.get(BACKEND, ""),
            "deploy_account": env.get(DEPLOY_ACCOUNT, ""),
            "identity_provider": env.get(IDENTITY_PROVIDER, ""),
            "redirects": {},  # variables of the job that deploys have none either
        }
        if not known["backend"]:
            raise ApprovalParseError(f"{BACKEND} is not set, so its target is not known")
        target = record.target.model_copy(update=known)
        if any(redact(text) != text for text in (*target.settings.values(), *target.settings)):
            raise ApprovalParseError("its target has what looks like a secret")
        return record.model_copy(update={"target": target})


@dataclass(frozen=True, slots=True)
class PreviewComment:
    """Comment on a pull request, and the approval that merging it gives."""

    text: str
    approval: Approval | None = None
    reason: str = ""
    """Reason why it approves nothing, or why there is no report; for the log."""
    is_refused: bool = False
    """True if the artifact is not what a preview uploads."""


def make_comment(
    run: PreviewRun, pull: Mapping[str, Any], stack: str, env: Mapping[str, str]
) -> PreviewComment:
    """Return the comment for ``stack`` of a run that has ended, whatever it uploaded.

    Raises:
        CommandError: GitHub could not be asked.
    """
    try:
        archive = gh.artifact_of(run.repository, run.id, f"report-{stack}")
        content = gh.read_file(archive, f"{stack}.plan")
        if content is None:
            raise ArtifactError("the artifact has no plan.")
        rendered, text = _render(content, stack)
        record = gh.read_file(archive, f"{stack}.approval.json")
    except (ArtifactError, PreviewParseError) as refused:
        reason = f"there is no report of {stack}: {refused}"
        text = f"## Review of stack `{stack}`\n\nThis preview has no report: {refused}\n"
        return PreviewComment(text, reason=reason, is_refused=True)
    try:
        approval = _approval(record, run, pull, rendered, env)
    except ApprovalParseError as reason:
        text += f"\nMerging approves nothing: {reason}.\n"
        return PreviewComment(text, reason=f"merging approves nothing: {reason}")
    return PreviewComment(text, approval)


def _render(content: bytes, stack: str) -> tuple[ReviewReport, str]:
    """Return the report of a plan, and its text.

    Raises:
        PreviewParseError: it is no plan of ``stack``, or none that can be rendered.
    """
    parsed = plan_file.parse(content, stack)
    try:
        review_report = report.build(parsed.plan, source=parsed.source, problems=parsed.problems)
        return review_report, markdown.render(review_report)
    except Exception:
        # Values of other types than the engine's lead anywhere; none of it may be quoted.
        raise PreviewParseError("its plan has values that no preview has") from None


def _approval(
    record: bytes | None,
    run: PreviewRun,
    pull: Mapping[str, Any],
    review: ReviewReport,
    env: Mapping[str, str],
) -> Approval:
    """Return what merging approves.

    Raises:
        ApprovalParseError: nothing.
    """
    if not run.may_approve:
        raise ApprovalParseError("the pull request is of a fork or of Dependabot")
    if review.is_offline:
        raise ApprovalParseError("the report was made offline, against an empty state")
    if review.outcome is not ReviewOutcome.CLEAN:
        raise ApprovalParseError("something stands against the plan")
    if record is None:
        raise ApprovalParseError("the run has recorded no approval")
    try:
        claimed = parse_approval(record.decode("utf-8"))
    except (UnicodeDecodeError, ApprovalParseError, RecursionError):
        raise ApprovalParseError("the run's record is damaged") from None
    if claimed.stack != review.stack:
        raise ApprovalParseError("the run's record is for another stack")
    return run.verified_approval(claimed, pull, review.digest, env)
