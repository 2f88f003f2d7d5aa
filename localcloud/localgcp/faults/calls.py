"""Apply faults to calls (as an ``apis.server.Hook``) and to long-running operations."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import grpc

from localgcp.access.gate import reset_peer
from localgcp.apis.client import batch, job_service
from localgcp.apis.server import Call, TruncatedResponse, not_found
from localgcp.errors import ApiError, ServerStoppingError
from localgcp.faults.model import LISTS, METHODS, OF_JOBS, Fault, Kind, Service
from localgcp.faults.table import Entry, FaultTable
from localgcp.vertex.records import JobRecord, RecordTable

Proceed = Callable[[], Any]
_LISTS: Final = {
    "ListCustomJobs": job_service.ListCustomJobsResponse,
    "ListHyperparameterTuningJobs": job_service.ListHyperparameterTuningJobsResponse,
    "ListJobs": batch.ListJobsResponse,
}
#: Collection in a resource name -> kind of resource in errors.
_KINDS: Final = {"hyperparameterTuningJobs": "HyperparameterTuningJob", "jobs": "Job"}


class CallFaults:
    """Applies faults to calls. The oldest of several faults is applied first."""

    def __init__(
        self,
        table: FaultTable,
        jobs: RecordTable[Any],
        stopping: threading.Event,
        *others: RecordTable[Any],
    ) -> None:
        self._table, self._tables, self._stopping = table, (jobs, *others), stopping

    def __call__(self, call: Call, proceed: Proceed) -> Any:
        services = (Service.JOBS, Service.MODELS)
        service = next((s for s in services if call.method in METHODS[s]), None)
        if service is None:
            return proceed()
        taken = self._table.count_call(
            service,
            call.method,
            lambda fault: self._subjects(call, fault),
            lambda fault: fault.kind not in OF_JOBS,
        )
        return self._apply(taken, call, proceed)

    def _apply(self, taken: list[Entry], call: Call, proceed: Proceed) -> Any:
        if not taken:
            return proceed()
        first, rest = taken[0], taken[1:]
        fault = first.fault

        def inner() -> Any:
            return self._apply(rest, call, proceed)

        if fault.kind in LISTS:
            return rewrite(fault, call.request, inner, _LISTS[call.method])
        if fault.kind is Kind.LOST_RECORD:
            return self._without_record(fault, call, inner)
        if fault.kind is Kind.TRUNCATE:
            return TruncatedResponse(inner())
        if fault.when == "before":
            self._apply_fault(first, call)
            return inner()
        response = inner()
        self._apply_fault(first, call)
        return response

    def _apply_fault(self, entry: Entry, call: Call) -> None:
        fault, code = entry.fault, grpc.StatusCode
        match fault.kind:
            case Kind.DROP:
                ended = threading.Event()
                if call.context.add_callback(ended.set):
                    ended.wait()  # until the caller's deadline or the end of the server
                raise ApiError(code.DEADLINE_EXCEEDED, "fault `drop`: no answer is sent")
            case Kind.RESET:
                reset_peer(call.context.peer())
                raise ApiError(code.UNAVAILABLE, "fault `reset`: the connection was closed")
            case _:
                if not self._table.meet(entry, _describe(call), self._stopping, _api_error):
                    raise ApiError(
                        code.UNAVAILABLE, f"fault {entry.id} was cleared while it held the call"
                    )

    def _without_record(self, fault: Fault, call: Call, inner: Proceed) -> Any:
        """Omit matching jobs from lists, and raise an error 404 for requests of a matching job."""
        if call.method.startswith(("Get", "Cancel", "Delete")) and "Operation" not in call.method:
            name: str = call.request.name
            collection = name.rpartition("/")[0].rpartition("/")[2]
            raise not_found(name, _KINDS.get(collection, "CustomJob"))
        response = inner()
        if call.method.startswith("List"):
            field = listed(response)
            kept = [
                job
                for job in getattr(response, field)
                if not fault.fits(Service.JOBS, call.method, [job.name, *_texts(job)])
            ]
            setattr(response, field, kept)
        return response

    def _subjects(self, call: Call, fault: Fault) -> list[str]:
        request = call.request
        if call.method in METHODS[Service.MODELS]:
            return [str(request)]
        job = _created(request)
        if job is not None:
            return [getattr(request, "job_id", ""), *_texts(job)]
        if call.method.startswith("List"):
            # A lost record is missing in the lists of all filters.
            return [fault.match if fault.kind is Kind.LOST_RECORD else request.filter]
        rows = (table.get(request.name.rpartition("/")[2]) for table in self._tables)
        record = next(filter(None, rows), None)
        return [request.name, *(_texts(record) if record else ())]


def _api_error(code: str, text: str) -> ApiError:
    return ApiError(grpc.StatusCode[code], text)


def _created(request: Any) -> Any:
    names = ("custom_job", "hyperparameter_tuning_job", "job")
    bodies = (getattr(request, name, None) for name in names)
    return next((job for job in bodies if job is not None), None)


def _texts(job: JobRecord | Any) -> list[str]:
    return [getattr(job, "display_name", ""), *getattr(job, "labels", {}).values()]


def _describe(call: Call) -> str:
    request = call.request
    job = _created(request)
    if job is not None:
        return f"{call.method} {getattr(request, 'job_id', '') or _texts(job)[0]}"
    fields = ("name", "parent_model", "model_id", "endpoint", "filter", "parent")
    candidates = (getattr(request, field, "") for field in fields)
    name = next((text for text in candidates if text and isinstance(text, str)), "")
    return f"{call.method} {name}".strip()


class OperationFaults:
    """Applies faults to long-running operations: delays, holds and errors."""

    def __init__(self, table: FaultTable, stopping: threading.Event) -> None:
        self._table, self._stopping = table, stopping

    def __call__(self, when: str, method: str, request: Mapping[str, Any]) -> None:
        for entry in self._table.count_call(
            Service.OPERATIONS,
            method,
            lambda _: [json.dumps(request)],
            lambda fault: fault.when == when,
        ):
            self._table.meet(entry, f"{method} {when}", self._stopping, _api_error)
            if self._stopping.is_set():
                raise ServerStoppingError


def rewrite(fault: Fault, request: Any, answer: Callable[[], Any], response_type: type) -> Any:
    """Apply a fault to the response of a list method. ``answer`` returns the unchanged response."""
    if fault.kind is Kind.SHORT_PAGES:
        # Pages may be shorter than requested, or empty before the last page (google.aip.dev/158).
        if not request.page_token:
            return response_type(next_page_token="beginning")
        if request.page_token == "beginning":
            request.page_token = ""
        request.page_size = 1
        return answer()
    if fault.kind is Kind.LOST_PAGE:
        if request.page_token:
            return response_type()
        request.page_size = 1
        return answer()
    response = answer()
    assert fault.seconds is not None  # a fault of the kind ``stale`` has seconds
    newest = datetime.now(UTC) - timedelta(seconds=fault.seconds)
    field = listed(response)
    jobs = getattr(response, field)
    old = [job for job in jobs if type(job).pb(job).create_time.ToDatetime(UTC) <= newest]
    setattr(response, field, old)
    return response


def listed(response: Any) -> str:
    """Return the name of a list answer's field with the jobs."""
    return next(name for name in type(response).meta.fields if name != "next_page_token")
