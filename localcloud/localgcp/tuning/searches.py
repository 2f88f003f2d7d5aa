"""Search spaces (google-cloud-aiplatform 2.7.0, ``StudySpec``), and algorithms that choose values.

optuna's TPE replaces Google's default algorithm. Its study is built from all trials for each
suggestion. Only a study that needs optuna imports it, because the import takes 0.4 s.
"""

from __future__ import annotations

import math
import random
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from localgcp.tuning.records import TrialRecord, TrialState, Value

LOG: Final = "UNIT_LOG_SCALE"
REVERSE_LOG: Final = "UNIT_REVERSE_LOG_SCALE"


class Kind(StrEnum):
    """Types of parameters. The value is the name of the field with the specification."""

    DOUBLE = "doubleValueSpec"
    INTEGER = "integerValueSpec"
    CATEGORICAL = "categoricalValueSpec"
    DISCRETE = "discreteValueSpec"


@dataclass(frozen=True)
class Child:
    """A conditional parameter, and the parent's values that activate it."""

    parent_values: tuple[Value, ...]
    parameter: Parameter


@dataclass(frozen=True)
class Parameter:
    """One parameter of a study."""

    id: str
    kind: Kind
    low: float = 0
    high: float = 0
    """``low`` and ``high`` are the bounds of DOUBLE and INTEGER, both inclusive."""
    choices: tuple[Value, ...] = ()
    """The values of CATEGORICAL and DISCRETE."""
    scale: str = ""
    children: tuple[Child, ...] = ()


def search_space(study: Mapping[str, Any]) -> list[Parameter]:
    """Return the parameters of a checked ``studySpec`` in the API's JSON form."""
    return [_parameter(parameter) for parameter in study.get("parameters", [])]


def _parameter(spec: Mapping[str, Any]) -> Parameter:
    kind = next(candidate for candidate in Kind if candidate in spec)
    values = spec[kind]
    children = tuple(
        Child(parent_values(candidate), _parameter(candidate["parameterSpec"]))
        for candidate in spec.get("conditionalParameterSpecs", [])
    )
    number: Callable[[Any], float] = int if kind is Kind.INTEGER else float
    return Parameter(
        id=spec["parameterId"],
        kind=kind,
        # The JSON form omits a bound of 0, and has integers as text.
        low=number(values.get("minValue", 0)),
        high=number(values.get("maxValue", 0)),
        choices=tuple(values.get("values", ())),
        scale=spec.get("scaleType", ""),
        children=children,
    )


def parent_values(condition: Mapping[str, Any]) -> tuple[Value, ...]:
    """Return the parent's values that activate a conditional parameter."""
    if values := condition.get("parentIntValues"):
        return tuple(int(value) for value in values.get("values", []))
    for key in ("parentDiscreteValues", "parentCategoricalValues"):
        if values := condition.get(key):
            return tuple(values.get("values", []))
    return ()


def choose(space: Sequence[Parameter], pick: Callable[[Parameter], Value]) -> dict[str, Value]:
    """Choose a value for each parameter and for the active conditional parameters."""
    choices: dict[str, Value] = {}
    for parameter in space:
        value = choices[parameter.id] = pick(parameter)
        active = [child.parameter for child in parameter.children if value in child.parent_values]
        choices |= choose(active, pick)
    return choices


def arguments(values: Mapping[str, Value]) -> list[str]:
    """Return arguments ``--name value`` for a trial (doc:using-hyperparameter-tuning)."""
    return [word for name, value in values.items() for word in (f"--{name}", to_text(value))]


def to_text(value: Value) -> str:
    """Return a value as argument text; whole numbers have no ``.0``, so ``int`` can parse them."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, Trial

#: Name of the algorithm in logs.
NAME: Final = "optuna's TPE sampler, which is not Google's algorithm"

#: Number of random trials before the first one that uses earlier results.
_STARTUP_TRIALS: Final = 5


def grid(space: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    """Yield all points of a grid; the value of the last parameter changes fastest."""
    if not space:
        yield {}
        return
    first, *rest = space
    for value in first.choices or range(int(first.low), int(first.high) + 1):
        active = [child.parameter for child in first.children if value in child.parent_values]
        for point in grid([*active, *rest]):
            yield {first.id: value, **point}


def random_point(space: Sequence[Parameter], seed: str) -> dict[str, Value]:
    """Return random values, uniform on each parameter's scale. The seed determines the values."""
    chance = random.Random(seed)
    return choose(space, lambda parameter: _random_value(parameter, chance))


