"""What an environment's file may say, and how mistakes in it are told."""

from __future__ import annotations

from typing import Any

import pytest

from foundation import config, federation
from foundation.settings import Settings
from infra.errors import ConfigError, Problem

GITHUB = {"owner": "octo-org", "ownerId": "65", "repository": "octo-repo", "repositoryId": "74"}
GOOD: dict[str, Any] = {
    "stack": "prod",
    "project": "acme-ml-prod",
    "region": "us-central1",
    "projectNumber": "109876543210",
    "github": GITHUB,
}


def problems(**changes: Any) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        config.parse(GOOD | changes)
    return list(caught.value.problems)


def test_the_least_is_the_project_and_the_repository() -> None:
    settings = config.parse(GOOD)
    assert settings.state_bucket == "acme-ml-prod-pulumi-state"
    assert settings.environment == "prod"
    assert settings.rotation_days == 90
    assert not settings.is_local


@pytest.mark.parametrize(
    ("changes", "where", "says"),
    [
        ({"githb": {}}, "vertex-training-bootstrap:githb", "did you mean 'github'?"),
        ({"github": GITHUB | {"owner_id": "65"}}, "github.owner_id", "did you mean 'ownerId'?"),
        ({"github": GITHUB | {"ownerId": "octo-org"}}, "github.ownerId", '(got "octo-org")'),
        ({"github": {}}, "github.repositoryId", "missing"),
        ({"project": "Acme"}, "gcp:project", '(got "Acme")'),
        ({"state": {"softDeleteDays": 3}}, "state.softDeleteDays", "greater than or equal to 7"),
        ({"rotationDays": 1}, "rotationDays", "greater than or equal to 2"),
        ({"planReads": ["control"]}, "planReads", "control cannot be listed"),
        ({"labels": {"Team": "ml"}}, "labels.Team", "must be 1 to 63 characters"),
        ({"state": {"bucket": "a"}}, "state.bucket", '(got "a")'),
    ],
)
def test_a_mistake_is_told_with_place_value_and_hint(
    changes: dict[str, Any], where: str, says: str
) -> None:
    told = [str(problem) for problem in problems(**changes)]
    assert any(where in line and says in line for line in told), told
    assert all(line.startswith("Pulumi.prod.yaml: ") for line in told)


def test_all_mistakes_are_told_at_once() -> None:
    assert len(problems(region="mars", github={"owner": "-"}, planReads=["control"])) == 6


def settings(**github: str) -> Settings:
    return config.parse(GOOD | {"github": GITHUB | github})


def test_tokens_are_taken_by_numbers_and_those_that_deploy_from_the_branch_only() -> None:
    assert federation.condition(settings()) == (
        "assertion.repository_owner_id == '65' && assertion.repository_id == '74' && "
        "(assertion.sub != 'repo:octo-org/octo-repo:environment:prod' || "
        "assertion.ref == 'refs/heads/main')"
    )


def test_pull_requests_and_nights_plan_and_the_environment_deploys() -> None:
    other = settings(environment="production", branch="release")
    assert federation.deploys(other) == "repo:octo-org/octo-repo:environment:production"
    assert federation.plans(other) == (
        "repo:octo-org/octo-repo:pull_request",
        "repo:octo-org/octo-repo:ref:refs/heads/release",
    )


@pytest.mark.parametrize("text", ["a' || true || '", "o'r", 'o"r', "a b", "a)"])
def test_nothing_in_the_file_can_end_a_condition_early(text: str) -> None:
    for key in ("owner", "repository", "branch", "environment", "ownerId", "repositoryId"):
        with pytest.raises(ConfigError):
            settings(**{key: text})
