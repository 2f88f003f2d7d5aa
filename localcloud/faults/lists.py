"""Lists of jobs that lag behind, come in strange pages, or lose some."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from infra.customjob.google import vertex_api
from localcloud.faults.model import Fault, Kind

#: Token of the page after an empty first one.
_BEGINNING: Final = "beginning"


def rewrite(
    fault: Fault, request: vertex_api.ListCustomJobsRequest, answer: Callable[[], object]
) -> object:
    """The answer to a ListCustomJobs request as the fault has it; ``answer`` gives the true one."""
    if fault.kind is Kind.SHORT_PAGES:
        return _short_pages(request, answer)
    if fault.kind is Kind.LOST_PAGE:
        if request.page_token:
            return vertex_api.ListCustomJobsResponse()
        request.page_size = 1
        return answer()
    response = answer()
    assert isinstance(response, vertex_api.ListCustomJobsResponse)
    newest = datetime.now(UTC) - timedelta(seconds=fault.seconds or 0)
    response.custom_jobs = [job for job in response.custom_jobs if _created(job) <= newest]
    return response


def _created(job: vertex_api.CustomJob) -> datetime:
    return vertex_api.CustomJob.pb(job).create_time.ToDatetime(UTC)


def _short_pages(request: vertex_api.ListCustomJobsRequest, answer: Callable[[], object]) -> object:
    """Pages may be shorter than asked for, and empty with more to come (google.aip.dev/158)."""
    if not request.page_token:
        return vertex_api.ListCustomJobsResponse(next_page_token=_BEGINNING)
    if request.page_token == _BEGINNING:
        request.page_token = ""
    request.page_size = 1
    return answer()
