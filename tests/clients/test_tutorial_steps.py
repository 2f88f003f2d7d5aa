"""Steps of published tutorials before and after a job, as they are written, in the local shell.

docs/local-stack.md has a row for each; those about jobs and buckets are in the files beside.
"""

from __future__ import annotations

import pytest

from tests.clients.conftest import PROJECT, TRAINER, Shell

pytestmark = pytest.mark.timeout(600)
MEMBER = f"serviceAccount:{TRAINER}"


@pytest.fixture(scope="module", autouse=True)
def project(shell: Shell) -> None:
    """The project with an account."""
    shell.make_project(TRAINER)


def test_apis_are_enabled_and_listed(shell: Shell, gcloud: str) -> None:
    shell.run("gcloud services enable aiplatform.googleapis.com compute.googleapis.com")
    listed = shell.run(
        'gcloud services list --enabled --filter="name:aiplatform.googleapis.com" '
        '--format="value(config.name)"'
    ).stdout
    assert listed.split() == ["aiplatform.googleapis.com"]
    every = shell.run('gcloud services list --enabled --format="value(config.name)"').stdout
    assert "compute.googleapis.com" in every.split()


def test_the_address_of_an_account_is_found_and_gets_a_role(shell: Shell, gcloud: str) -> None:
    told = shell.run(
        'export SERVICE_ACCOUNT=$(gcloud iam service-accounts list --format="value(email)" '
        "--filter='email:trainer') && echo $SERVICE_ACCOUNT && "
        f"gcloud projects add-iam-policy-binding {PROJECT} "
        '--member="serviceAccount:$SERVICE_ACCOUNT" --role="roles/aiplatform.user"'
    ).stdout
    assert told.split()[0] == TRAINER
    assert f"- {MEMBER}" in told


@pytest.mark.parametrize(
    "step",
    [
        "gcloud compute addresses create r --global --purpose=VPC_PEERING "
        "--prefix-length=16 --network=default",
        f"gcloud artifacts docker images list us-central1-docker.pkg.dev/{PROJECT}/repo/x",
    ],
)
def test_a_step_that_is_not_here_reaches_no_cloud_and_names_the_page(
    shell: Shell, gcloud: str, step: str
) -> None:
    said = shell.run(step, 1).stderr
    assert "there is no method of the local cloud at" in said
    assert "docs/local-stack.md" in said
