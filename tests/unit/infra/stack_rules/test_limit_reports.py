"""Limits that would limit nothing, and members of other domains: whole reports."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.infra.stacks import H100, rows, unjudged
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


FEWER = "fewer replicas or versions, a smaller machine, or raise the limit"
COUNT = "limits.allowUnpriced: true lets it count as 0"
UNPRICED = ("has no price, and cannot be held to limits.maxUsdPerMonth", "x9-none-4", COUNT)
SMALL, LARGE, NONE = "n1-standard-4", "n1-standard-16", "x9-none-4"
MONTH = {"maxUsdPerMonth": 0.01}


def over(**sections: Any) -> list[tuple[str, ...]]:
    """What a stack without requests is over, with its rule and without amounts."""
    found = limits.exceeded(unjudged(**sections), {})
    shown = [tuple(re.sub(r"\$[\d,.]*\d", "$N", part) for part in row) for row in rows(found)]
    return [(*row, problem.rule) for row, problem in zip(shown, found, strict=True)]


def endpoints(**machines: str) -> dict[str, Any]:
    """Endpoints of these machines; one whose name ends in ``-v`` is of the team vision."""
    return {
        name: {"machine": machine, "split": {"run 1": 100}}
        | ({"team": "vision"} if name.endswith("-v") else {})
        for name, machine in machines.items()
    }


def dear(key: str, source: str = "limits", machine: str = SMALL) -> tuple[str, ...]:
    what = f"may cost $N a month, {source}.maxUsdPerMonth is $N"
    return f"endpoints.{key}.machine", what, machine, FEWER, "limit-endpoint-cost"


def unpriced(key: str) -> tuple[str, ...]:
    return f"endpoints.{key}.machine", *UNPRICED, "limit-price-unknown"


def in_total(dearest: str) -> tuple[str, ...]:
    what = "all endpoints in a month together may cost $N, the limit is $N"
    hint = f"{FEWER}; the dearest: {dearest}"
    return "limits.maxUsdPerMonthInTotal", what, "", hint, "limit-environment-cost"


@pytest.mark.parametrize(
    ("given", "team", "machines", "found"),
    [
        ({}, {}, {"a": SMALL, "b": NONE}, []),
        (MONTH, {}, {"a": SMALL}, [dear("a")]),
        ({"maxUsdPerMonth": 1_000_000}, {}, {"a": SMALL}, []),
        # that of a team is for its own alone
        (MONTH, MONTH, {"b-v": SMALL}, [dear("b-v"), dear("b-v", "teams.vision.limits")]),
        ({}, MONTH, {"a": NONE, "b-v": NONE}, [unpriced("b-v")]),
        ({"maxUsdPerMonthInTotal": 1}, {},
         {"a": SMALL, "b": "n1-standard-8", "c": "n1-standard-2", "d": LARGE},
         [in_total("d $N, b $N, a $N")]),
    ],
)  # fmt: skip
def test_an_endpoint_is_held_to_the_limits_of_the_stack_and_of_its_team(
    given: Any, team: Any, machines: dict[str, str], found: list[tuple[str, ...]]
) -> None:
    teams = {"vision": {"limits": team}, "other": {"limits": MONTH}}
    assert over(limits=given, teams=teams, endpoints=endpoints(**machines)) == found


ALL = {"limits": {"maxUsdPerEnvironment": 1}}


def test_a_reservation_without_a_price_is_told_unless_it_counts_as_nothing() -> None:
    given = {"reservations": {"big": H100 | {"machineType": NONE}}}
    what = "has no price, and cannot be held to limits.maxUsdPerEnvironment"
    assert over(**ALL, **given) == [("reservations.big", what, "", COUNT, "limit-price-unknown")]
    assert over(limits=ALL["limits"] | {"allowUnpriced": True}, **given) == []
