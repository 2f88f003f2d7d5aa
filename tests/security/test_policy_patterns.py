"""Names that look like an allowed one pass no policy."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

import pytest

from tests.policy import cases
from vertex_training.guardrails.policy import Resource, load, matches_path

POLICIES: Final = {policy.id: policy for policy in load()}
DIGEST: Final = "sha256:" + "0" * 64


def violations(
    policy: str, change: dict[str, Any], settings: dict[str, Any] | None = None, stack: str = "prod"
) -> list[str]:
    """What ``policy`` says of the correct job with ``change`` in its jobSpec."""
    job = next(declared for declared in cases.right() if declared.name == "job")
    props = copy.deepcopy(dict(job.props))
    request = json.loads(props["request"])
    request["jobSpec"] |= change
    props["request"] = json.dumps(request)
    return POLICIES[policy].violations(Resource(job.type, job.name, props, stack), settings)


def with_image(image: str, by_tag: list[str] | None = None) -> list[str]:
    pool = {"replicaCount": 1, "containerSpec": {"imageUri": image}}
    settings = None if by_tag is None else {"byTag": by_tag}
    return violations("job-image-by-digest", {"workerPoolSpecs": [pool]}, settings)


@pytest.mark.parametrize(
    "image",
    [
        "evil.example/us-docker.pkg.dev/vertex-ai/training/pytorch:latest",
        "evil.example/x-docker.pkg.dev/vertex-ai/training/pytorch:latest",
        "evil.example:5000/a/b-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest",
        "us-docker.pkg.dev/vertex-ai/training/../../evil/repository/pytorch:latest",
        "us-docker.pkg.dev/vertex-ai/training/x/../evil:latest",
        "us-docker.pkg.dev/vertex-ai/training/./pytorch:latest",
        "us-docker.pkg.dev/vertex-ai/training//pytorch:latest",
        "us-docker.pkg.dev/vertex-ai/training/x%2F..%2Fevil:latest",
        "us-docker.pkg.dev/vertex-ai/training/deeper/pytorch:latest",
        "us-docker.pkg.dev/vertex-ai/training/pytorch\n:latest",
    ],
)
def test_an_image_elsewhere_does_not_pass_as_one_of_googles(image: str) -> None:
    assert with_image(image), image


@pytest.mark.parametrize(
    "image",
    [
        "us-docker.pkg.dev/acme/x/../evil",
        "us-docker.pkg.dev/acme/x/y",
        "us-docker.pkg.dev/acme/..",
        "us-docker.pkg.dev/acme/",
        "evil.example/us-docker.pkg.dev/acme/x",
    ],
)
def test_a_star_of_a_setting_does_not_cross_a_slash(image: str) -> None:
    assert with_image(image, ["us-docker.pkg.dev/acme/*"]), image
    assert with_image("us-docker.pkg.dev/acme/trainer:v1", ["us-docker.pkg.dev/acme/*"]) == []


def test_two_stars_cross_slashes_and_still_no_way_up() -> None:
    assert matches_path("us-docker.pkg.dev/acme/a/b/c:v1", "us-docker.pkg.dev/acme/**")
    assert not matches_path("us-docker.pkg.dev/acme/a/../evil", "us-docker.pkg.dev/acme/**")
    assert not matches_path("us-docker.pkg.dev/acme-evil/a", "us-docker.pkg.dev/acme/**")


@pytest.mark.parametrize(
    "image",
    [
        "evil.example/x@sha256:",
        "evil.example/x@sha256:latest",
        "evil.example/x@sha256:0000",
        f"evil.example/x@{DIGEST}:latest",
        f"evil.example/x@{DIGEST[:-1]}g",
    ],
)
def test_what_only_begins_like_a_digest_is_none(image: str) -> None:
    assert with_image(image), image
    assert with_image(f"us-docker.pkg.dev/acme/training/x@{DIGEST}") == []


@pytest.mark.parametrize(
    "account",
    [
        "trainer-prod@acme-ml-dev.iam.gserviceaccount.com",
        "trainer-prod@evil.iam.gserviceaccount.com",
        "trainer-prod@acme-ml-prod-evil.iam.gserviceaccount.com",
        "trainer-prod@acme-ml-prod.iam.gserviceaccount.com.evil.example",
        "trainer-prod@evil.example",
        "trainer-dev@acme-ml-prod.iam.gserviceaccount.com",
        "trainerprod@acme-ml-prod.iam.gserviceaccount.com",
        "-prod@acme-ml-prod.iam.gserviceaccount.com",
        "ci-deploy-prod@acme-ml-prod.iam.gserviceaccount.com",
        "vt-deploy@acme-ml-prod.iam.gserviceaccount.com",
        "109876543210@cloudservices.gserviceaccount.com",
        "someone@example.com",
        "trainer-prod@acme-ml-prod.iam.gserviceaccount.com\n",
    ],
)
def test_only_an_account_of_the_stack_is_dedicated(account: str) -> None:
    [violation] = violations("job-dedicated-account", {"serviceAccount": account})
    assert "Hint: serviceAccount: ${serviceAccounts.NAME}" in violation


def test_an_account_of_another_stack_or_project_passes_where_a_setting_names_it_in_full() -> None:
    account = "shared@acme-central.iam.gserviceaccount.com"
    named = {"accounts": [account]}
    job = "job-dedicated-account"
    assert violations(job, {"serviceAccount": account})
    assert violations(job, {"serviceAccount": account}, named) == []
    assert violations(job, {"serviceAccount": f"x{account}"}, named)
    default = "109876543210-compute@developer.gserviceaccount.com"
    assert violations(job, {"serviceAccount": default}, {"accounts": [default]})
