"""Lists of jobs that lag behind, come in strange pages, or lose some."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from localgcp.faults.model import Fault, Kind

#: Token of the page after an empty first one.
_BEGINNING: Final = "beginning"


def rewrite(fault: Fault, request: Any, answer: Callable[[], Any], response_type: type) -> Any:
    """The answer to a request that lists jobs as the fault has it; ``answer`` is the true one."""
    if fault.kind is Kind.SHORT_PAGES:
        return _short_pages(request, answer, response_type)
    if fault.kind is Kind.LOST_PAGE:
        if request.page_token:
            return response_type()
        request.page_size = 1
        return answer()
    response = answer()
    newest = datetime.now(UTC) - timedelta(seconds=fault.seconds or 0)
    field = listed(response)
    setattr(response, field, [job for job in getattr(response, field) if _created(job) <= newest])
    return response


def listed(response: Any) -> str:
    """The field of a list's response that has the jobs."""
    return next(name for name in type(response).meta.fields if name != "next_page_token")


def _created(job: Any) -> datetime:
    return type(job).pb(job).create_time.ToDatetime(UTC)


def _short_pages(request: Any, answer: Callable[[], Any], response_type: type) -> Any:
    """Pages may be shorter than asked for, and empty with more to come (google.aip.dev/158)."""
    if not request.page_token:
        return response_type(next_page_token=_BEGINNING)
    if request.page_token == _BEGINNING:
        request.page_token = ""
    request.page_size = 1
    return answer()
