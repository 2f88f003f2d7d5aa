"""`vt github doctor` against a stand-in for ``gh`` that answers as GitHub's reference shows."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from vertex_training.errors import CommandError
from vertex_training_cli.cli import app
from vertex_training_cli.github.doctor import SettingStatus, as_text, examine
from vertex_training_cli.init import manifest

ROOT = Path(__file__).resolve().parents[4]

Answers = dict[str, Any]
NAMES = ("dev", "dev-images", "dev-plan", "prod", "prod-plan")
BRANCHES = {
    "deployment_branch_policy": {"protected_branches": False, "custom_branch_policies": True}
}
#: By path below the repository, as https://docs.github.com/en/rest (2022-11-28) shows them.
GOOD: Answers = {
    "": {
        "private": True,
        "security_and_analysis": {
            "secret_scanning": {"status": "enabled"},
            "secret_scanning_push_protection": {"status": "enabled"},
        },
    },
    "/rules/branches/main": [
        {"type": "deletion"},
        {"type": "non_fast_forward"},
        {
            "type": "pull_request",
            "parameters": {
                "required_approving_review_count": 1,
                "require_code_owner_review": True,
                "dismiss_stale_reviews_on_push": True,
                "require_last_push_approval": True,
            },
        },
        {
            "type": "required_status_checks",
            "parameters": {
                "strict_required_status_checks_policy": True,
                "required_status_checks": [{"context": "lint, types, tests"}],
            },
        },
    ],
    "/private-vulnerability-reporting": {"enabled": True},
    "/codeowners/errors": {"errors": []},
    "/actions/permissions": {
        "enabled": True,
        "allowed_actions": "selected",
        "sha_pinning_required": True,
    },
    "/actions/permissions/workflow": {
        "default_workflow_permissions": "read",
        "can_approve_pull_request_reviews": False,
    },
    "/actions/permissions/fork-pr-contributor-approval": {
        "approval_policy": "all_external_contributors"
    },
    "/actions/permissions/fork-pr-workflows-private-repos": {
        "run_workflows_from_fork_pull_requests": True,
        "send_write_tokens_to_workflows": False,
        "send_secrets_and_variables": False,
        "require_approval_for_fork_pr_workflows": True,
    },
    **{
        f"/environments/{name}": {"name": name, "protection_rules": [], **BRANCHES}
        for name in ("dev", "dev-images", "dev-plan", "prod-plan")
    },
    "/environments/prod": {
        "name": "prod",
        "can_admins_bypass": False,
        "protection_rules": [
            {
                "type": "required_reviewers",
                "prevent_self_review": True,
                "reviewers": [{"type": "Team", "reviewer": {"id": 1}}],
            },
            {"type": "branch_policy"},
        ],
        **BRANCHES,
    },
    **{
        f"/environments/{name}/deployment-branch-policies": {
            "total_count": 1,
            "branch_policies": [{"id": 1, "name": "main", "type": "branch"}],
        }
        for name in NAMES
    },
    **{
        f"/environments/{name}/variables": {
            "total_count": 4,
            "variables": [
                {"name": f"{variable}_{name.partition('-')[0].upper()}", "value": "x"}
                for variable in (
                    "PULUMI_BACKEND_URL",
                    "GCP_WORKLOAD_IDENTITY_PROVIDER",
                    "GCP_DEPLOY_SERVICE_ACCOUNT",
                    "GCP_PLAN_SERVICE_ACCOUNT",
                )
            ],
        }
        for name in NAMES
    },
}
STAND_IN = """#!{python}
import json, sys
answers = json.load(open({file!r}))
path = sys.argv[-1].removeprefix("repos/acme/training")
if path not in answers:
    sys.exit(f"gh: Not Found (HTTP 404): {{path}}")
print(json.dumps(answers[path]))
"""

Doctor = Callable[..., Result]


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Run the command against these answers."""
    gh, file = tmp_path / "bin" / "gh", tmp_path / "answers.json"
    gh.parent.mkdir()
    gh.write_text(STAND_IN.format(python=sys.executable, file=str(file)))
    gh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{gh.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)

    def run(answers: Answers, *words: str) -> Result:
        file.write_text(json.dumps(answers))
        return CliRunner().invoke(app, ["github", "doctor", "-R", "acme/training", *words])

    return run


