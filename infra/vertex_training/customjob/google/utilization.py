"""Reads the accelerator utilization of a job from Cloud Monitoring by REST.

The local cloud has no accelerators, and simulates values.
https://docs.cloud.google.com/monitoring/api/ref_v3/rest/v3/projects.timeSeries/list
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from google.auth.exceptions import GoogleAuthError

from vertex_training.catalog import ACCELERATOR, READ_PERMISSION, metric_filter
from vertex_training.customjob.google.job_service import local_address
from vertex_training.customjob.google.prerequisites import session
from vertex_training.customjob.protocol.idle import SKEW, Reading, Series
from vertex_training.errors import OperatorError

#: Time limit of a response in seconds.
TIMEOUT: Final = 20
#: Maximum number of pages: a thousand replicas with eight accelerators, for a day.
MOST_PAGES: Final = 200


def read(project: str, name: str, seconds: float, account: str) -> Reading:
    """Return the accelerator utilization of the job ``name`` in the last ``seconds``.

    Raises OperatorError if the response is incomplete or this machine's clock is wrong.
    """
    local = local_address(project)
    base = f"http://{local}" if local else "https://monitoring.googleapis.com"
    now, number = time.time(), name.rpartition("/")[2]
    query = {
        "filter": f'{metric_filter(ACCELERATOR)} AND resource.labels.job_id="{number}"',
        "interval.startTime": _text(now - seconds),
        "interval.endTime": _text(now),
        "view": "FULL",
    }
    series, token, then = list[Series](), "", 0.0
    for _ in range(MOST_PAGES):
        page = {"pageToken": token} if token else {}
        url = f"{base}/v3/projects/{project}/timeSeries"
        answer, sent_at = _get(url, {**query, **page}, local=bool(local), account=account)
        then = then or sent_at
        if abs(then - now) > SKEW:
            raise OperatorError(
                f"the clocks of Cloud Monitoring and this machine differ by {then - now:+.0f} s, "
                "or the response took that long"
            )
        try:
            if errors := answer.get("executionErrors"):
                raise OperatorError(f"the response of Cloud Monitoring is incomplete: {errors}")
            series += [_series(time_series, number) for time_series in answer.get("timeSeries", ())]
            token = answer.get("nextPageToken", "")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise OperatorError(
                f"the response of Cloud Monitoring has an unexpected form: {what}"
            ) from None
        if not token:
            return Reading(then, series)
    raise OperatorError(f"Cloud Monitoring returned more than {MOST_PAGES} pages for {name}")


def _series(answer: Mapping[str, Any], job: str) -> Series:
    resource = answer["resource"]["labels"]
    if resource["job_id"] != job:
        raise ValueError(f"unexpected series of job {resource['job_id']}")
    points = [
        (
            datetime.fromisoformat(point["interval"]["endTime"]).timestamp(),
            float(point["value"]["doubleValue"]),
        )
        for point in answer.get("points", ())
    ]
    # The label that distinguishes accelerators is undocumented: use all labels.
    labels = sorted(answer.get("metric", {}).get("labels", {}).items())
    return Series(resource["task_name"], ",".join(f"{k}={v}" for k, v in labels), points)


def _get(
    url: str, query: Mapping[str, str], *, local: bool, account: str
) -> tuple[Mapping[str, Any], float]:
    """Return the JSON response and the time in its Date header."""
    import requests

    try:
        connected = session(local=local, account=account)
        answer = connected.request("GET", url, params=query, timeout=TIMEOUT)
        if not answer.ok:
            hint = f" (requires {READ_PERMISSION})" if answer.status_code == 403 else ""
            raise OperatorError(
                f"Cloud Monitoring returned {answer.status_code} {answer.reason}{hint}"
            )
        return answer.json(), parsedate_to_datetime(answer.headers["Date"]).timestamp()
    except (requests.RequestException, GoogleAuthError, KeyError, ValueError) as error:
        raise OperatorError(f"Cloud Monitoring did not respond: {type(error).__name__}") from None


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
