"""Limits that a change raises and levels of policies that it lowers, beside those deployed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog.costs import usd
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import Plan
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.risk import LIMITS as LIMITS_QUESTION
from vertex_training_cli.review.risk import POLICIES, Quote, RiskKind

Limits = Mapping[str, Any]

#: Limits in USD: more, or none, is a raise.
USD: Final = (
    "maxUsdPerJob",
    "maxUsdPerEnvironment",
    "maxUsdPerTeam",
    "maxUsdPerMonth",
    "maxUsdPerMonthInTotal",
)
#: Limits by a list: an entry more, or no list, is a raise.
LISTS: Final = ("regions", "machineTypes", "strategies", "memberDomains")
#: Stands for no limit.
NONE: Final = "no limit"
#: The level of a policy that nobody gives another one.
DEFAULT: Final = "mandatory"
#: Levels, from what is not even looked at to what stops a deployment.
ORDER: Final = ("disabled", "advisory", "remediate", DEFAULT)

#: What stands for more than itself in a pattern.
_WILDCARD: Final = re.compile(r"[*?\[\]]")


def limits_of(plan: Plan) -> dict[str, Limits]:
    """The limits in the stack file, by section: ``limits``, ``teams.NAME.limits``."""
    found = {"limits": plan.section("limits")}
    for name, team in sorted(plan.section("teams").items()):
        found[f"teams.{name}.limits"] = as_mapping(as_mapping(team).get("limits"))
    return {section: limits for section, limits in found.items() if limits}


def raised_limits(plan: Plan) -> tuple[FieldDifference, ...]:
    """Limits of the deployed stack that the files raise or remove, old and new.

    None of a stack that was never deployed, or by a program that had no such output.
    """
    before, now = plan.deployed_output("limits") or {}, limits_of(plan)
    return tuple(
        FieldDifference(f"{section}.{key}", old, new)
        for section in sorted(before)
        for key, old, new in _raised(as_mapping(before[section]), now.get(section, {}))
    )


def policy_levels(plan: Plan) -> dict[str, str]:
    """The levels that policies are given, by name: by the stack file, then by the command."""
    own = plan.section("policyLevels")
    found = {str(name): str(level) for name, level in own.items()} | dict(plan.levels)
    return dict(sorted(found.items()))


def lowered_levels(plan: Plan) -> tuple[FieldDifference, ...]:
    """Policies whose level is lower than in the deployed stack, old and new."""
    if not plan.is_compared:
        return ()
    before = plan.deployed_output("policyLevels") or {}
    return tuple(
        FieldDifference(name, str(before.get(name, DEFAULT)), level)
        for name, level in policy_levels(plan).items()
        if _rank(level) < _rank(before.get(name, DEFAULT))
    )


def _rank(level: object) -> int:
    return ORDER.index(str(level)) if level in ORDER else len(ORDER)


def _raised(before: Limits, now: Limits) -> Iterator[tuple[str, str, str]]:
    for key in USD:
        old, new = _number(before.get(key)), _number(now.get(key))
        if old is not None and (new is None or new > old):
            yield key, usd(old), NONE if new is None else usd(new)
    for key in LISTS:
        listed, allowed = before.get(key), now.get(key)
        if isinstance(listed, list) and not isinstance(allowed, list):
            yield key, _words(listed), NONE
        elif isinstance(listed, list) and isinstance(allowed, list) and _widens(listed, allowed):
            yield key, _words(listed), _words(allowed)
    # In quotes, yes and 1 are true to the program as well.
    if now.get("allowUnpriced", False) is not False and before.get("allowUnpriced") is not True:
        yield "allowUnpriced", "false", "true"


def _widens(listed: list[Any], allowed: list[Any]) -> bool:
    """Whether something is allowed that no earlier entry, ``n1-*`` among them, allowed."""
    return not all(any(_covers(str(old), str(new)) for old in listed) for new in allowed)


def _covers(old: str, new: str) -> bool:
    """Whether all that ``new`` matches is certain to match ``old``.

    Of two patterns that is certain if they are alike, or if ``old`` has one ``*`` and ``new`` has
    what stands before and after it.
    """
    first, *_ = parts = _WILDCARD.split(new)
    if old == new or len(parts) == 1:
        return old == new or fnmatch.fnmatchcase(new, old)
    head, star, tail = old.partition("*")
    plain = star and not _WILDCARD.search(head + tail)
    return bool(plain) and first.startswith(head) and parts[-1].endswith(tail)


def _words(values: list[Any]) -> str:
    return ", ".join(map(str, values))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value is not True else None


def _change(change: FieldDifference, quote: Quote) -> str:
    return f"{quote(change.path)} {quote(change.old or '')} → {quote(change.new or '')}"


RAISED: Final = RiskKind(
    raised_limits,
    _change,
    key="raisedLimits",
    headline="limits raised",
    question=LIMITS_QUESTION,
    line=lambda each, quote: (
        f"limit {quote(each.path)}: {quote(each.old or '')} → {quote(each.new or '')}"
    ),
    danger="opens",
)
LOWERED: Final = RiskKind(
    lowered_levels,
    _change,
    key="policies.lowered",
    headline="policies lowered",
    question=POLICIES,
    answer="lowered: {}",
    danger="opens",
)
