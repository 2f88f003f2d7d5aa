"""Methods of ``google.cloud.aiplatform.v1.JobService`` for hyperparameter tuning jobs."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from localgcp.apis.client import hyperparameter_tuning_job, job_service
from localgcp.apis.server import failed_precondition
from localgcp.home import Home
from localgcp.tuning.checks import field_errors
from localgcp.tuning.driver import TuningDriver
from localgcp.tuning.records import TrialRecord, TuningRecord, TuningTable
from localgcp.vertex.checks import check_custom_job
from localgcp.vertex.collections import Body, Collection, serves
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

    def find(self, name: str, _context: Any = None) -> Body:
        """Return the tuning job with its trials. Raises ApiError."""
        record = self.record(name)
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
