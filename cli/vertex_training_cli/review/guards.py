"""Lowered guards other than grants: limits, levels, exceptions, tags, teams, alerts.

Previous settings come from the outputs of the deployed stack or from the changed resource. Alerts,
channels, budgets and dashboards of a team's own program are also reported.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from vertex_training.catalog import resource_types
from vertex_training.catalog.costs import usd
from vertex_training.catalog.resource_types import ALERT, BUDGET, CHANNEL, DASHBOARD, value_at
from vertex_training_cli.engine.plan import Plan, ResourceState, Step
from vertex_training_cli.engine.values import UNKNOWN, as_mapping
from vertex_training_cli.review.parts import Change, Finding

Inputs = Mapping[str, Any]
#: Sections of a stack file that can lower guards, and that the digest covers.
SECTIONS: Final = ("allowedSecrets", "drift", "rules")
#: Levels of rules, ascending.
RULE_LEVELS: Final = ("note", "warning", "error")
#: Limits in USD. A higher limit and a removed limit are raises.
USD: Final = (
    *("maxUsdPerJob", "maxUsdPerEnvironment", "maxUsdPerTeam"),
    *("maxUsdPerMonth", "maxUsdPerMonthInTotal"),
)
#: Limits by a list. An additional entry and a removed list are raises.
LISTS: Final = ("regions", "machineTypes", "strategies", "memberDomains")
#: Levels of policies, ascending. The last is the default.
POLICY_LEVELS: Final = ("disabled", "advisory", "remediate", "mandatory")
#: Resource type of the section on notifications -> noun.
WATCHING: Final = {CHANNEL: "channel", ALERT: "alert", BUDGET: "budget", DASHBOARD: "dashboard"}
#: Kind of an alert's condition -> template, and defaults of its fields.
_CONDITIONS: Final[Mapping[str, tuple[str, Inputs]]] = {
    "conditionPrometheusQueryLanguage": ("{query} for {duration}", {"duration": "0s"}),
    "conditionMonitoringQueryLanguage": ("{query} for {duration}", {"duration": "0s"}),
    "conditionSql": ("the query returns rows: {query}", {}),
    "conditionAbsent": ("{filter} has no data for {duration}", {}),
    "conditionMatchedLog": ("a log entry matches {filter}", {}),
    "conditionThreshold": ("{filter} is {sign} {thresholdValue} for {duration}",
                           {"thresholdValue": 0}),
}  # fmt: skip
_SIGNS: Final = {"COMPARISON_LT": "below", "COMPARISON_GT": "above"}
#: Notes below the table of alerts and budgets.
OF_ALERTS: Final = (
    "Alerts cover all jobs of the project, because logs and metrics of a job do not name its "
    "stack. No alert reports the time that a job waits in a queue."
)
OF_BUDGETS: Final = (
    "A budget does not stop jobs: it sends mail, up to a day after the cost. Only limits in the "
    "stack file and timeouts of jobs limit the cost."
)
#: Special characters of a pattern.
_WILDCARD: Final = re.compile(r"[*?\[\]]")


def new_entries(
    plan: Plan, section: str, read: Callable[[Inputs], Inputs] = lambda values: values
) -> list[Finding]:
    """Return entries of a section that differ from those of the deployed stack."""
    if not plan.is_compared:
        return []
    before = read(plan.deployed_output(section) or {})
    return [
        Finding(path, "", before.get(path), str(words))
        for path, words in read(plan.section(section)).items()
        if before.get(path) != words
    ]


def exceptions(drift: Inputs) -> dict[str, str]:
    """Return the exceptions of ``vt drift`` by path, as text."""
    sections = (
        ("allowed", "{member}: {role} on {policy}"),
        ("allowedResources", "{resource}"),
    )
    not_judged = drift.get("projectPolicy") != "judged"
    exceptions = {"drift.projectPolicy": "project members that the stack does not declare"}
    return (exceptions if not_judged else {}) | {
        f"drift.{section}.{key}": words.format_map(defaultdict(str, exception))
        for section, words in sections
        for key, exception in as_mapping(drift.get(section)).items()
        if isinstance(exception, Mapping)
    }


def changed_overrides(plan: Plan) -> Iterator[Finding]:
    """Yield new or changed overrides of included files."""
    overrides = (plan.deployed_output("overrides") or {}, plan.section("overrides"))
    before, now = (
        {path: json.dumps(override[path]) for path in override} for override in overrides
    )
    for path in sorted({*before, *now}):
        if before.get(path) != now.get(path) and plan.is_compared:
            old, new = (side.get(path, "as included") for side in (before, now))
            yield Finding(path, "", old, new)


def lowered_rules(plan: Plan) -> Iterator[Finding]:
    """Yield job file rules whose level is lower than in the deployed stack."""
    before, now = plan.deployed_output("rules") or {}, plan.section("rules")
    if before == now or not plan.is_compared:
        return
    from vertex_training.customjob import rules  # loads every rule

    levels = {rule.id: rule.level for rule in rules.ALL}
    for name in sorted({*before, *now}):
        old, new = (str(stage.get(name, levels.get(name))) for stage in (before, now))
        if _rank(new, RULE_LEVELS) < _rank(old, RULE_LEVELS):
            yield Finding(name, "", old, new)


def lowered(plan: Plan) -> list[Finding]:
    """Return guards and notifications that the plan reduces on resources that stay.

    ``old`` is "guard" or "notice". ``also`` is True if the plan only undoes a manual change.
    """
    teams, names, findings = plan.section("teams"), _channel_names(plan), list[Finding]()
    for step, _, _ in plan.inputs_of():
        if step.old and step.new and step.op != "replace":
            findings += _findings(step, step.name, "guard", _lowered_guards, teams)
        if step.old and step.type in (CHANNEL, ALERT, BUDGET):
            findings += _findings(step, _title(step), "notice", _lowered_notices, names)
    return sorted(findings)


def _findings(
    step: Step, name: str, of: str, compare: Callable[..., Iterator[str]], known: Inputs
) -> Iterator[Finding]:
    assert step.old is not None
    is_repair = step.deployed is not None and not any(compare(step, step.deployed.inputs, known))
    for what in compare(step, step.old.inputs, known):
        yield Finding(name, what, of, also=is_repair)


def _lowered_guards(step: Step, old: Inputs, teams: Inputs) -> Iterator[str]:
    new = step.inputs
    yield from _lowered_inputs("guard", step.type, old, new)
    before, after = (as_mapping(value.get("labels")).get("team") for value in (old, new))
    if before in teams and before != after:
        team = f"team {after}" if after else "every team"
        yield f"usable by accounts of {team}, not only by accounts of team {before}"


def _lowered_inputs(of: str, type_: str, old: Inputs, new: Inputs) -> list[str]:
    watched = (guard for guard in resource_types.find(type_).watched if guard.of == of)
    return [guard.words for guard in watched if guard.is_lowered(old, new)]


def limits_of(plan: Plan) -> dict[str, Inputs]:
    """Return the limits of the stack file by section: ``limits``, ``teams.NAME.limits``."""
    by_section = {"limits": plan.section("limits")}
    for name, team in sorted(plan.section("teams").items()):
        by_section[f"teams.{name}.limits"] = as_mapping(as_mapping(team).get("limits"))
    return {section: limits for section, limits in by_section.items() if limits}


def raised_limits(plan: Plan) -> list[Finding]:
    """Return limits that the plan raises or removes, with the old and the new value."""
    before, now = plan.deployed_output("limits") or {}, limits_of(plan)
    return [
        Finding(f"{section}.{key}", "", old, new)
        for section in sorted(before)
        for key, old, new in _raised(as_mapping(before[section]), now.get(section, {}))
    ]


def policy_levels(plan: Plan) -> dict[str, str]:
    """Return the levels of policies by name. Levels of the command override the stack file."""
    own = plan.section("policyLevels")
    levels = {str(name): str(level) for name, level in own.items()} | dict(plan.levels)
    return dict(sorted(levels.items()))


def lowered_levels(plan: Plan) -> list[Finding]:
    """Return policies whose level is lower than in the deployed stack, with both levels."""
    if not plan.is_compared:
        return []
    before = plan.deployed_output("policyLevels") or {}
    return [
        Finding(name, "", str(before.get(name, POLICY_LEVELS[-1])), level)
        for name, level in policy_levels(plan).items()
        if _rank(level, POLICY_LEVELS) < _rank(before.get(name, POLICY_LEVELS[-1]), POLICY_LEVELS)
    ]


def _raised(before: Inputs, now: Inputs) -> Iterator[tuple[str, str, str]]:
    for key in USD:
        old, new = _number(before.get(key)), _number(now.get(key))
        if old is not None and (new is None or new > old):
            yield key, usd(old), "no limit" if new is None else usd(new)
    for key in LISTS:
        listed, allowed = before.get(key), now.get(key)
        if isinstance(listed, list) and not isinstance(allowed, list):
            yield key, ", ".join(map(str, listed)), "no limit"
        elif isinstance(listed, list) and not all(
            # Each new entry is allowed by an earlier entry, such as ``n1-*``.
            any(_covers(str(old), str(new)) for old in listed)
            for new in allowed or ()
        ):
            yield key, ", ".join(map(str, listed)), ", ".join(map(str, allowed or ()))
    # The program also accepts a quoted "yes" or "1" as true.
    if now.get("allowUnpriced", False) is not False and before.get("allowUnpriced") is not True:
        yield "allowUnpriced", "false", "true"


def _covers(old: str, new: str) -> bool:
    """Return True if pattern ``old`` certainly matches everything that pattern ``new`` matches."""
    first, *_ = parts = _WILDCARD.split(new)
    if old == new or len(parts) == 1:  # equal patterns, or a name
        return old == new or fnmatch.fnmatchcase(new, old)
    head, star, tail = old.partition("*")
    plain = star and not _WILDCARD.search(head + tail)
    return bool(plain) and first.startswith(head) and parts[-1].endswith(tail)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value is not True else None


def _rank(level: object, levels: Sequence[str]) -> int:
    return levels.index(str(level)) if level in levels else len(levels)


def watch_changes(plan: Plan) -> list[Change]:
    """Return all changed alerts, channels, budgets and dashboards, by kind and name.

    ``when`` is the condition of the alert, or the amount of the budget.
    """
    names = _channel_names(plan)
    changes = [
        Change(
            kind=WATCHING[step.type],
            name=_title(step),
            action=step.op,
            when=_about(step.type, step.inputs),
            told_before=_recipients(step.type, step.old, names),
            told=_recipients(step.type, step.new, names),
        )
        for step in plan.changed
        if step.type in WATCHING
    ]
    return sorted(changes, key=lambda change: (change.kind, change.name))


def _lowered_notices(step: Step, old: Inputs, names: Mapping[str, str]) -> Iterator[str]:
    if step.new is None:
        about = "" if step.type == ALERT else f": {_about(step.type, old)}"
        yield f"{WATCHING[step.type]} removed{about}"
        return
    new = step.new.inputs
    yield from _lowered_inputs("notice", step.type, old, new)
    if step.type == CHANNEL and _about(CHANNEL, old) != _about(CHANNEL, new):
        yield f"recipient changed: {_about(CHANNEL, old)} → {_about(CHANNEL, new)}"
    if step.type == ALERT:
        before, now = _about(ALERT, old), _about(ALERT, new)
        if before != now:
            yield f"condition changed: {before} → {now}"
        elif _untitled_conditions(old) != _untitled_conditions(new):  # such as another aggregation
            yield f"condition evaluated differently: {now}"
    if step.type == BUDGET:
        before, now = _amount(old), _amount(new)
        if before != now and not (_sum(now) <= _sum(before)):
            yield f"amount raised: {before} → {now} a month"
        kept = _thresholds(new)
        if gone := [threshold for threshold in _thresholds(old) if threshold not in kept]:
            yield f"thresholds removed: {', '.join(gone)}"
    for channel in _channels(step.type, old):
        if channel not in _channels(step.type, new):
            yield f"recipient removed: {names.get(channel, channel)}"


def _untitled_conditions(inputs: Inputs) -> list[Inputs]:
    titles = ("displayName", "name")
    return [{k: c[k] for k in c if k not in titles} for c in _mappings(inputs, "conditions")]


def _mappings(inputs: Inputs, key: str) -> list[Inputs]:
    values = inputs.get(key)
    return [as_mapping(value) for value in values] if isinstance(values, list) else []


def _title(step: Step) -> str:
    return str(step.inputs.get("displayName") or step.name)


def _about(type_: str, inputs: Inputs) -> str:
    if type_ == CHANNEL:
        labels = as_mapping(inputs.get("labels"))
        return f"{inputs.get('type')} {', '.join(str(labels[key]) for key in sorted(labels))}"
    if type_ == BUDGET:
        return f"{_amount(inputs)} a month, at {', '.join(_thresholds(inputs))}"
    if type_ == DASHBOARD:
        return "charts"
    word = " and " if str(inputs.get("combiner")).startswith("AND") else " or "
    return word.join(map(_condition, _mappings(inputs, "conditions"))) or "no condition"


def _condition(condition: Inputs) -> str:
    for kind, (words, defaults) in _CONDITIONS.items():
        if details := as_mapping(condition.get(kind)):
            values: dict[str, Any] = defaultdict(lambda: None, {**defaults, **details})
            values["sign"] = _SIGNS.get(str(values["comparison"]), values["comparison"])
            return words.format_map(values)
    return str(condition.get("displayName") or UNKNOWN)


def _recipients(
    type_: str, state: ResourceState | None, names: Mapping[str, str]
) -> tuple[str, ...]:
    if state is None or type_ in (CHANNEL, DASHBOARD):
        return ()
    channels = [
        "a new channel" if channel == UNKNOWN else names.get(channel, channel)
        for channel in _channels(type_, state.inputs)
    ]
    by_default = value_at(state.inputs, "allUpdatesRule.disableDefaultIamRecipients")
    if type_ == BUDGET and by_default is not True:
        channels.append("administrators and users of the billing account")
    return tuple(channels)


def _channels(type_: str, inputs: Inputs) -> list[str]:
    of_budget = "allUpdatesRule.monitoringNotificationChannels"
    channels = value_at(inputs, of_budget if type_ == BUDGET else "notificationChannels")
    return [str(channel) for channel in channels] if isinstance(channels, list) else []


def _channel_names(plan: Plan) -> dict[str, str]:
    return {
        step.old.id: f"{_title(step)}, {_about(CHANNEL, step.old.inputs)}"
        for step in plan.steps
        if step.type == CHANNEL and step.old and step.old.id
    }


def _amount(inputs: Inputs) -> str:
    amount = as_mapping(value_at(inputs, "amount.specifiedAmount"))
    return f"{amount.get('units', '?')} {amount.get('currencyCode', '')}".strip()


def _sum(amount: str) -> float:
    """Return an amount as a number. Other texts are infinite, and so count as raised."""
    try:
        return float(amount.split()[0])
    except (ValueError, IndexError):
        return float("inf")


def _thresholds(inputs: Inputs) -> list[str]:
    texts = list[str]()
    for rule in _mappings(inputs, "thresholdRules"):
        value = rule.get("thresholdPercent")
        text = f"{value * 100:g}%" if isinstance(value, int | float) else str(value)
        is_forecast = rule.get("spendBasis") == "FORECASTED_SPEND"
        texts.append(f"{text} forecasted" if is_forecast else text)
    return texts