def reader(answers: Answers) -> Callable[[str], list[Any]]:
    """What `gh` would answer, without a process for each path."""

    def read(path: str) -> list[Any]:
        place = path.removeprefix("repos/acme/training")
        if place not in answers:
            raise CommandError(f"Not Found (HTTP 404): {place}")
        found = answers[place]
        return found if isinstance(found, list) else [found]

    return read


def changed(path: str, *keys: Any, value: Any) -> Answers:
    answers = copy.deepcopy(GOOD)
    inside = answers[path]
    for key in keys[:-1]:
        inside = inside[key]
    inside[keys[-1]] = value
    return answers


def test_a_repository_that_has_them_all_is_fine(doctor: Doctor) -> None:
    done = doctor(GOOD)
    assert done.exit_code == 0, done.output
    assert "missing" not in done.stdout
    assert "unknown" not in done.stdout


RULES = "/rules/branches/main"
MAIN = "missing  ruleset of `main`"
ACTIONS = "missing  Actions, general"
PROD = "missing  environment `prod`"
OWN = "variables of its own, which only administrators change"
FORKS = "/actions/permissions/fork-pr-workflows-private-repos"


def review(key: str, value: Any) -> Answers:
    return changed(RULES, 2, "parameters", key, value=value)


@pytest.mark.parametrize(
    ("answers", "lines"),
    [
        (changed(RULES, 2, "type", value="creation"), [
            f"{MAIN}: a pull request before merging",
            f"{MAIN}: one approval",
            f"{MAIN}: approval of the code owners",
            f"{MAIN}: a new push dismisses approvals",
            f"{MAIN}: the last push is approved by somebody else",
        ]),
        (review("required_approving_review_count", 0), [f"{MAIN}: one approval"]),
        (review("require_code_owner_review", False), [f"{MAIN}: approval of the code owners"]),
        (review("dismiss_stale_reviews_on_push", False),
         [f"{MAIN}: a new push dismisses approvals"]),
        (review("require_last_push_approval", False),
         [f"{MAIN}: the last push is approved by somebody else"]),
        (changed(RULES, 3, "parameters", "required_status_checks", value=[{"context": "x"}]),
         [f"{MAIN}: the check `lint, types, tests` passes (required: ['x'])"]),
        (changed(RULES, 3, "parameters", "strict_required_status_checks_policy", value=False),
         [f"{MAIN}: the branch is up to date"]),
        (changed(RULES, 0, "type", value="creation"), [f"{MAIN}: no deletion"]),
        (changed(RULES, 1, "type", value="creation"), [f"{MAIN}: no force push"]),
        (changed("", "security_and_analysis", "secret_scanning", "status", value="disabled"),
         ["missing  repository: secret scanning (off, or only administrators see it)"]),
        (changed("", "security_and_analysis", "secret_scanning_push_protection", value=None), [
            "missing  repository: push protection of secret scanning "
            "(off, or only administrators see it)",
        ]),
        (changed("", "security_and_analysis", value=None), [
            "missing  repository: secret scanning (off, or only administrators see it)",
            "missing  repository: push protection of secret scanning "
            "(off, or only administrators see it)",
        ]),
        (changed("/private-vulnerability-reporting", "enabled", value=False),
         ["missing  repository: private reporting of vulnerabilities"]),
        (changed("/codeowners/errors", "errors", value=[
            {"line": 3, "kind": "Unknown owner"}, {"line": 5, "kind": "Invalid pattern"}]),
         ["missing  CODEOWNERS: every owner exists and may write "
          "(line 3: Unknown owner; line 5: Invalid pattern)"]),
        (changed("/actions/permissions", "sha_pinning_required", value=False),
         [f"{ACTIONS}: actions pinned to a full commit"]),
        (changed("/actions/permissions", "allowed_actions", value="all"),
         [f"{ACTIONS}: allowed actions are listed "
          "(every action of every repository may run)"]),
        (changed("/actions/permissions", "allowed_actions", value="local_only"), []),
        (changed("/actions/permissions/workflow", "default_workflow_permissions", value="write"),
         [f"{ACTIONS}: token of workflows read-only (write)"]),
        (changed("/actions/permissions/workflow", "can_approve_pull_request_reviews", value=True),
         [f"{ACTIONS}: no approvals by Actions"]),
        (changed("/actions/permissions/fork-pr-contributor-approval", "approval_policy",
                 value="first_time_contributors"),
         [f"{ACTIONS}: approval for workflows of all outside collaborators "
          "(first_time_contributors)"]),
        (changed(FORKS, "send_write_tokens_to_workflows", value=True),
         [f"{ACTIONS}: write tokens are not sent to workflows from pull requests of forks"]),
        (changed(FORKS, "send_secrets_and_variables", value=True),
         [f"{ACTIONS}: secrets are not sent to workflows from pull requests of forks"]),
        (changed("/environments/prod", "protection_rules", 0, "prevent_self_review", value=False),
         [f"{PROD}: no self-review"]),
        (changed("/environments/prod", "protection_rules", 0, "reviewers", value=[]),
         [f"{PROD}: required reviewers"]),
        (changed("/environments/prod", "protection_rules", value=[]),
         [f"{PROD}: required reviewers", f"{PROD}: no self-review"]),
        (changed("/environments/prod", "can_admins_bypass", value=True),
         [f"{PROD}: administrators do not bypass"]),
        (changed("/environments/dev", "deployment_branch_policy", value=None),
         ["missing  environment `dev`: only the branch `main` (any branch)"]),
        (changed("/environments/dev", "deployment_branch_policy", value={
            "protected_branches": True, "custom_branch_policies": False}),
         ["missing  environment `dev`: only the branch `main` (any branch)"]),
        (changed("/environments/dev/deployment-branch-policies", "branch_policies",
                 value=[{"name": "*"}]),
         ["missing  environment `dev`: only the branch `main` (allowed: ['*'])"]),
        (changed("/environments/dev/deployment-branch-policies", "branch_policies",
                 value=[{"name": "main"}, {"name": "topic"}]),
         ["missing  environment `dev`: only the branch `main` (allowed: ['main', 'topic'])"]),
        (changed("/environments/prod/variables", "variables", value=[]),
         [f"{PROD}: {OWN} (missing: GCP_DEPLOY_SERVICE_ACCOUNT_PROD, "
          "GCP_WORKLOAD_IDENTITY_PROVIDER_PROD, PULUMI_BACKEND_URL_PROD)"]),
        (changed("/environments/dev-plan/variables", "variables", value=[]),
         [f"missing  environment `dev-plan`: {OWN} (missing: GCP_DEPLOY_SERVICE_ACCOUNT_DEV, "
          "GCP_PLAN_SERVICE_ACCOUNT_DEV, GCP_WORKLOAD_IDENTITY_PROVIDER_DEV, "
          "PULUMI_BACKEND_URL_DEV)"]),
        (changed("/environments/dev-images/variables", "variables", value=[]),
         [f"missing  environment `dev-images`: {OWN} "
          "(missing: GCP_WORKLOAD_IDENTITY_PROVIDER_DEV)"]),
        (changed("/environments/dev-images", "deployment_branch_policy", value=None),
         ["missing  environment `dev-images`: only the branch `main` (any branch)"]),
    ],
)  # fmt: skip
def test_a_missing_setting_is_named_and_no_other_one(answers: Answers, lines: list[str]) -> None:
    report = as_text("acme/training", examine("acme/training", reader(answers))).splitlines()
    assert [line for line in report[:-1] if not line.startswith("ok       ")] == lines
    assert report[-1] == (
        f"acme/training: {33 - len(lines)} of 33 settings are as docs/bootstrap.md says."
    )


