"""Settings that lower a guard and change no right: exceptions of drift, rules, tags, teams.

What was before comes from the outputs of the deployed stack, or from the resource. ``limits`` has
limits and levels of policies.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.resource_types import REPOSITORY
from vertex_training_cli.engine.fields import FieldDifference
from vertex_training_cli.engine.plan import Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.risk import Quote, RiskKind, told_alike

Inputs = Mapping[str, Any]
#: Sections of a stack file that lower guards; the digest covers them, and outputs have them.
SECTIONS: Final = ("allowedSecrets", "drift", "rules")
#: Stands for the value that an included file has.
AS_INCLUDED: Final = "as included"
#: Levels of rules, from the least.
ORDER: Final = ("note", "warning", "error")


@dataclass(frozen=True, slots=True, order=True)
class LoweredGuard:
    """A resource that stays, and is guarded less."""

    name: str
    """The resource's name in the program."""
    what: str
    """What is possible from now on."""


def drift_exceptions(plan: Plan) -> tuple[FieldDifference, ...]:
    """What ``vt drift`` reports no longer, and did when the stack was deployed."""
    return _new_ones(plan, "drift", _exceptions)


def new_acceptances(plan: Plan) -> tuple[FieldDifference, ...]:
    """Losses of protected resources that the stack file accepts, and did not when deployed."""
    return _new_ones(plan, "drift", lambda drift: as_mapping(drift.get("acceptedLosses")))


def allowed_secrets(plan: Plan) -> tuple[FieldDifference, ...]:
    """Files that may leave with what looks like a secret, and might not when deployed."""
    return _new_ones(plan, "allowedSecrets", lambda allowed: allowed)


def _new_ones(
    plan: Plan, section: str, read: Callable[[Inputs], Inputs]
) -> tuple[FieldDifference, ...]:
    if not plan.is_compared:
        return ()
    before = read(plan.deployed_output(section) or {})
    return tuple(
        FieldDifference(path, before.get(path), str(words))
        for path, words in read(plan.section(section)).items()
        if before.get(path) != words
    )


def _exceptions(drift: Inputs) -> dict[str, str]:
    sections = (
        ("allowed", "{member}: {role} on {policy}"),
        ("allowedResources", "{resource}"),
    )
    not_judged = drift.get("projectPolicy") != "judged"
    found = {"drift.projectPolicy": "members of the project that others added"}
    return (found if not_judged else {}) | {
        f"drift.{section}.{key}": words.format_map(defaultdict(str, each))
        for section, words in sections
        for key, each in as_mapping(drift.get(section)).items()
        if isinstance(each, Mapping)
    }


def changed_overrides(plan: Plan) -> tuple[FieldDifference, ...]:
    """What the stack has otherwise than the files that it includes, and had not when deployed."""
    given = (plan.deployed_output("overrides") or {}, plan.section("overrides"))
    before, now = ({path: json.dumps(each[path]) for path in each} for each in given)
    return tuple(
        FieldDifference(path, before.get(path, AS_INCLUDED), now.get(path, AS_INCLUDED))
        for path in sorted({*before, *now})
        if before.get(path) != now.get(path) and plan.is_compared
    )


def lowered_rules(plan: Plan) -> tuple[FieldDifference, ...]:
    """Rules of job files whose level is lower than in the deployed stack."""
    before, now = plan.deployed_output("rules") or {}, plan.section("rules")
    if before == now or not plan.is_compared:
        return ()
    from vertex_training.customjob import rules  # loads every rule

    levels = {rule.id: rule.level for rule in rules.ALL}
    found = [
        FieldDifference(name, *(str(each.get(name, levels.get(name))) for each in (before, now)))
        for name in sorted({*before, *now})
    ]
    return tuple(each for each in found if _rank(each.new) < _rank(each.old))


def _rank(level: str | None) -> int:
    return ORDER.index(level) if level in ORDER else len(ORDER)


def lowered_guards(plan: Plan) -> tuple[LoweredGuard, ...]:
    """Resources that stay and are guarded less, in words."""
    teams = plan.section("teams")
    steps = (step for step in plan.changed if step.old and step.new and step.op != "replace")
    return tuple(sorted(LoweredGuard(s.name, what) for s in steps for what in _lowered(s, teams)))


def _lowered(step: Step, teams: Inputs) -> Iterator[str]:
    old, new = (state.inputs if state else {} for state in (step.old, step.new))
    if step.type == REPOSITORY:
        yield from sorted(set(_weaknesses(new)) - set(_weaknesses(old)))
    before, after = (as_mapping(each.get("labels")).get("team") for each in (old, new))
    if before in teams and before != after:
        whom = f"team {after}" if after else "every team"
        yield f"accounts of {whom} may name it, not of {before} alone"


def _weaknesses(repository: Inputs) -> Iterator[str]:
    if as_mapping(repository.get("dockerConfig")).get("immutableTags") is not True:
        yield "tags of images can be moved"
    scanning = as_mapping(repository.get("vulnerabilityScanningConfig"))
    if scanning.get("enablementConfig") == "DISABLED":
        yield "images are not scanned"


def _with_reason(each: FieldDifference, quote: Quote) -> str:
    return f"{quote(each.path)} ({quote(each.new or '')})"


OVERRIDES: Final = RiskKind(
    changed_overrides,
    lambda each, quote: quote(each.path),
    key="overrides",
    line=lambda each, quote: (
        f"exception of this stack from what it includes: {quote(each.path)}: "
        f"{quote(each.old)} → {quote(each.new)}"
    ),
    danger="opens",
)
KINDS: Final = (
    told_alike(
        drift_exceptions,
        lambda each, quote: quote(each.new),
        "driftExceptions",
        "drift is not reported",
    ),
    told_alike(new_acceptances, _with_reason, "acceptedLosses", "loss accepted"),
    told_alike(allowed_secrets, _with_reason, "allowedSecrets", "a file may leave with a secret"),
    told_alike(
        lowered_rules,
        lambda each, quote: f"{quote(each.path)} {quote(each.old)} → {quote(each.new)}",
        "loweredRules",
        "rules lowered",
    ),
    told_alike(
        lowered_guards,
        lambda each, quote: f"{quote(each.name)} ({each.what})",
        "loweredGuards",
        "guards lowered",
    ),
    OVERRIDES,
)
