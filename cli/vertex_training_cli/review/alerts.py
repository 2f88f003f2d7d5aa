"""Alerts, channels, budgets and dashboards of a plan: what is told to whom, and what no more is.

Of all resources of these types, those of a team's own as well. A channel that the plan makes has no
name yet, so what an alert newly names may be known by number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.resource_types import ALERT, BUDGET, CHANNEL, DASHBOARD
from vertex_training_cli.engine.plan import Plan, ResourceState, Step
from vertex_training_cli.engine.values import UNKNOWN, as_mapping
from vertex_training_cli.review.risk import LOST, told_alike

Inputs = Mapping[str, Any]
#: Type -> what it is called; each is told here.
TYPES: Final = {CHANNEL: "channel", ALERT: "alert", BUDGET: "budget", DASHBOARD: "dashboard"}
#: What stands below the table.
LIMITS: Final = (
    "Alerts are about every job of the project: neither logs nor metrics of a job say which stack "
    "sent it. Nothing tells how long a job is queued."
)
OF_BUDGETS: Final = (
    "A budget stops nothing: it sends mail, up to a day after the cost. Limits of the stack file "
    "and timeouts of jobs stay the bounds."
)


@dataclass(frozen=True, slots=True)
class WatchChange:
    """A channel, alert, budget or dashboard after the plan; before it, if it leaves."""

    kind: str
    name: str
    action: str
    """create, update, replace, delete, same."""
    when: str
    """What it is about."""
    told_before: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class LessTold:
    """Something that somebody was told, and is told no more."""

    name: str
    what: str


def watch_changes(plan: Plan) -> tuple[WatchChange, ...]:
    """All that change, by kind and name."""
    names = _channel_names(plan)
    found = [
        WatchChange(
            kind=TYPES[step.type],
            name=_title(step),
            action=step.op,
            when=_about(step.type, step.inputs),
            told_before=_told(step.type, step.old, names),
            told=_told(step.type, step.new, names),
        )
        for step in plan.changed
        if step.type in TYPES
    ]
    return tuple(sorted(found, key=lambda each: (each.kind, each.name)))


def less_told(plan: Plan) -> tuple[LessTold, ...]:
    """What nobody is told any more, or one channel less, by resource."""
    names = _channel_names(plan)
    found = (
        LessTold(_title(step), what)
        for step in plan.changed
        if step.type in TYPES and step.type != DASHBOARD and step.old
        for what in _less(step, step.old.inputs, names)
    )
    return tuple(sorted(found))


def _less(step: Step, old: Inputs, names: Mapping[str, str]) -> Iterator[str]:
    if step.new is None:
        about = "" if step.type == ALERT else f": {_about(step.type, old)}"  # its title says it
        yield f"{TYPES[step.type]} is removed{about}"
        return
    new = step.new.inputs
    if old.get("enabled", True) is not False and new.get("enabled", True) is False:
        yield "is off"
    if step.type == CHANNEL and _about(CHANNEL, old) != _about(CHANNEL, new):
        yield f"no longer to {_about(CHANNEL, old)}, but to {_about(CHANNEL, new)}"
    if step.type == ALERT:
        yield from _less_of_alert(old, new)
    if step.type == BUDGET:
        yield from _less_of_budget(old, new)
    for channel in _numbers(step.type, old):
        if channel not in _numbers(step.type, new):
            yield f"no longer to {names.get(channel, channel)}"


def _less_of_alert(old: Inputs, new: Inputs) -> Iterator[str]:
    before, now = _about(ALERT, old), _about(ALERT, new)
    if before != now:
        yield f"no longer when {before}, but when {now}"
    elif _conditions(old) != _conditions(new):  # as how a metric is aggregated
        yield f"when {now}, but judged in another way"
    if old.get("alertStrategy") != new.get("alertStrategy"):
        yield "told in another way: alertStrategy changes"


def _conditions(inputs: Inputs) -> list[Inputs]:
    """Conditions of an alert without their titles."""
    given = inputs.get("conditions")
    found = [as_mapping(each) for each in given] if isinstance(given, list) else []
    return [{k: each[k] for k in each if k not in ("displayName", "name")} for each in found]


def _less_of_budget(old: Inputs, new: Inputs) -> Iterator[str]:
    before, now = _amount(old), _amount(new)
    if before != now and not (_number(now) <= _number(before)):
        yield f"of {now} a month, not of {before}"
    if gone := [each for each in _thresholds(old) if each not in _thresholds(new)]:
        yield f"no longer at {', '.join(gone)}"
    rules = (as_mapping(each.get("allUpdatesRule")) for each in (old, new))
    was, off = (each.get("disableDefaultIamRecipients") is True for each in rules)
    if off and not was:
        yield "no longer to administrators of the billing account"
    for key in ("billingAccount", "budgetFilter"):
        if old.get(key) != new.get(key):
            yield f"is of other costs: {key} changes"


def _title(step: Step) -> str:
    return str(step.inputs.get("displayName") or step.name)


def _about(type_: str, inputs: Inputs) -> str:
    """What an alert or a budget is about, whom a channel reaches."""
    if type_ == CHANNEL:
        labels = as_mapping(inputs.get("labels"))
        return f"{inputs.get('type')} {', '.join(str(labels[key]) for key in sorted(labels))}"
    if type_ == BUDGET:
        return f"{_amount(inputs)} a month, at {', '.join(_thresholds(inputs))}"
    if type_ == DASHBOARD:
        return "charts"
    conditions = inputs.get("conditions")
    found = [as_mapping(each) for each in conditions] if isinstance(conditions, list) else []
    word = " and " if str(inputs.get("combiner")).startswith("AND") else " or "
    return word.join(map(_condition, found)) or "nothing"


def _condition(condition: Inputs) -> str:
    for key in ("conditionPrometheusQueryLanguage", "conditionMonitoringQueryLanguage"):
        if query := as_mapping(condition.get(key)):
            return f"{query.get('query')} for {query.get('duration', '0s')}"
    if query := as_mapping(condition.get("conditionSql")):
        return f"the query finds rows: {query.get('query')}"
    if absent := as_mapping(condition.get("conditionAbsent")):
        return f"{absent.get('filter')} has no data for {absent.get('duration')}"
    if log := as_mapping(condition.get("conditionMatchedLog")):
        return f"a log entry has {log.get('filter')}"
    if limit := as_mapping(condition.get("conditionThreshold")):
        sign = {"COMPARISON_LT": "below", "COMPARISON_GT": "above"}.get(
            str(limit.get("comparison")), str(limit.get("comparison"))
        )
        value, time = limit.get("thresholdValue", 0), limit.get("duration")
        return f"{limit.get('filter')} is {sign} {value} for {time}"
    return str(condition.get("displayName") or UNKNOWN)


def _told(type_: str, state: ResourceState | None, names: Mapping[str, str]) -> tuple[str, ...]:
    if state is None or type_ in (CHANNEL, DASHBOARD):
        return ()
    found = [
        "a channel of this change" if each == UNKNOWN else names.get(each, each)
        for each in _numbers(type_, state.inputs)
    ]
    by_default = as_mapping(state.inputs.get("allUpdatesRule")).get("disableDefaultIamRecipients")
    if type_ == BUDGET and by_default is not True:
        found.append("administrators and users of the billing account")
    return tuple(found)


def _numbers(type_: str, inputs: Inputs) -> list[str]:
    """Channels that an alert or a budget names."""
    if type_ == BUDGET:
        found = as_mapping(inputs.get("allUpdatesRule")).get("monitoringNotificationChannels")
    else:
        found = inputs.get("notificationChannels")
    return [str(each) for each in found] if isinstance(found, list) else []


def _channel_names(plan: Plan) -> dict[str, str]:
    """Name in the cloud of each channel that was there -> whom it reached."""
    return {
        step.old.id: f"{_title(step)}, {_about(CHANNEL, step.old.inputs)}"
        for step in plan.steps
        if step.type == CHANNEL and step.old and step.old.id
    }


def _amount(inputs: Inputs) -> str:
    amount = as_mapping(as_mapping(inputs.get("amount")).get("specifiedAmount"))
    return f"{amount.get('units', '?')} {amount.get('currencyCode', '')}".strip()


def _number(amount: str) -> float:
    """The number of an amount; endless where it is none, so that it counts as raised."""
    try:
        return float(amount.split()[0])
    except (ValueError, IndexError):
        return float("inf")


def _thresholds(inputs: Inputs) -> list[str]:
    rules = inputs.get("thresholdRules")
    found = [as_mapping(rule) for rule in rules] if isinstance(rules, list) else []
    return [_percent(rule) for rule in found]


def _percent(rule: Inputs) -> str:
    value = rule.get("thresholdPercent")
    text = f"{value * 100:g}%" if isinstance(value, int | float) else str(value)
    forecast = rule.get("spendBasis") == "FORECASTED_SPEND"
    return f"{text} forecasted" if forecast else text


UNTOLD: Final = told_alike(
    less_told,
    lambda each, quote: f"{quote(each.name)} ({quote(each.what)})",
    "lessTold",
    "no longer told",
    LOST,
    "destroys",
)