def test_forks_of_a_public_repository_have_no_settings_of_their_own() -> None:
    answers = changed("", "private", value=False)
    del answers[FORKS]
    report = as_text("acme/training", examine("acme/training", reader(answers)))
    assert report.endswith("acme/training: 31 of 31 settings are as docs/bootstrap.md says.")


def test_what_cannot_be_read_is_said_with_its_path_and_why() -> None:
    answers = copy.deepcopy(GOOD)
    del answers["/codeowners/errors"]
    answers["/actions/permissions/workflow"] = {}
    answers["/environments/dev/variables"] = {"variables": None}
    bad = [s for s in examine("acme/training", reader(answers)) if s.state is not SettingStatus.OK]
    assert as_text("acme/training", bad).splitlines() == [
        "unknown  CODEOWNERS: repos/acme/training/codeowners/errors "
        "(Not Found (HTTP 404): /codeowners/errors)",
        "unknown  Actions, general: repos/acme/training/actions/permissions/workflow "
        "(an answer of another form (KeyError))",
        "unknown  environment `dev`: repos/acme/training/environments/dev/variables "
        "(an answer of another form (TypeError))",
        "acme/training: 0 of 3 settings are as docs/bootstrap.md says.",
    ]


@pytest.mark.parametrize("path", GOOD)
def test_what_cannot_be_read_is_not_called_fine(path: str) -> None:
    for answers in ({k: v for k, v in GOOD.items() if k != path}, GOOD | {path: {"other": 1}}):
        settings = examine("acme/training", reader(answers))
        assert {setting.state for setting in settings} - {SettingStatus.OK}, path


