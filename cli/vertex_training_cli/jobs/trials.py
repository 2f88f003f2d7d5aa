"""The trials of a tuning job as a table: what each tried and reached, the best first. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.errors import CommandError

#: Columns before those of metrics and parameters.
COLUMNS: Final = ("trial", "state")
#: States after which a trial runs no more.
OVER: Final = ("SUCCEEDED", "INFEASIBLE")


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial, read from the message of its tuning job as REST writes it."""

    id: str
    state: str
    parameters: Mapping[str, Any]
    metrics: Mapping[str, float]
    """Of its final measurement; empty while it has none."""
    reason: str
    """Why it is infeasible, if it is."""
    job: str
    """Id of the CustomJob that runs it; empty before there is one."""

    @property
    def number(self) -> int:
        """Its id as a number, as the service counts them; 0 of another text."""
        return int(self.id) if self.id.isdecimal() else 0


def trials_of(message: Mapping[str, Any]) -> list[Trial]:
    """The trials in a tuning job's message, the best first, then those without a result."""
    found = [_trial(each) for each in message.get("trials", [])]
    metric, sign = _objective(message)
    return sorted(
        found,
        key=lambda trial: (
            metric not in trial.metrics,
            sign * trial.metrics.get(metric, 0.0),
            trial.number,
        ),
    )


def find(trials: Sequence[Trial], wanted: str) -> Trial:
    """The trial with this id.

    Raises:
        CommandError: there is none, or it runs nothing yet.
    """
    trial = next((each for each in trials if each.id == wanted), None)
    if trial is None:
        known = ", ".join(each.id for each in sorted(trials, key=lambda each: each.number))
        raise CommandError(f"there is no trial {wanted!r}.", f"there are: {known or 'none yet'}.")
    if not trial.job:
        raise CommandError(f"trial {wanted} runs nothing yet: it is {trial.state}.")
    return trial


def summary(message: Mapping[str, Any]) -> str:
    """How many trials there are: ``7 of 12, 3 at once: 4 SUCCEEDED, 3 ACTIVE``."""
    states: dict[str, int] = {}
    for trial in message.get("trials", []):
        states[_state(trial)] = states.get(_state(trial), 0) + 1
    counts = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
    text = f"{sum(states.values())} of {message.get('maxTrialCount', 0)}"
    text += f", {message.get('parallelTrialCount', 0)} at once"
    return f"{text}: {counts}" if counts else text


def table(message: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows. Columns: trial, state, each metric, each parameter, the CustomJob's id."""
    found = trials_of(message)
    metrics = _names(each.metrics for each in found)
    parameters = _names(each.parameters for each in found)
    heads = (*COLUMNS, *metrics, *parameters, "id")
    rows = [
        (
            each.id,
            each.state,
            *(shown(each.metrics.get(name)) for name in metrics),
            *(shown(each.parameters.get(name)) for name in parameters),
            each.job,
        )
        for each in found
    ]
    return heads, rows


def _trial(message: Mapping[str, Any]) -> Trial:
    measured = message.get("finalMeasurement", {}).get("metrics", [])
    return Trial(
        id=str(message.get("id", "")),
        state=_state(message),
        parameters={
            p.get("parameterId", ""): p.get("value") for p in message.get("parameters", [])
        },
        metrics={m.get("metricId", ""): float(m.get("value", 0.0)) for m in measured},
        reason=str(message.get("infeasibleReason", "")),
        job=str(message.get("customJob", "")).rpartition("/")[2],
    )


def _state(message: Mapping[str, Any]) -> str:
    return str(message.get("state", "")).removeprefix("STATE_")


def _objective(message: Mapping[str, Any]) -> tuple[str, int]:
    """The metric to optimize, and what makes the best the smallest."""
    metrics = message.get("studySpec", {}).get("metrics", [])
    objective = next((each for each in metrics if "safetyConfig" not in each), {})
    return objective.get("metricId", ""), 1 if objective.get("goal") == "MINIMIZE" else -1


def _names(of: Any) -> list[str]:
    return list(dict.fromkeys(name for mapping in of for name in mapping))


def shown(value: Any) -> str:
    """A value as people read it: 0.817259, 32, adam; empty if there is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.6g}"
    return "" if value is None else str(value)
