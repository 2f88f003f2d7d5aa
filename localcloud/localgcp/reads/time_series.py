"""Accelerator utilization of jobs: a fault sets the values, as the local cloud has no accelerators.

https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from localgcp.clients import log_filters
from localgcp.errors import FilterError, RefusedRequestError
from localgcp.reads.methods import ReadMethod, Request
from localgcp.vertex.records import JobRecord, JobState, JobTable

#: The only metric with values.
METRIC: Final = "ml.googleapis.com/training/accelerator/utilization"
#: The id of the method.
METHOD: Final = "monitoring.v3.projects.timeSeries.list"
_RESOURCE: Final = "cloudml_job"
_KNOWN: Final = ("metric.type", "resource.type", "resource.labels.job_id")
_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class AskedJob:
    """A running job that a request selects."""

    record: JobRecord

    @property
    def subjects(self) -> list[str]:
        """The texts in which the ``match`` of a fault is searched."""
        job = self.record
        return [job.job_id, job.display_name, *job.labels.values()]

    def replicas(self) -> Iterator[str]:
        """Yield the replicas with accelerators."""
        for number, pool in enumerate(self.record.spec.get("workerPoolSpecs", ())):
            if int((pool or {}).get("machineSpec", {}).get("acceleratorCount", 0)):
                for replica in range(int(pool.get("replicaCount", 1))):
                    yield f"workerpool{number}-{replica}"


def asked(request: Request) -> list[AskedJob]:
    """Return the jobs that a filter selects. Raises RefusedRequestError for an
    unsupported filter.
    """
    try:
        conditions = log_filters.parse(request.parameter("filter"), _KNOWN).equal
    except FilterError as error:
        raise RefusedRequestError(400, str(error)) from None
    if (conditions.get("metric.type"), conditions.get("resource.type", _RESOURCE)) != (
        METRIC,
        _RESOURCE,
    ):
        raise RefusedRequestError(400, f"the local cloud supports only the metric {METRIC}.")
    jobs = JobTable(request.store.path).list()
    return [
        AskedJob(job)
        for job in jobs
        if job.project == request.project
        and job.state is JobState.RUNNING
        and conditions.get("resource.labels.job_id") in (None, job.job_id)
    ]


def time_series(request: Request) -> dict[str, Any]:
    """Return one series for each replica with accelerators, newest points first."""
    series = [
        _series(job, replica, fault, request)
        for job in asked(request)
        if (fault := _fault(job, request))
        for replica in job.replicas()
    ]
    return {"timeSeries": series, "unit": "10^2.%"} if series else {"unit": "10^2.%"}


def _fault(job: AskedJob, request: Request) -> Any:
    return next(
        (
            utilization
            for utilization in request.utilization
            if not utilization.match or any(utilization.match in text for text in job.subjects)
        ),
        None,
    )


def _series(job: AskedJob, replica: str, fault: Any, request: Request) -> dict[str, Any]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    begin, end = (_time(request, f"interval.{key}Time") for key in ("start", "end"))
    times = [now - _MINUTE * number for number in range(int(fault.seconds // 60) + 1)]
    return {
        "metric": {"type": METRIC, "labels": {}},
        "resource": {
            "type": _RESOURCE,
            "labels": {
                "project_id": job.record.project,
                "job_id": job.record.job_id,
                "task_name": replica,
            },
        },
        "metricKind": "GAUGE",
        "valueType": "DOUBLE",
        "points": [
            {
                "interval": {"startTime": _text(time), "endTime": _text(time)},
                "value": {"doubleValue": fault.value},
            }
            for time in times
            if begin < time <= end
        ],
    }


def _time(request: Request, name: str) -> datetime:
    try:
        return log_filters.parse_time(request.parameter(name))
    except FilterError as error:
        raise RefusedRequestError(400, f"{name}: {error}") from None


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


METHODS: Final = {METHOD: ReadMethod(time_series)}
