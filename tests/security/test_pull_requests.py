"""Tests what the workflow of an unreviewed pull request can access."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

WORKFLOWS: Final = Path(__file__).resolve().parents[2] / ".github" / "workflows"
NOT_DEPENDABOT: Final = (
    "github.event.pull_request.user.login != 'dependabot[bot]'",
    "github.actor != 'dependabot[bot]'",
)


def workflows() -> dict[str, dict[str, Any]]:
    files = {file.stem: yaml.safe_load(file.read_text()) for file in WORKFLOWS.glob("*.yml")}
    return {name: {**content, "on": content[True]} for name, content in files.items()}


def jobs_of_pull_requests() -> dict[str, dict[str, Any]]:
    return {
        f"{name}/{key}": job
        for name, content in workflows().items()
        if "pull_request" in content["on"]
        for key, job in content["jobs"].items()
    }


def variables(job: dict[str, Any]) -> set[str]:
    return set(re.findall(r"vars\.(\w+)", str(job)))


def signs_in(job: dict[str, Any]) -> bool:
    return job["permissions"].get("id-token") == "write"


@pytest.mark.parametrize("name", jobs_of_pull_requests())
def test_pull_request_workflow_has_no_access_to_prod_or_deploy_accounts(name: str) -> None:
    assert variables(jobs_of_pull_requests()[name]) <= {
        "GCP_WORKLOAD_IDENTITY_PROVIDER_DEV",
        "GCP_PREVIEW_SERVICE_ACCOUNT_DEV",
        "PULUMI_BACKEND_URL_DEV",
    }


def test_pull_request_workflow_signs_in_as_the_preview_account() -> None:
    steps = jobs_of_pull_requests()["preview/preview"]["steps"]
    accounts = [step["with"]["service_account"] for step in steps if "auth@" in str(step)]
    assert accounts == ["${{ vars.GCP_PREVIEW_SERVICE_ACCOUNT_DEV }}"]


@pytest.mark.parametrize("name", [n for n, job in jobs_of_pull_requests().items() if signs_in(job)])
def test_forks_and_dependabot_run_no_job_that_can_sign_in(name: str) -> None:
    condition = jobs_of_pull_requests()[name]["if"]
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition
    for part in NOT_DEPENDABOT:
        assert part in condition


def test_only_one_job_signs_in_and_uses_no_environment() -> None:
    found = [name for name, job in jobs_of_pull_requests().items() if signs_in(job)]
    assert found == ["preview/preview"]
    assert not [job for job in jobs_of_pull_requests().values() if "environment" in job]


def test_report_on_prod_needs_no_cloud_access() -> None:
    jobs = jobs_of_pull_requests()
    offline, preview = jobs["preview/offline"], jobs["preview/preview"]
    assert [step["run"] for step in offline["steps"] if "run" in step] == [
        "make setup",
        "make report",
    ]
    stacks = offline["strategy"]["matrix"]["stack"]
    assert stacks.endswith("""&& '["prod"]' || '["dev", "prod"]') }}""")
    # The one that signs in runs exactly where the offline job leaves dev out.
    assert " ".join(preview["if"].split()) in " ".join(stacks.split())
    assert preview["env"]["STACK"] == "dev"
