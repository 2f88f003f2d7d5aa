"""Clean-up policies that Artifact Registry would refuse are refused here; none is carried out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.localcloud.gcp.harness import Plugin, refused

REPOSITORY = "gcp:artifactregistry/repository:Repository"
MADE = {"repositoryId": "training", "location": "us-central1", "format": "DOCKER"}
PINNED = {"versionNamePrefixes": ["sha256:" + "1" * 64]}


def test_the_policies_that_the_program_declares_are_taken(local: Plugin) -> None:
    local.enable("artifactregistry")
    policies = [
        {"id": "gone", "action": "DELETE", "condition": {"tagState": "UNTAGGED"}},
        {"id": "newest", "action": "KEEP", "mostRecentVersions": {"keepCount": 10}},
        {"id": "pinned", "action": "KEEP", "condition": PINNED},
    ]
    _, outputs = local.create(REPOSITORY, {**MADE, "cleanupPolicies": policies})
    assert len(outputs["cleanupPolicies"]) == 3


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        (
            [
                {
                    "id": "both",
                    "action": "KEEP",
                    "condition": PINNED,
                    "mostRecentVersions": {"keepCount": 1},
                }
            ],
            'cleanup policy "both" has a condition and most_recent_versions',
        ),
        (
            [{"id": "newest", "action": "DELETE", "mostRecentVersions": {"keepCount": 1}}],
            'cleanup policy "newest": most_recent_versions is for KEEP',
        ),
        (
            [{"id": f"p{i}", "action": "KEEP", "condition": PINNED} for i in range(11)],
            "at most 10 cleanup policies",
        ),
    ],
)
def test_policies_that_contradict_themselves_are_refused(
    policies: list[dict[str, Any]], reason: str, local: Plugin
) -> None:
    local.enable("artifactregistry")
    made = {**MADE, "cleanupPolicies": policies}
    assert reason in refused(lambda: local.create(REPOSITORY, made))
