"""Model versions and endpoints of a plan: uploads, traffic, monthly costs, and risks.

The provider reads the metrics of a run during the preview, and adds these to the inputs
(``resolved``).
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from vertex_training.catalog import costs
from vertex_training.catalog.costs import EndpointCost, usd
from vertex_training.catalog.resource_types import (
    ENDPOINT,
    ENDPOINT_CLEANUP,
    ENDPOINT_TRAFFIC,
    MODEL_VERSION,
    value_at,
)
from vertex_training.naming import PUBLIC_LABEL
from vertex_training_cli.engine.plan import JOBS, Plan, Step
from vertex_training_cli.engine.values import as_mapping
from vertex_training_cli.review.parts import Change, Finding

Inputs = Mapping[str, Any]
#: Types that this module reports. The cleanup of an endpoint has no data.
TYPES: Final = frozenset({MODEL_VERSION, ENDPOINT_TRAFFIC, ENDPOINT_CLEANUP})
#: Maximum number of reported metrics of a run.
MAX_METRICS: Final = 50
#: Note on the accuracy of the costs.
SOURCES: Final = (
    "Estimates use list prices with Vertex AI's fee, for 730 hours a month, without network "
    "traffic and discounts. The fee is confirmed by bills for two machine types. For other types, "
    "the fee is an assumption."
)
#: Names of metrics whose lower values are better, and of metrics whose higher values are better.
_LESS: Final = re.compile(r"loss|error|mse|mae|rmse|mape|perplexity|brier|regret|latency|(^|_)wer$")
_MORE: Final = re.compile(
    r"accuracy|auc|precision|recall|score|bleu|rouge|map$|ndcg|iou|dice|reward|(^|_)(f1|r2|acc)($|_)"
)


def version_changes(plan: Plan) -> list[Change]:
    """Return all model versions of a plan, by model and run.

    The action ``leave`` removes the version only from the stack. ``image_before`` is a different
    previous image. ``unanswered`` is the reason why the run was not read.
    """
    changes = list[Change]()
    for step in plan.steps:
        if step.type != MODEL_VERSION:
            continue
        source, resolved = (as_mapping(step.inputs.get(key)) for key in ("model", "resolved"))
        image = str(value_at(step.inputs, "container.imageUri") or "")
        before = str(value_at(step.old and step.old.inputs, "container.imageUri") or "")
        kept = as_mapping(step.inputs.get("options")).get("onDelete") != "delete"
        words = {"create": "upload", "delete": "leave" if kept else "delete"}
        action = _action(step)
        change = Change(
            name=step.name,
            model=str(source.get("model") or step.name),
            job=str(source.get("job", "")),
            run=_whole(source.get("run")),
            action=words.get(action, action),
            image=image,
            image_before=before if before != image else "",
            metrics=_metrics(resolved.get("metrics")),
            unanswered=str(resolved.get("unanswered") or ""),
        )
        changes.append(change)
    return sorted(changes, key=lambda change: (change.model, len(change.run), change.run))


def version_title(change: Change) -> str:
    """Return a model version as text: ``model titanic run 3``."""
    return f"model {change.model} run {change.run}"


def endpoint_changes(plan: Plan) -> list[Change]:
    """Return all endpoints of a plan, by their keys in the stack file.

    ``before`` and ``after`` are the traffic shares of runs. ``reach`` describes the reachability.
    ``metrics`` are those of runs with a share before or after the plan.
    """
    metrics = {(v.model, f"run {v.run}"): v.metrics for v in version_changes(plan)}
    shells = {str(s.inputs.get("name", "")).rpartition("/")[2]: s
              for s in plan.steps if s.type == ENDPOINT}  # fmt: skip
    changes = list[Change]()
    for step in plan.steps:
        if step.type != ENDPOINT_TRAFFIC:
            continue
        place = as_mapping(step.inputs.get("endpoint"))
        model = str(place.get("model") or place.get("key") or step.name)
        old, new = _before(step), step.new.inputs if step.new else None
        before, after = (_split(inputs) if inputs else {} for inputs in (old, new))
        shell = shells.get(str(place.get("id")))
        cost_before, cost = (_cost(inputs) if inputs else None for inputs in (old, new))
        change = Change(
            name=str(place.get("key") or step.name),
            model=model,
            action=_action(step),
            before=before,
            after=after,
            machine=_machine(step.inputs),
            cost_before=cost_before,
            cost=cost,
            reach_before=_reach(shell.old and shell.old.inputs) if shell else "",
            reach=_reach(shell.new and shell.new.inputs) if shell else "",
            account=str(place.get("account", "")),
            metrics={run: metrics.get((model, run), {}) for run in {**before, **after}},
        )
        changes.append(change)
    return sorted(changes, key=lambda change: change.name)


def _before(step: Step) -> Inputs | None:
    """Return the inputs before the step, with the actual state of the endpoint."""
    if step.old is None:
        return None
    outputs = {key: step.old.outputs.get(key) for key in ("deployed", "split")}
    return {
        **step.old.inputs,
        **{key: value for key, value in outputs.items() if value is not None},
    }


def _action(step: Step) -> str:
    words = {"update": "change", "same": "keep", "read": "keep", "refresh": "keep"}
    return words.get(step.op, step.op)


def _metrics(metrics: object) -> dict[str, float]:
    """Return the finite numbers among a run's metrics. A metric may have any type."""
    numbers = (
        (str(name), value)
        for name, value in as_mapping(metrics).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
    kept = {name: float(value) for name, value in numbers if abs(value) <= sys.float_info.max}
    return dict(list(kept.items())[:MAX_METRICS])


def _split(inputs: Inputs) -> dict[str, int]:
    split = as_mapping(inputs.get("split"))
    runs = sorted({*_deployed(inputs), *split}, key=lambda run: (len(run), run))
    return {run: int(_number(split.get(run))) for run in runs}


def _deployed(inputs: Inputs) -> dict[str, Inputs]:
    deployed = as_mapping(inputs.get("deployed"))
    return {run: as_mapping(entry) for run, entry in deployed.items()}


def _cost(inputs: Inputs) -> EndpointCost | None:
    entries = list(_deployed(inputs).values())
    if not entries:
        return None
    machine, kind, count = _spec(entries[0])
    replicas = int(_number(entries[0].get("min"))), int(_number(entries[0].get("max")))
    region = str(value_at(inputs, "endpoint.region") or "")
    return costs.of_endpoint(machine, kind or None, count, replicas, len(entries), region)


def _spec(entry: Inputs) -> tuple[str, str, int]:
    spec = as_mapping(entry.get("machine"))
    count = int(_number(spec.get("acceleratorCount")))
    return str(spec.get("machineType", "")), str(spec.get("acceleratorType", "")), count


def _machine(inputs: Inputs) -> str:
    entries = list(_deployed(inputs).values())
    if not entries:
        return ""
    machine, kind, count = _spec(entries[0])
    least, most = (_whole(entries[0].get(key)) for key in ("min", "max"))
    number = least if least == most else f"{least} to {most}"
    return f"{number} x {machine}{f' ({count} {kind})' if kind else ''} per version"


def _reach(inputs: Inputs | None) -> str:
    if inputs is None:
        return ""
    if value_at(inputs, "privateServiceConnectConfig.enablePrivateServiceConnect") is True:
        return "private, by Private Service Connect"
    if inputs.get("network"):
        return "private, by peering"
    named = as_mapping(inputs.get("labels")).get(PUBLIC_LABEL) == "named"
    return "public" + (", set in the stack file" if named else "")


def _number(value: object) -> float:
    number = value if isinstance(value, int | float) else 0
    return number if math.isfinite(number) else 0


def _whole(value: object) -> str:
    """Return a number of the engine, which may be a float, as text."""
    return f"{value:.0f}" if isinstance(value, int | float) else str(value or "")


def _judged(name: str, old: float, new: float) -> bool | None:
    if _LESS.search(name.lower()):
        return new > old
    return new < old if _MORE.search(name.lower()) else None


def doubtful_traffic(plan: Plan) -> Iterator[Finding]:
    """Yield endpoints with more traffic to a version with worse or not comparable metrics."""
    for change in endpoint_changes(plan):
        if change.action == "change" and change.before:
            yield from (Finding(change.name, what) for what in _doubts(change))


def _doubts(change: Change) -> Iterator[str]:
    base = max(change.before, key=lambda run: change.before[run])
    old = change.metrics.get(base, {})
    for run, share in change.after.items():
        if run == base or share <= change.before.get(run, 0):
            continue
        new = change.metrics.get(run, {})
        known = {name: _judged(name, old[name], new[name]) for name in old if name in new}
        worse = [name for name, is_worse in known.items() if is_worse]
        if worse:
            doubts = [f"{name} {old[name]:.6g} → {new[name]:.6g}" for name in worse[:3]]
            yield f"{run} is worse than {base}: {', '.join(doubts)}"
        elif not any(is_worse is False for is_worse in known.values()):
            yield f"{run} has no metrics comparable with {base}"


def opened_endpoints(step: Step, _old: Inputs, _new: Inputs) -> Iterator[Finding]:
    """Yield endpoints that the plan makes reachable from the internet."""
    was, now = (_reach(state and state.inputs) for state in (step.old, step.new))
    if now.startswith("public") and not was.startswith("public"):
        yield Finding(str(step.inputs.get("displayName") or step.name), now)


def ended_endpoints(plan: Plan) -> Iterator[Finding]:
    """Yield endpoints with traffic that the plan deletes or recreates."""
    for change in endpoint_changes(plan):
        if change.action in ("delete", "replace") and any(change.before.values()):
            yield Finding(change.name, f"{change.action}d; traffic: {_split_text(change.before)}")


def deleted_versions(plan: Plan) -> Iterator[Finding]:
    """Yield model versions that the plan deletes from the registry."""
    for change in version_changes(plan):
        if change.action == "delete":
            yield Finding(change.model, f"run {change.run}, with its files in the registry")


def served_runs(plan: Plan) -> Iterator[Finding]:
    """Yield replaced jobs from whose run a model version was created."""
    served: dict[tuple[str, str], str] = {}
    for step in plan.steps:
        if step.type == MODEL_VERSION and step.old and step.new:
            source = as_mapping(step.new.inputs.get("model"))
            run = str(source.get("job")), _whole(source.get("run"))
            served[run] = str(source.get("model") or step.name)
    for step in plan.changed:
        if step.type in JOBS and step.old and step.new:
            old, new = step.old.inputs, step.new.inputs
            job, run = _run_of(new)
            is_same = old.get("requestId") == new.get("requestId")
            if _run_of(old) == (job, run) and (job, run) in served and not is_same:
                what = f"model {served[job, run]} has a version of run {run}"
                yield Finding(job, f"{what}: increase the run of the job")


def _run_of(inputs: Inputs) -> tuple[str, str]:
    submission = as_mapping(inputs.get("submission"))
    return str(submission.get("job")), _whole(submission.get("run"))


def raised_costs(plan: Plan) -> Iterator[Finding]:
    """Yield endpoints whose minimum or maximum monthly cost rises or is unknown."""
    for change in endpoint_changes(plan):
        if change.cost and change.cost != change.cost_before:
            old = change.cost_before.monthly if change.cost_before else (0.0, 0.0)
            new = change.cost.monthly
            if old is None or new is None or any(map(operator.gt, new, old)):
                yield Finding(change.name, cost_text(change))


def cost_text(change: Change) -> str:
    """Return the price before and after as text: ``$79.75 → $159.50 to $319.01 a month``."""
    nothing = f"{usd(0)} a month"
    before, after = (str(cost or nothing) for cost in (change.cost_before, change.cost))
    return after if before == after else f"{before.removesuffix(' a month')} → {after}"


def split_change(change: Change) -> str:
    """Return the traffic before and after as text: ``run 3: 100 → run 3: 90, run 4: 10``."""
    before, after = _split_text(change.before), _split_text(change.after)
    return after if before == after else f"{before} → {after}"


def _split_text(split: Mapping[str, int]) -> str:
    return ", ".join(f"{run}: {share}" for run, share in split.items()) or "nothing"


def shown(value: float | None) -> str:
    """Return a metric as text; empty without a value."""
    return "" if value is None else f"{value:.6g}"


def metrics_text(metrics: Mapping[str, float]) -> str:
    """Return the first metrics in a line."""
    return ", ".join(f"{name} {shown(value)}" for name, value in list(metrics.items())[:4])


def share_text(change: Change, run: str) -> str:
    """Return the share of a run before and after as text: ``100 → 90 %``."""
    before, after = change.before.get(run), change.after.get(run)
    texts = ["not deployed" if share is None else f"{share} %" for share in (before, after)]
    return " → ".join(dict.fromkeys(texts))


def reach_text(change: Change) -> str:
    """Return the reachability of an endpoint before and after as text."""
    return " → ".join(
        dict.fromkeys(reach for reach in (change.reach_before, change.reach) if reach)
    )
