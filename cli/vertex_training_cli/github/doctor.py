"""The repository's settings, read with ``gh``, against ``docs/bootstrap.md``.

Shapes follow GitHub's REST reference (https://docs.github.com/en/rest, version 2022-11-28). A
setting that cannot be read counts as missing: what nobody can see protects nobody.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.github import gh

BRANCH: Final = "main"
CHECK: Final = "lint, types, tests"
#: Environments, and whether somebody must approve a deployment to it.
ENVIRONMENTS: Final[Mapping[str, bool]] = {
    "dev": False,
    "dev-images": False,
    "dev-plan": False,
    "prod": True,
    "prod-plan": False,
}

_DEPLOYS: Final = (
    "PULUMI_BACKEND_URL",
    "GCP_WORKLOAD_IDENTITY_PROVIDER",
    "GCP_DEPLOY_SERVICE_ACCOUNT",
)
#: Variables of an environment, without the stack at their end, by what it is for.
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "": _DEPLOYS,
    "plan": (*_DEPLOYS, "GCP_PLAN_SERVICE_ACCOUNT"),
    "images": ("GCP_WORKLOAD_IDENTITY_PROVIDER",),
}

Document = Mapping[str, Any]


class SettingStatus(enum.StrEnum):
    """What is known of a setting."""

    OK = enum.auto()
    MISSING = enum.auto()
    UNREADABLE = enum.auto()


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting and its state."""

    where: str
    """As in the first column of ``docs/bootstrap.md``."""
    what: str
    state: SettingStatus
    detail: str = ""
    """What was found instead, or why it could not be read."""

    def as_dict(self) -> dict[str, str]:
        """For ``--format json``."""
        return {
            "where": self.where,
            "setting": self.what,
            "state": str(self.state),
            "detail": self.detail,
        }


def examine(
    repository: str,
    read: Callable[[str], list[Any]] = gh.read,
    environments: Mapping[str, bool] = ENVIRONMENTS,
    check: str = CHECK,
) -> list[Setting]:
    """Every setting of ``docs/bootstrap.md``; ``read`` asks GitHub's API for one path.

    ``environments``: those that are expected, and whether somebody must approve a deployment to
    them. ``check`` is the job that must pass before a merge.
    """
    base = f"repos/{repository}"
    found: list[Setting] = []
    for where, judge, path in (
        (f"ruleset of `{BRANCH}`", partial(_branch, check), f"{base}/rules/branches/{BRANCH}"),
        ("repository", _repository, base),
        ("repository", _reporting, f"{base}/private-vulnerability-reporting"),
        ("CODEOWNERS", _owners, f"{base}/codeowners/errors"),
        ("Actions, general", _actions, f"{base}/actions/permissions"),
        ("Actions, general", _workflow_token, f"{base}/actions/permissions/workflow"),
        ("Actions, general", _forks, f"{base}/actions/permissions/fork-pr-contributor-approval"),
    ):
        found += _read(where, judge, path, read)
    for name, reviewed in environments.items():
        found += _environment(name, reviewed, base, read)
    private = [s for s in found if s.what == PRIVATE and s.state is SettingStatus.OK]
    if private:
        path = f"{base}/actions/permissions/fork-pr-workflows-private-repos"
        found += _read("Actions, general", _private_forks, path, read)
    return [setting for setting in found if setting.what != PRIVATE]


#: Not a setting to judge: whether the repository is private.
PRIVATE: Final = "private"


def _read(
    where: str,
    judge: Callable[[str, list[Any]], Iterator[Setting]],
    path: str,
    read: Callable[[str], list[Any]],
) -> list[Setting]:
    try:
        return list(judge(where, read(path)))
    except CommandError as error:
        return [Setting(where, path, SettingStatus.UNREADABLE, str(error))]
    except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        detail = f"an answer of another form ({type(error).__name__})"
        return [Setting(where, path, SettingStatus.UNREADABLE, detail)]


def _is(where: str, what: str, good: object, detail: str = "") -> Setting:
    if good:
        return Setting(where, what, SettingStatus.OK)
    return Setting(where, what, SettingStatus.MISSING, detail)


def _branch(check: str, where: str, rules: list[Any]) -> Iterator[Setting]:
    """https://docs.github.com/en/rest/repos/rules#get-rules-for-a-branch"""
    by_type: dict[str, list[Document]] = {}
    for rule in rules:
        by_type.setdefault(rule["type"], []).append(rule.get("parameters") or {})
    reviews = by_type.get("pull_request", [])
    yield _is(where, "a pull request before merging", reviews)
    for key, what in (
        ("required_approving_review_count", "one approval"),
        ("require_code_owner_review", "approval of the code owners"),
        ("dismiss_stale_reviews_on_push", "a new push dismisses approvals"),
        ("require_last_push_approval", "the last push is approved by somebody else"),
    ):
        yield _is(where, what, any(review.get(key) for review in reviews))
    checks = by_type.get("required_status_checks", [])
    names = [c["context"] for each in checks for c in each["required_status_checks"]]
    yield _is(where, f"the check `{check}` passes", check in names, f"required: {names}")
    strict = any(each.get("strict_required_status_checks_policy") for each in checks)
    yield _is(where, "the branch is up to date", strict)
    yield _is(where, "no force push", "non_fast_forward" in by_type)
    yield _is(where, "no deletion", "deletion" in by_type)


