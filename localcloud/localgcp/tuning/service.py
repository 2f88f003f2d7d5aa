"""Methods of ``google.cloud.aiplatform.v1.JobService`` for hyperparameter tuning jobs.

Sources of the checks: google-cloud-aiplatform 2.7.0 (``hyperparameter_tuning_job.py``,
``study.py``). The texts are ours. ``trialJobSpec`` is checked as a CustomJob's ``jobSpec``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, Final

from localgcp.apis.client import hyperparameter_tuning_job, job_service
from localgcp.apis.server import failed_precondition
from localgcp.home import Home
from localgcp.tuning.driver import TuningDriver
from localgcp.tuning.records import TrialRecord, TuningRecord, TuningTable
from localgcp.tuning.searches import LOG, REVERSE_LOG, Kind, parent_values
from localgcp.vertex.checks import FieldErrors, check_custom_job
from localgcp.vertex.collections import VIEWERS, Body, Collection, serves
from localgcp.vertex.records import JobState
from localgcp.vertex.service import VERTEX_JOBS, JobCollection, JobService, Scheduler, message_body

TUNING_JOBS: Final = Collection(
    hyperparameter_tuning_job.HyperparameterTuningJob,
    "hyperparameter_tuning_job",
    "hyperparameterTuningJobs",
    job_service,
)


@serves(TUNING_JOBS)
class TuningService(JobCollection[TuningRecord]):
    """Serves hyperparameter tuning jobs; list answers omit trials (T:job_service)."""

    api: ClassVar = VERTEX_JOBS
    first = JobState.PENDING

    def __init__(self, jobs: JobService, table: TuningTable, driver: Scheduler) -> None:
        super().__init__(jobs.store, table, driver)
        self._jobs, self._trials = jobs, table

    def check(self, body: Body, project: str, region: str) -> None:
        spec = body.get("trialJobSpec", {})
        job = {key: body[key] for key in ("displayName", "labels") if key in body}
        job["jobSpec"] = spec
        options: dict[str, Any] = {"spec_field": "trial_job_spec", "more": field_errors(body)}
        check_custom_job(self.store, self._jobs.jobs, job, project, region, **options)
        if text := self._jobs.refusal(spec):
            raise failed_precondition(text)

    def find(self, name: str, context: Any) -> Body:
        """Return the tuning job with its trials. Raises ApiError."""
        record = self.record(name, context, VIEWERS)
        bodies = [_trial_body(trial) for trial in self._trials.trials(record.job_id)]
        return {**message_body(record), "trials": bodies}


def _trial_body(trial: TrialRecord) -> dict[str, Any]:
    measurement, final = trial.measurement, None
    if measurement:
        metrics = [{"metricId": id_, "value": n} for id_, n in measurement.metrics.items()]
        elapsed = f"{measurement.elapsed:.6f}s"
        final = {"stepCount": str(measurement.step), "elapsedDuration": elapsed, "metrics": metrics}
    return {
        "id": str(trial.number),
        "state": trial.state.value,
        "parameters": [{"parameterId": id_, "value": v} for id_, v in trial.parameters.items()],
        "customJob": trial.job_name,
        "startTime": trial.start_time,
        "endTime": trial.end_time,
        "infeasibleReason": trial.infeasible_reason,
        "finalMeasurement": final,
    }


class Tuning:
    """The table and the driver of tuning jobs."""

    def __init__(self, home: Home) -> None:
        self.home, self.table = home, TuningTable(home.database)
        self._driver: TuningDriver | None = None

    def trial_id(self, job_id: str) -> str | None:
        """Return the trial id of a CustomJob; None if the CustomJob is not a trial."""
        trial = self.table.trial_of(job_id)
        return str(trial.number) if trial else None

    def trials(self, tuning_id: str) -> list[tuple[str, str]]:
        """Return the trials of a tuning job as pairs of trial id and CustomJob id."""
        return [(str(trial.number), trial.job_id) for trial in self.table.trials(tuning_id)]

    def job(self, tuning_id: str) -> TuningRecord | None:
        return self.table.get(tuning_id)

    def is_trial(self, job_id: str) -> bool:
        return self.table.trial_of(job_id) is not None

    def start(self, jobs: JobService) -> TuningService:
        """Resume the tuning jobs of an earlier server; return the service of tuning jobs."""
        self._driver = TuningDriver(self.home, self.table, jobs.jobs, jobs.scheduler)
        self._driver.start()
        return TuningService(jobs, self.table, self._driver)

    def stop(self) -> None:
        """Stop the driver; the scheduler ends running trials."""
        if self._driver:
            self._driver.stop()


_MOST_DISCRETE: Final = 1000
_LEAST_APART: Final = 1e-10
_DEEPEST: Final = 10
_VIZIER_ONLY: Final = "Only supported by the Vertex AI Vizier service."
#: Field of a condition with the parent's values, by the parent's type.
_CONDITIONS: Final = {
    Kind.INTEGER: "parentIntValues",
    Kind.DISCRETE: "parentDiscreteValues",
    Kind.CATEGORICAL: "parentCategoricalValues",
}


def field_errors(job: Mapping[str, Any]) -> FieldErrors:
    """Yield bad fields of a HyperparameterTuningJob (JSON form), except in ``trialJobSpec``."""
    yield from _counts(job)
    study = job.get("studySpec", {})
    metrics = [metric.get("metricId", "") for metric in study.get("metrics", [])]
    for index, name in enumerate(metrics):
        yield from _id(f"study_spec.metrics[{index}].metric_id", name)
    yield from _duplicates("study_spec.metrics", metrics)
    parameters, at = study.get("parameters", []), "study_spec.parameters"
    grid = study.get("algorithm") == "GRID_SEARCH"
    for index, parameter in enumerate(parameters):
        yield from _parameter(f"{at}[{index}]", parameter, grid, 0)
    yield from _duplicates(at, [parameter.get("parameterId", "") for parameter in parameters])
    if study.get("observationNoise") not in (None, "OBSERVATION_NOISE_UNSPECIFIED"):
        yield "study_spec.observation_noise", _VIZIER_ONLY


def _counts(job: Mapping[str, Any]) -> FieldErrors:
    most, parallel = int(job.get("maxTrialCount", 0)), int(job.get("parallelTrialCount", 0))
    failed = int(job.get("maxFailedTrialCount", 0))
    if most < 1:
        yield "max_trial_count", "Must be greater than 0."
    if parallel < 1:
        yield "parallel_trial_count", "Must be greater than 0."
    if failed < 0:
        yield "max_failed_trial_count", "Must not be negative."
    elif failed > most > 0:
        yield "max_failed_trial_count", f"Must not be greater than max_trial_count ({most})."


def _id(at: str, text: str) -> FieldErrors:
    if any(character.isspace() for character in text):
        yield at, f"Must not contain white space: {text!r}."


def _duplicates(at: str, names: Sequence[str]) -> FieldErrors:
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        yield at, f"Ids must be unique: {name!r}."


def _parameter(at: str, parameter: Mapping[str, Any], grid: bool, depth: int) -> FieldErrors:
    yield from _id(f"{at}.parameter_id", parameter.get("parameterId", ""))
    kind = next((candidate for candidate in Kind if candidate in parameter), None)
    if kind is None:
        yield at, "One of the value specs must be set."
        return
    values = parameter[kind]
    if "defaultValue" in values:
        yield f"{at}.default_value", _VIZIER_ONLY
    scale = parameter.get("scaleType", "")
    if kind in (Kind.DOUBLE, Kind.INTEGER):
        yield from _range(at, values, scale)
    else:
        yield from _choices(at, kind, values.get("values", []), scale)
    if grid and kind is Kind.DOUBLE:
        yield at, "GRID_SEARCH supports INTEGER, CATEGORICAL and DISCRETE parameters, not DOUBLE."
    if depth < _DEEPEST:
        yield from _children(at, kind, parameter, grid, depth)
    elif parameter.get("conditionalParameterSpecs"):
        yield at, f"Conditional parameters are nested deeper than {_DEEPEST} levels."


def _range(at: str, values: Mapping[str, Any], scale: str) -> FieldErrors:
    low, high = float(values.get("minValue", 0)), float(values.get("maxValue", 0))
    if not math.isfinite(high - low):
        yield at, "min_value, max_value and their difference must be finite."
    elif low > high:
        yield at, f"min_value {low:g} must not be greater than max_value {high:g}."
    elif scale in (LOG, REVERSE_LOG) and low <= 0:
        yield at, f"{scale} requires a strictly positive feasible space, got {low:g}."


def _choices(at: str, kind: Kind, values: Sequence[Any], scale: str) -> FieldErrors:
    if kind is Kind.CATEGORICAL:
        yield from _duplicates(f"{at}.values", values)
        if scale not in ("", "SCALE_TYPE_UNSPECIFIED"):
            yield f"{at}.scale_type", "Must not be set for a CATEGORICAL parameter."
        return
    if len(values) > _MOST_DISCRETE:
        yield f"{at}.values", f"No more than {_MOST_DISCRETE} values, got {len(values)}."
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)):
        yield f"{at}.values", "Values must be finite."
    elif any(b - a < _LEAST_APART for a, b in pairwise(numbers)):
        yield f"{at}.values", f"Must be in increasing order and at least {_LEAST_APART} apart."
    if scale in (LOG, REVERSE_LOG) and numbers and min(numbers) <= 0:
        yield at, f"{scale} requires a strictly positive feasible space."


def _children(
    at: str, kind: Kind, parameter: Mapping[str, Any], grid: bool, depth: int
) -> FieldErrors:
    active: dict[str, set[object]] = {}
    field = _CONDITIONS.get(kind)
    for index, child in enumerate(parameter.get("conditionalParameterSpecs", [])):
        place = f"{at}.conditional_parameter_specs[{index}]"
        if field is None:
            yield place, "A DOUBLE parameter cannot have conditional parameters."
            continue
        if field not in child:
            yield place, f"{field} must be set, because the type of the parent is {kind.name}."
            continue
        values = parent_values(child)
        if stray := [value for value in values if not _feasible(kind, parameter[kind], value)]:
            yield place, f"{stray[0]!r} is not a value of {parameter.get('parameterId')}."
        spec = child.get("parameterSpec", {})
        name = spec.get("parameterId", "")
        if not active.setdefault(name, set()).isdisjoint(values):
            yield place, f"{name!r} occurs twice for the same value of its parent."
        active[name].update(values)
        yield from _parameter(f"{place}.parameter_spec", spec, grid, depth + 1)


def _feasible(kind: Kind, values: Mapping[str, Any], value: Any) -> bool:
    if kind is Kind.INTEGER:
        return int(values.get("minValue", 0)) <= value <= int(values.get("maxValue", 0))
    return value in values.get("values", [])
