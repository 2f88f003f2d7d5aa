"""What the local cloud of this machine does not run: for stacks of local projects."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Final

from vertex_training.customjob.request.checking import path_in_file
from vertex_training.customjob.request.job_file import JobFileResult
from vertex_training.errors import ConfigError, Location, Problem
from vertex_training.located_yaml import document

#: Id of these findings. They are no rule of the service: no comment sets them aside.
RULE: Final = "local-cannot-run"


def problems(data: bytes, shown: str, result: JobFileResult) -> Iterator[Problem]:
    """Problems of a job file that is right, located in it."""
    import psutil

    from localgcp.runner.refusals import refusals
    from localgcp.tuning import stopping

    request = result.request
    if request is None:
        return
    free = psutil.virtual_memory().available
    study = request.message.get("studySpec", {})
    for found in (
        *refusals(request.trial, _engine_missing, free, nearest=_takes_nearest()),
        *stopping.stored_only(study),
    ):
        location = _location(data, shown, request.kind.path_in_message(found.path))
        what = found.what.removesuffix(".")
        yield Problem(what, "", found.hint, (), location, RULE, found.level)


def _takes_nearest() -> bool:
    from localgcp.errors import LocalCloudError
    from localgcp.home import Home
    from localgcp.runner import substitutes

    try:
        return substitutes.takes_nearest(Home.find())
    except LocalCloudError:  # a folder that is no home of this user has no settings
        return False


def _location(data: bytes, shown: str, path: tuple[Any, ...]) -> Location:
    """Where the file has a field; the file where it does not say it itself."""
    try:
        parsed = document.read(data, shown)
    except ConfigError:
        return Location(shown)
    # A file may be the jobSpec alone.
    return parsed.location(path_in_file(parsed, path) or path_in_file(parsed, path[1:]))


@functools.cache
def _engine_missing() -> str:
    """Why no image runs here, or nothing. Asks the engines, so only once."""
    from localgcp.containers import host
    from localgcp.containers.registry import find_program
    from localgcp.home import Home

    if find_program() is None:
        return f"there is no container registry ({host.MISSING})"
    return "" if host.find_engine(Home.find()) else f"nothing runs containers ({host.MISSING})"
