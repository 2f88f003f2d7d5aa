"""Find the method of a REST request, apply faults and answer the request."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from localgcp.access.gate import connection_of, guest_at, reset_peer
from localgcp.apis import discovery, field_rules
from localgcp.bigquery import service as bigquery
from localgcp.bigquery.service import BigQuery, Call
from localgcp.clients import log_filters
from localgcp.errors import (
    BigQueryError,
    ExchangeEndedError,
    FilterError,
    InvalidRequestError,
    RefusedRequestError,
)
from localgcp.faults.model import Kind, Service
from localgcp.faults.table import Entry, FaultTable
from localgcp.inventory.machines import is_region
from localgcp.inventory.store import Store
from localgcp.reads import compute, projects, resources
from localgcp.reads.methods import ReadMethod, Request, refused
from localgcp.vertex.records import JobRecord, JobState, JobTable

#: The only metric with time series: the accelerator utilization that faults set
#: (https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list).
METRIC: Final = "ml.googleapis.com/training/accelerator/utilization"
_TIME_SERIES: Final = "monitoring.v3.projects.timeSeries.list"
_RESOURCE: Final = "cloudml_job"


def _subjects(job: JobRecord) -> list[str]:
    return [job.job_id, job.display_name, *job.labels.values()]


def _replicas_with_accelerators(job: JobRecord) -> Iterator[str]:
    for number, pool in enumerate(job.spec.get("workerPoolSpecs", ())):
        if int((pool or {}).get("machineSpec", {}).get("acceleratorCount", 0)):
            for replica in range(int(pool.get("replicaCount", 1))):
                yield f"workerpool{number}-{replica}"


def selected_jobs(request: Request) -> list[JobRecord]:
    """Return the running jobs that the request's filter selects. Raises RefusedRequestError."""
    known = ("metric.type", "resource.type", "resource.labels.job_id")
    try:
        conditions = log_filters.parse(request.parameter("filter"), known).equal
    except FilterError as error:
        raise RefusedRequestError(400, str(error)) from None
    resource_type = conditions.get("resource.type", _RESOURCE)
    if (conditions.get("metric.type"), resource_type) != (METRIC, _RESOURCE):
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
    series = []
    for job in selected_jobs(request):
        texts = _subjects(job)
        faults = (f for f in request.utilization if any(f.match in text for text in texts))
        if fault := next(faults, None):
            replicas = _replicas_with_accelerators(job)
            series += [_series(job, replica, fault, request) for replica in replicas]
    return {"timeSeries": series, "unit": "10^2.%"} if series else {"unit": "10^2.%"}


def _series(job: JobRecord, replica: str, fault: Any, request: Request) -> dict[str, Any]:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    bounds = []
    for name in ("interval.startTime", "interval.endTime"):
        try:
            bounds.append(log_filters.parse_time(request.parameter(name)))
        except FilterError as error:
            raise RefusedRequestError(400, f"{name}: {error}") from None
    times = [now - timedelta(minutes=n) for n in range(int(fault.seconds // 60) + 1)]
    texts = [t.isoformat().replace("+00:00", "Z") for t in times if bounds[0] < t <= bounds[1]]
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
                "interval": {"startTime": time, "endTime": time},
                "value": {"doubleValue": fault.value},
            }
            for time in texts
        ],
    }


def _of_bigquery(answer: Callable[[BigQuery, Call], dict[str, Any]]) -> ReadMethod:
    def answered(request: Request) -> dict[str, Any]:
        assert request.bigquery is not None
        call = Call(request.variables, request.body, request.query, request.guest, request.content)
        return answer(request.bigquery, call)

    return ReadMethod(answered)


#: Method id (``localgcp.apis.discovery``) -> handler.
METHODS: Final[Mapping[str, ReadMethod]] = {
    **resources.POLICIES,
    **compute.METHODS,
    **projects.METHODS,
    _TIME_SERIES: ReadMethod(time_series),
    **{f"bigquery.v2.{name}": _of_bigquery(answer) for name, answer in bigquery.METHODS.items()},
}


