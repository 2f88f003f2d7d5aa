"""The methods of ``google.cloud.aiplatform.v1.JobService`` for hyperparameter tuning jobs.

States move as a CustomJob's. Which trials there are is decided in
``localgcp.tuning.driver``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol

from google.longrunning import operations_pb2
from google.protobuf import empty_pb2, json_format

from localgcp.apis.messages import hyperparameter_tuning_job, job_service
from localgcp.apis.refusals import failed_precondition, invalid_argument, not_found
from localgcp.home import Home
from localgcp.tuning.checks import field_errors
from localgcp.tuning.driver import TuningDriver
from localgcp.tuning.records import Measurement, TrialRecord, TuningRecord, TuningTable
from localgcp.vertex.checks import check_custom_job, resolve_parent
from localgcp.vertex.records import JobState
from localgcp.vertex.service import (
    CANCELLABLE,
    OUTPUT_ONLY,
    VERTEX_JOBS,
    JobService,
    list_page,
    message_body,
)

KIND: Final = "HyperparameterTuningJob"
_NAME: Final = re.compile(
    r"(?P<parent>projects/[^/]+/locations/[^/]+)/hyperparameterTuningJobs/(?P<id>\d+)"
)


class Driver(Protocol):
    """Runs tuning jobs; see ``localgcp.tuning.driver``."""

    def wake(self) -> None: ...


class TuningService:
    """Hyperparameter tuning jobs."""

    api: ClassVar = VERTEX_JOBS

    def __init__(self, jobs: JobService, table: TuningTable, driver: Driver) -> None:
        self._jobs, self._table, self._driver = jobs, table, driver

    def create_hyperparameter_tuning_job(
        self, request: job_service.CreateHyperparameterTuningJobRequest
    ) -> hyperparameter_tuning_job.HyperparameterTuningJob:
        project, region = resolve_parent(self._jobs.store, request.parent)
        pb = hyperparameter_tuning_job.HyperparameterTuningJob.pb(request.hyperparameter_tuning_job)
        body = {
            key: value
            for key, value in json_format.MessageToDict(pb).items()
            if key not in (*OUTPUT_ONLY, "trials")
        }
        self._check(body, project, region)
        record = TuningRecord.new(project, region, body, JobState.PENDING)
        self._table.insert(record)
        self._driver.wake()
        return to_message(record, [])

    def _check(self, body: dict[str, Any], project: str, region: str) -> None:
        spec = body.get("trialJobSpec", {})
        job = {key: body[key] for key in ("displayName", "labels") if key in body}
        check_custom_job(
            self._jobs.store,
            self._jobs.jobs,
            {**job, "jobSpec": spec},
            project,
            region,
            spec_field="trial_job_spec",
            more=field_errors(body),
        )
        if text := self._jobs.refusal(spec):
            raise failed_precondition(text)

    def get_hyperparameter_tuning_job(
        self, request: job_service.GetHyperparameterTuningJobRequest
    ) -> hyperparameter_tuning_job.HyperparameterTuningJob:
        record = self._find(request.name)
        trials = self._table.trials(record.job_id)
        return to_message(record, trials, self._table.measurements(record.job_id))

    def list_hyperparameter_tuning_jobs(
        self, request: job_service.ListHyperparameterTuningJobsRequest
    ) -> job_service.ListHyperparameterTuningJobsResponse:
        """A page of tuning jobs, without their trials (T:job_service)."""
        page, token = list_page(self._jobs.store, self._table, request)
        return job_service.ListHyperparameterTuningJobsResponse(
            hyperparameter_tuning_jobs=[to_message(each, []) for each in page],
            next_page_token=token,
        )

    def cancel_hyperparameter_tuning_job(
        self, request: job_service.CancelHyperparameterTuningJobRequest
    ) -> empty_pb2.Empty:
        record = self._find(request.name)
        self._table.move(record.job_id, JobState.CANCELLING, only_from=CANCELLABLE)
        self._driver.wake()
        return empty_pb2.Empty()

    def delete_hyperparameter_tuning_job(
        self, request: job_service.DeleteHyperparameterTuningJobRequest
    ) -> operations_pb2.Operation:
        """Delete a tuning job that has ended, with its trials and their CustomJobs."""
        record = self._find(request.name)
        if not record.state.terminal:  # as of a CustomJob
            text = f"The {KIND} is in state {record.state} and cannot be deleted; cancel it first."
            raise failed_precondition(f"{text} ({record.name})")
        self._table.delete(record.job_id)
        return self._jobs.deleted(record)

    def _find(self, name: str) -> TuningRecord:
        match = _NAME.fullmatch(name)
        if match is None:
            raise invalid_argument(f"Invalid resource name: {name!r}; expected a {KIND}.")
        project, region = resolve_parent(self._jobs.store, match["parent"])
        record = self._table.get(match["id"])
        if record is None or (record.project, record.region) != (project, region):
            raise not_found(name, KIND)
        return record


def to_message(
    record: TuningRecord,
    trials: list[TrialRecord],
    measurements: Mapping[int, Sequence[Measurement]] | None = None,
) -> hyperparameter_tuning_job.HyperparameterTuningJob:
    """The record as the API's HyperparameterTuningJob; ``measurements`` by trial."""
    job = hyperparameter_tuning_job.HyperparameterTuningJob()
    reported = measurements or {}
    bodies = [_trial_body(trial, reported.get(trial.number, ())) for trial in trials]
    body = {**message_body(record), "trials": bodies}
    json_format.ParseDict(body, hyperparameter_tuning_job.HyperparameterTuningJob.pb(job))
    return job