def _random_value(parameter: Parameter, chance: random.Random) -> Value:
    if parameter.choices:
        return chance.choice(parameter.choices)
    low, high = parameter.low, parameter.high
    if parameter.kind is Kind.INTEGER and parameter.scale not in (LOG, REVERSE_LOG):
        return chance.randint(int(low), int(high))
    value = chance.uniform(low, high)
    if parameter.scale in (LOG, REVERSE_LOG):
        value = _mirrored(parameter, math.exp(chance.uniform(math.log(low), math.log(high))))
    value = min(max(value, low), high)
    return round(value) if parameter.kind is Kind.INTEGER else value


def suggest(
    space: Sequence[Parameter],
    metrics: Sequence[Mapping[str, Any]],
    trials: Sequence[TrialRecord],
    seed: str,
) -> dict[str, Value]:
    """Return values for the next trial, from earlier measurements."""
    import optuna
    from optuna.study import StudyDirection

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # optuna warns about experimental options
        sampler = optuna.samplers.TPESampler(
            n_startup_trials=_STARTUP_TRIALS, constant_liar=True, seed=zlib.crc32(seed.encode())
        )
        up, down = StudyDirection.MAXIMIZE, StudyDirection.MINIMIZE
        goals = [down if metric.get("goal") == "MINIMIZE" else up for metric in metrics]
        study = optuna.create_study(sampler=sampler, directions=goals)
        for record in trials:
            study.add_trial(_past(space, metrics, record))
        trial = study.ask()
        return choose(space, lambda parameter: _suggested(trial, parameter))


def _past(
    space: Sequence[Parameter], metrics: Sequence[Mapping[str, Any]], trial: TrialRecord
) -> FrozenTrial:
    """Convert a trial to optuna's form. A running trial counts as bad, to avoid repetition."""
    from optuna.trial import TrialState as State
    from optuna.trial import create_trial

    known: dict[str, Parameter] = {}

    def pick(parameter: Parameter) -> Value:
        known[parameter.id] = parameter
        return trial.parameters[parameter.id]

    choose(space, pick)
    states = {TrialState.SUCCEEDED: State.COMPLETE, TrialState.INFEASIBLE: State.FAIL}
    measured = trial.measurement.metrics if trial.measurement else {}
    return create_trial(
        state=states.get(trial.state, State.RUNNING),
        params={name: _to_optuna(p, trial.parameters[name]) for name, p in known.items()},
        distributions={name: _distribution(p) for name, p in known.items()},
        values=[measured[m["metricId"]] for m in metrics] if measured else None,
    )


def _distribution(parameter: Parameter) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    log = parameter.scale in (LOG, REVERSE_LOG)
    if parameter.kind is Kind.DOUBLE:
        return FloatDistribution(parameter.low, parameter.high, log=log)
    if parameter.kind is Kind.INTEGER:
        return IntDistribution(int(parameter.low), int(parameter.high), log=log)
    if parameter.kind is Kind.DISCRETE:  # indices, because the values are in order
        return IntDistribution(0, len(parameter.choices) - 1)
    return CategoricalDistribution(parameter.choices)


def _suggested(trial: Trial, parameter: Parameter) -> Value:
    space: Any = _distribution(parameter)
    if parameter.kind is Kind.CATEGORICAL:
        return str(trial.suggest_categorical(parameter.id, space.choices))
    suggest = trial.suggest_float if parameter.kind is Kind.DOUBLE else trial.suggest_int
    value: Any = suggest(parameter.id, space.low, space.high, log=space.log)
    if parameter.kind is Kind.DISCRETE:
        return parameter.choices[value]
    return _mirrored(parameter, value)


def _to_optuna(parameter: Parameter, value: Any) -> Any:
    if parameter.kind is Kind.DISCRETE:
        return parameter.choices.index(value)
    return _mirrored(parameter, value)


def _mirrored(parameter: Parameter, value: Any) -> Any:
    """Convert between reverse logarithmic and logarithmic scale."""
    if parameter.scale != REVERSE_LOG:
        return value
    return min(max(parameter.low + parameter.high - value, parameter.low), parameter.high)