class Reads:
    """Serves the methods of ``METHODS``."""

    def __init__(
        self,
        store: Store,
        faults: FaultTable,
        stopping: threading.Event,
        warehouse: BigQuery | None = None,
    ) -> None:
        self._store, self._faults, self._stopping = store, faults, stopping
        self._bigquery = warehouse

    def answer(self, verb: str, target: str, body: bytes, connection: str = "") -> bytes | None:
        """Return the answer as JSON; None for an unknown method. Raises RefusedRequestError."""
        content = None
        if target.startswith(bigquery.UPLOAD):
            target, body, content = bigquery.parse_upload(target, body)
        path, _, query = target.partition("?")
        called = discovery.find(verb, path)
        if called is None:
            return None
        try:
            document = json.loads(body) if body.strip() else {}
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise RefusedRequestError(400, "the body is not a JSON object.")
        document = _without_nulls(document)
        if called.id.startswith("bigquery."):
            document = bigquery.with_texts(document)
        called.check_query(query, bigquery.UNDESCRIBED.get(called.id, ()))
        called.check_body(document)
        if called.id.endswith((".insert", ".create")):
            _check_fields(called, path, document)
        request = Request(
            self._store,
            called,
            *called.parts(path),
            called.variables(path),
            document,
            parse_qs(query),
            content=content,
        )
        read = METHODS.get(called.id)
        if read is None:
            answer = resources.METHODS[called.id](request)
        else:
            answer = self._answer(read, request, unquote(path), connection)
        return json.dumps(called.fit(answer)).encode()

    def _answer(
        self, read: ReadMethod, request: Request, path: str, connection: str
    ) -> dict[str, Any]:
        id_ = request.method.id
        service, method = read.fault_of(id_)
        if service is Service.BIGQUERY:
            peer = connection_of(connection)
            guest = None if peer is None else guest_at(peer)
            request = dataclasses.replace(request, guest=guest, bigquery=self._bigquery)
        subjects = [path, *request.permissions]
        if id_ == _TIME_SERIES:
            subjects += [text for job in selected_jobs(request) for text in _subjects(job)]
        if reference := request.body.get("jobReference"):
            subjects.append(str(reference.get("jobId")))
        taken = self._faults.count_call(service, method, lambda _: subjects, lambda _: True)
        self._meet(taken, "before", path, connection)
        faults = [entry.fault for entry in taken]
        denied = tuple(fault.match for fault in faults if fault.kind is Kind.DENY)
        permission = read.permission_of(id_)
        if denied and permission:
            raise refused(permission, path)
        patches = [fault.patch for fault in faults if fault.kind is Kind.PATCH]
        used = tuple(fault for fault in faults if fault.kind is Kind.UTILIZATION)
        request = dataclasses.replace(request, denied=denied, utilization=used)
        try:
            answer = read.answer(request)
        except RefusedRequestError as error:
            if error.status != 404 or not patches:
                raise
            answer = {}
        self._meet(taken, "after", path, connection)
        for patch in patches:
            answer = merged(answer, patch)
        return answer

    def _meet(self, taken: list[Entry], when: str, path: str, connection: str) -> None:
        # Raises ExchangeEndedError for a fault that ends the connection.
        for entry in taken:
            if entry.fault.when != when:
                continue
            if entry.fault.kind is Kind.RESET:
                reset_peer(connection)
                raise ExchangeEndedError
            self._faults.meet(
                entry, path, self._stopping, lambda code, text: RefusedRequestError(int(code), text)
            )


def _check_fields(
    called: discovery.DescribedMethod, path: str, document: Mapping[str, Any]
) -> None:
    of_compute = called.id.startswith("compute.")
    errors = list(field_rules.errors(called.request, document, "resource" if of_compute else ""))
    # BigQuery's job checks report missing fields of jobs.
    words = "" if called.id == "bigquery.v2.jobs.insert" else "Required parameter is missing: "
    for field, text in errors if called.id.startswith("bigquery.") else ():
        name = field_rules.json_name(field)
        if text != field_rules.REQUIRED:
            raise BigQueryError("invalid", f"Invalid value for {name}: {text}")
        if words:
            raise BigQueryError("required", f"{words}{name}")
    nameless = ("resource.name", field_rules.REQUIRED)
    if of_compute and not document.get("name") and nameless not in errors:
        errors.append(nameless)
    region = re.search("/regions/([^/]+)", path)
    if region and not is_region(region[1]):
        errors.append(("region", f"Unknown region {region[1][:80]!r}."))
    if errors and not called.id.startswith("bigquery."):
        missing = "Required field '{}' not specified"
        raise InvalidRequestError(
            [(at, missing.format(at) if t == field_rules.REQUIRED else t) for at, t in errors]
        )


def merged(value: object, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``value`` after a merge patch (https://www.rfc-editor.org/rfc/rfc7396).

    >>> merged({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"d": 3}})
    {'b': {'c': 2, 'd': 3}}
    """
    document = dict(value) if isinstance(value, dict) else {}
    for name, new in patch.items():
        if new is None:
            document.pop(name, None)
        else:
            document[name] = merged(document.get(name), new) if isinstance(new, dict) else new
    return document


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    if isinstance(value, dict):
        return {
            key: _without_nulls(element) for key, element in value.items() if element is not None
        }
    return value