def test_the_command_fails_if_a_setting_is_missing_or_cannot_be_read(doctor: Doctor) -> None:
    answers = changed("/actions/permissions", "sha_pinning_required", value=False)
    del answers["/codeowners/errors"]
    done = doctor(answers)
    assert done.exit_code == 1
    assert "missing  Actions, general: actions pinned to a full commit" in done.stdout
    assert "HTTP 404" in next(line for line in done.stdout.splitlines() if "unknown" in line)
    assert "Traceback" not in done.output


def test_as_json_it_has_the_same_settings(doctor: Doctor) -> None:
    done = doctor(
        changed("/actions/permissions", "sha_pinning_required", value=False), "-f", "json"
    )
    assert done.exit_code == 1
    assert done.stdout.startswith('[\n  {\n    "')
    settings = json.loads(done.stdout)
    assert len(settings) == 33
    assert [setting for setting in settings if setting["state"] != "ok"] == [
        {
            "where": "Actions, general",
            "setting": "actions pinned to a full commit",
            "state": "missing",
            "detail": "",
        }
    ]


@pytest.mark.parametrize("name", ["", "training", "a/b/c", "../x", "acme/training?x=1"])
def test_a_wrong_repository_is_wrong_usage(
    doctor: Doctor, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert CliRunner().invoke(app, ["github", "doctor", "-R", name]).exit_code == 2


def test_without_gh_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(app, ["github", "doctor", "-R", "acme/training"])
    assert done.exit_code == 1
    assert "https://cli.github.com" in done.stderr
    assert done.stdout == ""


def test_the_page_names_every_setting_that_is_examined(doctor: Doctor) -> None:
    page = (ROOT / "docs" / "bootstrap.md").read_text()
    settings = json.loads(doctor(GOOD, "-f", "json").stdout)
    for where in {setting["where"] for setting in settings}:
        assert f"| {where} |" in page, where


def test_a_repository_of_its_own_expects_its_own_environments(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of ``vt init`` has no prod, and its check has another name."""
    ids = ("--project", "acme-ml-dev", "--number", "210987654321")
    assert CliRunner().invoke(app, ["init", str(tmp_path / "own"), *ids]).exit_code == 0
    monkeypatch.chdir(tmp_path / "own")
    done = doctor(GOOD)
    assert "check `check and test` passes (required: ['lint, types, tests'])" in done.stdout
    assert "environment `dev-plan`" in done.stdout
    assert "prod" not in done.stdout
    assert "dev-images" not in done.stdout
    workflow = (tmp_path / "own/.github/workflows/check.yml").read_text()
    assert f"name: {manifest.CHECK}\n" in workflow
