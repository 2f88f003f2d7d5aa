"""A month of a schedule is held to the limits of the stack and of its team: whole reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.infra.stack_rules.test_limits import JOB
from tests.unit.infra.stacks import BASE, rows
from vertex_training.catalog import costs
from vertex_training.stack import from_raw
from vertex_training.stack_rules import limits

WEEKLY = {"cron": "0 6 * * 1"}
MONTH, TOTAL = "maxUsdPerMonth", "maxUsdPerMonthInTotal"
COUNT = "limits.allowUnpriced: true lets it count as 0"
UNPRICED = (
    *("jobs.weekly.schedule.cron", "has no price, and cannot be held to limits.maxUsdPerMonth"),
    *("", COUNT, "limit-price-unknown"),
)
SHORTER = "shorten timeouts, use fewer machines, or raise the limit"


def over(
    root: Path, stack: Any, team: Any = (), weekly: Any = WEEKLY, **more: Any
) -> list[tuple[str, ...]]:
    """What a job of ten hours, five times a month and once, is over where an hour costs $1."""
    (root / "job.yaml").write_text(JOB)
    teams = {"vision": {"submitters": ["group:a@example.com"], "limits": dict(team)}}
    sections = {
        "jobs": {"weekly": {"file": "job.yaml", "schedule": weekly}, "once": {"file": "job.yaml"}},
        "serviceAccounts": {"trainer": {"team": "vision"} if team else {}},
        "teams": teams if team else {},
        "limits": stack,
    }
    found = from_raw(BASE | sections | more, root)
    problems = limits.exceeded(found.declared, found.check_jobs())
    return [
        (*row, each.rule) for row, each in zip(rows(problems), problems, strict=True) if each.rule
    ]


def month(most: str, source: str = "limits") -> tuple[str, ...]:
    what = f"may cost $50.00 a month (5 slots), {source}.maxUsdPerMonth is ${most}"
    hint = "fewer slots, a shorter timeout, a smaller machine, or raise the limit"
    return "jobs.weekly.schedule.cron", what, "0 6 * * 1", hint, "limit-schedule-cost"


def total(path: str, whose: str, most: str, hint: str) -> tuple[str, ...]:
    what = f"{whose} together may cost {most}"
    return path, what, "", hint, "limit-environment-cost"


@pytest.mark.parametrize(
    ("stack", "team", "found"),
    [
        ({}, {}, []),
        ({MONTH: 50, TOTAL: 50}, {MONTH: 50, "maxUsdPerTeam": 60}, []),
        ({MONTH: 49}, {}, [month("49.00")]),
        ({}, {MONTH: 49}, [month("49.00", "teams.vision.limits")]),
        ({"maxUsdPerEnvironment": 60}, {}, []),
        ({"maxUsdPerEnvironment": 59}, {"maxUsdPerTeam": 58}, [
            total("limits.maxUsdPerEnvironment", "all jobs, of schedules a month,",
                  "$60.00, the limit is $59.00",
                  f"{SHORTER}; the dearest: weekly $50.00, once $10.00"),
            total("teams.vision.limits.maxUsdPerTeam", "all jobs of team vision",
                  "$60.00, the limit is $58.00",
                  f"{SHORTER}; the dearest: weekly $50.00, once $10.00"),
        ]),
    ],
)  # fmt: skip
def test_a_month_of_slots_is_held_to_each_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: Any, team: Any, found: Any
) -> None:
    rate = costs.Rate(1.0, "source", "2026-01-01", "us-central1", exact=True)
    monkeypatch.setattr(costs, "hourly", lambda *_, **__: rate)
    assert over(tmp_path, stack, team) == found


@pytest.mark.parametrize(
    ("stack", "team", "found"),
    [
        ({}, {}, []),
        ({MONTH: 1}, {}, [UNPRICED]),
        ({TOTAL: 1}, {}, [UNPRICED]),
        ({}, {MONTH: 1}, [UNPRICED]),
        ({MONTH: 1}, {MONTH: 1}, [UNPRICED]),
        ({MONTH: 1, TOTAL: 1, "allowUnpriced": True}, {MONTH: 1}, []),
    ],
)
def test_a_schedule_without_a_price_is_told_once_unless_it_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: Any, team: Any, found: Any
) -> None:
    monkeypatch.setattr(costs, "hourly", lambda *_, **__: None)
    assert over(tmp_path, stack, team) == found