def _trial_body(trial: TrialRecord, reported: Sequence[Measurement]) -> dict[str, Any]:
    """A trial in the API's JSON form, which has null for what is not set."""
    measured = _measurement_body(trial.measurement) if trial.measurement else None
    return {
        "id": str(trial.number),
        "state": trial.state.value,
        "parameters": [
            {"parameterId": name, "value": value} for name, value in trial.parameters.items()
        ],
        "customJob": trial.job_name,
        "startTime": trial.start_time,
        "endTime": trial.end_time,
        "infeasibleReason": trial.infeasible_reason,
        "finalMeasurement": measured,
        "measurements": [_measurement_body(each) for each in reported],
    }


def _measurement_body(measurement: Measurement) -> dict[str, Any]:
    return {
        "stepCount": str(measurement.step),
        "elapsedDuration": f"{measurement.elapsed:.6f}s",
        "metrics": [
            {"metricId": name, "value": value} for name, value in measurement.metrics.items()
        ],
    }


class Tuning:
    """The table of tuning jobs, and what drives them."""

    def __init__(self, home: Home) -> None:
        self.home, self.table = home, TuningTable(home.database)
        self._driver: TuningDriver | None = None

    def trial_id(self, job_id: str) -> str | None:
        """The id of the trial that a CustomJob runs; None if it runs none."""
        trial = self.table.trial_of(job_id)
        return str(trial.number) if trial else None

    def trials(self, tuning_id: str) -> list[tuple[str, str]]:
        """Each trial of a tuning job: its id, and that of its CustomJob."""
        return [(str(each.number), each.job_id) for each in self.table.trials(tuning_id)]

    def job(self, tuning_id: str) -> TuningRecord | None:
        """The tuning job with this id."""
        return self.table.get(tuning_id)

    def is_trial(self, job_id: str) -> bool:
        """Does this CustomJob run a trial?"""
        return self.table.trial_of(job_id) is not None

    def start(self, jobs: JobService) -> TuningService:
        """Go on with what an earlier server left; returns what serves tuning jobs.

        The scheduler has begun.
        """
        self._driver = TuningDriver(self.home, self.table, jobs.jobs, jobs.scheduler)
        self._driver.start()
        return TuningService(jobs, self.table, self._driver)

    def stop(self) -> None:
        """Start no further trial; trials that run are the scheduler's to end."""
        if self._driver:
            self._driver.stop()