def _repository(where: str, answer: list[Any]) -> Iterator[Setting]:
    """https://docs.github.com/en/rest/repos/repos#get-a-repository"""
    [repository] = answer
    yield _is(where, PRIVATE, repository["private"])
    given = repository.get("security_and_analysis") or {}
    for key, what in (
        ("secret_scanning", "secret scanning"),
        ("secret_scanning_push_protection", "push protection of secret scanning"),
    ):
        on = (given.get(key) or {}).get("status") == "enabled"
        yield _is(where, what, on, "off, or only administrators see it")


def _reporting(where: str, answer: list[Any]) -> Iterator[Setting]:
    """What ``SECURITY.md`` asks people to use."""
    [given] = answer
    yield _is(where, "private reporting of vulnerabilities", given["enabled"] is True)


def _owners(where: str, answer: list[Any]) -> Iterator[Setting]:
    """https://docs.github.com/en/rest/repos/repos#list-codeowners-errors"""
    wrong = [f"line {e['line']}: {e['kind']}" for page in answer for e in page["errors"]]
    yield _is(where, "every owner exists and may write", not wrong, "; ".join(wrong))


def _actions(where: str, answer: list[Any]) -> Iterator[Setting]:
    """https://docs.github.com/en/rest/actions/permissions"""
    [given] = answer
    pinned = given.get("sha_pinning_required")
    yield _is(where, "actions pinned to a full commit", pinned)
    allowed = given.get("allowed_actions")
    detail = "every action of every repository may run"
    yield _is(where, "allowed actions are listed", allowed in ("selected", "local_only"), detail)


def _workflow_token(where: str, answer: list[Any]) -> Iterator[Setting]:
    [given] = answer
    token = given["default_workflow_permissions"]
    yield _is(where, "token of workflows read-only", token == "read", token)
    approves = given["can_approve_pull_request_reviews"]
    yield _is(where, "no approvals by Actions", approves is False)


def _forks(where: str, answer: list[Any]) -> Iterator[Setting]:
    [given] = answer
    policy = given["approval_policy"]
    what = "approval for workflows of all outside collaborators"
    yield _is(where, what, policy == "all_external_contributors", policy)


def _private_forks(where: str, answer: list[Any]) -> Iterator[Setting]:
    [given] = answer
    what = "write tokens are not sent to workflows from pull requests of forks"
    yield _is(where, what, given["send_write_tokens_to_workflows"] is False)
    what = "secrets are not sent to workflows from pull requests of forks"
    yield _is(where, what, given["send_secrets_and_variables"] is False)


def _environment(
    name: str, reviewed: bool, base: str, read: Callable[[str], list[Any]]
) -> list[Setting]:
    """https://docs.github.com/en/rest/deployments/environments"""
    where, path = f"environment `{name}`", f"{base}/environments/{name}"

    def judge(_: str, answer: list[Any]) -> Iterator[Setting]:
        [given] = answer
        rules = {rule["type"]: rule for rule in given["protection_rules"]}
        policy = given.get("deployment_branch_policy") or {}
        if policy.get("custom_branch_policies"):
            yield from _read(where, _only_branch, f"{path}/deployment-branch-policies", read)
        else:
            yield Setting(where, f"only the branch `{BRANCH}`", SettingStatus.MISSING, "any branch")
        if reviewed:
            reviewers = rules.get("required_reviewers") or {}
            yield _is(where, "required reviewers", reviewers.get("reviewers"))
            yield _is(where, "no self-review", reviewers.get("prevent_self_review"))
            bypass = given.get("can_admins_bypass", True)
            yield _is(where, "administrators do not bypass", not bypass)
        yield from _read(where, _variables(name), f"{path}/variables", read)

    return _read(where, judge, path, read)


def _only_branch(where: str, answer: list[Any]) -> Iterator[Setting]:
    names = [policy["name"] for page in answer for policy in page["branch_policies"]]
    yield _is(where, f"only the branch `{BRANCH}`", names == [BRANCH], f"allowed: {names}")


def _variables(name: str) -> Callable[[str, list[Any]], Iterator[Setting]]:
    """The variables that only administrators change: those of the environment."""
    stack, _, purpose = name.partition("-")
    wanted = {f"{variable}_{stack.upper()}" for variable in VARIABLES[purpose]}

    def judge(where: str, answer: list[Any]) -> Iterator[Setting]:
        names = {variable["name"] for page in answer for variable in page["variables"]}
        missing = sorted(wanted - names)
        what = "variables of its own, which only administrators change"
        yield _is(where, what, not missing, f"missing: {', '.join(missing)}")

    return judge


def as_text(repository: str, settings: list[Setting]) -> str:
    """A line a setting, then a line that counts."""
    mark = {
        SettingStatus.OK: "ok     ",
        SettingStatus.MISSING: "missing",
        SettingStatus.UNREADABLE: "unknown",
    }
    lines = [
        f"{mark[s.state]}  {s.where}: {s.what}" + (f" ({s.detail})" if s.detail else "")
        for s in settings
    ]
    bad = sum(setting.state is not SettingStatus.OK for setting in settings)
    total = (
        f"{repository}: {len(settings) - bad} of {len(settings)} settings are as docs/bootstrap.md"
    )
    return "\n".join([*lines, f"{total} says."])
