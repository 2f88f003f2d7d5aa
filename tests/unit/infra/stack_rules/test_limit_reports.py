"""Limits that would limit nothing, and members of other domains: whole reports."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.stacks import rows, unjudged
from vertex_training.stack_rules import limits


def told(given: dict[str, Any], **more: Any) -> list[tuple[str, str, str, str]]:
    return rows(limits.problems(unjudged(limits=given, **more)))


LESS = "as much, or less"


@pytest.mark.parametrize(
    ("given", "teams", "found"),
    [
        ({}, {}, []),
        ({"maxUsdPerJob": 1, "maxUsdPerEnvironment": 1}, {}, []),
        ({"maxUsdPerJob": 2, "maxUsdPerEnvironment": 1}, {}, [
            ("limits.maxUsdPerJob", "is more than all jobs together may cost: $1.00", "$2.00",
             LESS)]),
        ({"maxUsdPerJob": 2}, {}, []),
        ({"maxUsdPerMonth": 1, "maxUsdPerMonthInTotal": 1}, {}, []),
        ({"maxUsdPerMonth": 2, "maxUsdPerMonthInTotal": 1.5}, {}, [
            ("limits.maxUsdPerMonth", "is more than all endpoints together may cost: $1.50",
             "$2.00", LESS)]),
        ({}, {"maxUsdPerJob": 3, "maxUsdPerTeam": 3}, []),
        ({}, {"maxUsdPerJob": 3, "maxUsdPerTeam": 2}, [
            ("teams.vision.limits.maxUsdPerJob", "is more than all jobs together may cost: $2.00",
             "$3.00", LESS)]),
        ({"regions": ["us-central1", "us-centrl1"]}, {}, [
            ("limits.regions.1", "no region for training", "us-centrl1",
             "did you mean 'us-central1'?")]),
        ({"machineTypes": ["n1-*", "a2-highgpu-1g", "a2-highgpu-1"]}, {}, [
            ("limits.machineTypes.2", "no machine type for training is called that",
             "a2-highgpu-1", "did you mean 'a2-highgpu-1g'?")]),
    ],
)  # fmt: skip
def test_one_may_cost_no_more_than_all(given: Any, teams: Any, found: Any) -> None:
    assert told(given, teams={"vision": {"limits": teams}}) == found


def test_members_and_accounts_of_other_domains_are_told_at_their_places() -> None:
    other = "trainer@acme-other.iam.gserviceaccount.com"
    settings = unjudged(
        limits={"memberDomains": ["example.com", "*.example.org"]},
        submitters=["group:ml@example.com", "user:x@evil.com", "user:y@sub.example.org"],
        deployers=["serviceAccount:ci@acme-ml-prod.iam.gserviceaccount.com", "user:z@example.org"],
        serviceAccounts={
            "theirs": {"existing": other},
            "ours": {"existing": "ours-x@acme-ml-prod.iam.gserviceaccount.com"},
            "made": {},
        },
    )
    found = list(limits.problems(settings))
    hint = "limits.memberDomains allows example.com, *.example.org"
    assert rows(found) == [
        ("submitters.1", "a member of another domain", "user:x@evil.com", hint),
        ("deployers.1", "a member of another domain", "user:z@example.org", hint),
        ("serviceAccounts.theirs.existing", "a member of another domain", other, hint),
    ]
    assert {each.rule for each in found} == {"limit-member-domain"}
    without = settings.model_copy(update={"limits": unjudged().limits})
    assert list(limits.problems(without)) == []
