"""Tests that names similar to an allowed name do not pass a policy."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.policy import cases
from vertex_training.guardrails.policy import Resource, load, matches_path

POLICIES: Final = {policy.id: policy for policy in load()}
NAMES: Final = yaml.safe_load(Path(__file__).with_name("names.yaml").read_text("utf-8"))
DIGEST: Final = "sha256:" + "0" * 64


def violations(
    policy: str, change: dict[str, Any], settings: dict[str, Any] | None = None, stack: str = "prod"
) -> list[str]:
    """Return the violations of ``policy`` for a valid job with ``change`` in its jobSpec."""
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


@pytest.mark.parametrize("image", NAMES["images"]["not of Google"])
def test_image_elsewhere_does_not_match_a_google_image(image: str) -> None:
    assert with_image(image), image


@pytest.mark.parametrize("image", NAMES["images"]["not of us-docker.pkg.dev/acme/*"])
def test_one_star_of_a_pattern_does_not_match_a_slash(image: str) -> None:
    assert with_image(image, ["us-docker.pkg.dev/acme/*"]), image
    assert with_image("us-docker.pkg.dev/acme/trainer:v1", ["us-docker.pkg.dev/acme/*"]) == []


def test_two_stars_match_slashes_but_no_parent_folder() -> None:
    assert matches_path("us-docker.pkg.dev/acme/a/b/c:v1", "us-docker.pkg.dev/acme/**")
    assert not matches_path("us-docker.pkg.dev/acme/a/../evil", "us-docker.pkg.dev/acme/**")
    assert not matches_path("us-docker.pkg.dev/acme-evil/a", "us-docker.pkg.dev/acme/**")


@pytest.mark.parametrize("image", NAMES["images"]["without a digest"])
def test_text_that_only_begins_like_a_digest_is_refused(image: str) -> None:
    assert with_image(image), image
    assert with_image(f"us-docker.pkg.dev/acme/training/x@{DIGEST}") == []


@pytest.mark.parametrize("account", NAMES["accounts of others"])
def test_only_accounts_of_the_stack_count_as_dedicated(account: str) -> None:
    [violation] = violations("job-dedicated-account", {"serviceAccount": account})
    assert "Hint: set serviceAccount: ${serviceAccounts.NAME}" in violation


def test_foreign_account_passes_only_if_a_setting_names_it_in_full() -> None:
    account = "shared@acme-central.iam.gserviceaccount.com"
    named = {"accounts": [account]}
    job = "job-dedicated-account"
    assert violations(job, {"serviceAccount": account})
    assert violations(job, {"serviceAccount": account}, named) == []
    assert violations(job, {"serviceAccount": f"x{account}"}, named)
    default = "109876543210-compute@developer.gserviceaccount.com"
    assert violations(job, {"serviceAccount": default}, {"accounts": [default]})
