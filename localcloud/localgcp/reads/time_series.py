"""Accelerator utilization of jobs: a fault sets the values, as the local cloud has no accelerators.

https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

from __future__ import annotations

from collections.abc import Iterator
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


def subjects_of(job: JobRecord) -> list[str]:
    """Return the texts in which the ``match`` of a fault is searched."""
    return [job.job_id, job.display_name, *job.labels.values()]


def _replicas(job: JobRecord) -> Iterator[str]:
    """Yield the replicas with accelerators."""
    for number, pool in enumerate(job.spec.get("workerPoolSpecs", ())):
        if int((pool or {}).get("machineSpec", {}).get("acceleratorCount", 0)):
            for replica in range(int(pool.get("replicaCount", 1))):
                yield f"workerpool{number}-{replica}"


def asked(request: Request) -> list[JobRecord]:
    """Return the running jobs that a filter selects. Raises RefusedRequestError."""
    try:
        conditions = log_filters.parse(request.parameter("filter"), _KNOWN).equal
    except FilterError as error:
        raise RefusedRequestError(400, str(error)) from None
    kinds = (conditions.get("metric.type"), conditions.get("resource.type", _RESOURCE))
    if kinds != (METRIC, _RESOURCE):
        raise RefusedRequestError(400, f"the local cloud supports only the metric {METRIC}.")
    return [
        job
        for job in JobTable(request.store.path).list()
        if job.project == request.project
        and job.state is JobState.RUNNING
        and conditions.get("resource.labels.job_id") in (None, job.job_id)
    ]


def time_series(request: Request) -> dict[str, Any]:
    """Return one series for each replica with accelerators, newest points first."""
    series = list[dict[str, Any]]()
    for job in asked(request):
        texts = subjects_of(job)
        faults = (f for f in request.utilization if any(f.match in text for text in texts))
        if fault := next(faults, None):
            series += [_series(job, replica, fault, request) for replica in _replicas(job)]
    return {"timeSeries": series, "unit": "10^2.%"} if series else {"unit": "10^2.%"}


def _series(job: JobRecord, replica: str, fault: Any, request: Request) -> dict[str, Any]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    begin, end = (_time(request, f"interval.{key}Time") for key in ("start", "end"))
    times = [now - _MINUTE * number for number in range(int(fault.seconds // 60) + 1)]
    return {
        "metric": {"type": METRIC, "labels": {}},
        "resource": {
            "type": _RESOURCE,
            "labels": {
                "project_id": job.project,
                "job_id": job.job_id,
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
