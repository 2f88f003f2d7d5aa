"""Lists of jobs that lag behind, come in strange pages, or lose some."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from google.cloud.aiplatform_v1 import types

from vt.local.faults.model import Fault, Kind

_BEGINNING = "beginning"
"""Token of the page after an empty first one."""


def rewrite(
    fault: Fault, request: types.ListCustomJobsRequest, answer: Callable[[], object]
) -> object:
    """The answer to a ListCustomJobs request as the fault has it; `answer` gives the true one."""
    if fault.kind is Kind.SHORT_PAGES:
        return _short_pages(request, answer)
    if fault.kind is Kind.LOST_PAGE:
        if request.page_token:
            return types.ListCustomJobsResponse()
        request.page_size = 1
        return answer()
    response = answer()
    assert isinstance(response, types.ListCustomJobsResponse)
    newest = datetime.now(UTC) - timedelta(seconds=fault.seconds or 0)
    response.custom_jobs = [job for job in response.custom_jobs if _created(job) <= newest]
    return response


def _created(job: types.CustomJob) -> datetime:
    return types.CustomJob.pb(job).create_time.ToDatetime(UTC)


def _short_pages(request: types.ListCustomJobsRequest, answer: Callable[[], object]) -> object:
    """Pages may be shorter than asked for, and empty with more to come (google.aip.dev/158)."""
    if not request.page_token:
        return types.ListCustomJobsResponse(next_page_token=_BEGINNING)
    if request.page_token == _BEGINNING:
        request.page_token = ""
    request.page_size = 1
    return answer()
