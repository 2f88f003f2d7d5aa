"""Faults on the way of calls to the job service (a ``grpc_front.Hook``)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import grpc

from infra.customjob.google import vertex_api
from localcloud.errors import ApiError
from localcloud.faults.connection import reset_peer
from localcloud.faults.lists import rewrite
from localcloud.faults.model import LISTS, OF_JOBS, Fault, Kind, Service
from localcloud.faults.table import Entry, FaultTable
from localcloud.vertex.api_errors import not_found
from localcloud.vertex.grpc_front import Call, TruncatedResponse
from localcloud.vertex.records import JobRecord, JobTable

Proceed = Callable[[], Any]
_BY_NAME: Final = ("GetCustomJob", "CancelCustomJob", "DeleteCustomJob")


class CallFaults:
    """Applies the faults of the table; of several, the one added first is the outermost."""

    def __init__(self, table: FaultTable, jobs: JobTable, stopping: threading.Event) -> None:
        self._table, self._jobs, self._stopping = table, jobs, stopping

    def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Make the call, with what goes wrong on its way. Raises ApiError."""
        taken = self._table.count_call(
            Service.JOBS,
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
            return rewrite(fault, call.request, inner)
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
        """Return if the call goes on; raise ApiError if it ends here."""
        fault, code = entry.fault, grpc.StatusCode
        match fault.kind:
            case Kind.ERROR:
                raise ApiError(code[fault.code], f"fault {entry.id} of the local cloud")
            case Kind.DELAY:
                self._stopping.wait(fault.seconds)
            case Kind.DROP:
                self._wait_until_caller_gives_up(call.context)
                raise ApiError(code.DEADLINE_EXCEEDED, "nobody listens any more")
            case Kind.RESET:
                reset_peer(call.context.peer())
                raise ApiError(code.UNAVAILABLE, "the connection is closed")
            case Kind.HOLD:
                if not self._table.hold(entry.id, _describe(call), self._stopping):
                    raise ApiError(code.UNAVAILABLE, f"fault {entry.id} was cleared")
            case _:
                raise AssertionError(fault.kind)

    def _wait_until_caller_gives_up(self, context: grpc.ServicerContext) -> None:
        over = threading.Event()
        if context.add_callback(over.set):
            over.wait()  # the end of the server ends the call, too

    def _without_record(self, fault: Fault, call: Call, inner: Proceed) -> Any:
        """Hide jobs that fit from lists, and have no record of one that is named."""
        if call.method in _BY_NAME:
            raise not_found(call.request.name)
        response = inner()
        if call.method == "ListCustomJobs":
            response.custom_jobs = [
                job
                for job in response.custom_jobs
                if not fault.fits(Service.JOBS, call.method, [job.name, *_texts(job)])
            ]
        return response

    def _subjects(self, call: Call, fault: Fault) -> list[str]:
        """What a fault's ``match`` is looked for in."""
        request = call.request
        if call.method == "CreateCustomJob":
            return _texts(request.custom_job)
        if call.method == "ListCustomJobs":
            # A record that is lost is lost from the answer, whatever was asked for.
            return [fault.match if fault.kind is Kind.LOST_RECORD else request.filter]
        record = self._jobs.get(request.name.rpartition("/")[2])
        return [request.name, *(_texts(record) if record else ())]


def _texts(job: JobRecord | vertex_api.CustomJob) -> list[str]:
    return [job.display_name, *job.labels.values()]


def _describe(call: Call) -> str:
    """A held call as ``vt local fault list`` shows it."""
    request = call.request
    job = getattr(request, "custom_job", None)
    named = job.display_name if job else getattr(request, "name", "") or request.filter
    return f"{call.method} {named}".strip()
