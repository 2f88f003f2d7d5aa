"""The log of a build, as Cloud Logging receives it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from vertex_training.errors import OperatorError

if TYPE_CHECKING:
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client

#: How far back is read again: entries can arrive late.
OVERLAP: Final = timedelta(seconds=10)
PAGE: Final = 1000
TIMEOUT: Final = 20.0


class BuildLog:
    """New lines of one build's log, each once."""

    def __init__(self, client: LoggingServiceV2Client, project: str, build_id: str) -> None:
        self._client, self._project, self._id = client, project, build_id
        self._seen: dict[str, datetime] = {}

    def new_lines(self) -> Iterator[str]:
        """Lines that arrived since the last call, oldest first.

        Raises:
            OperatorError: the log cannot be read.
        """
        from google.api_core.exceptions import GoogleAPICallError, RetryError
        from google.auth.exceptions import GoogleAuthError

        since = max(self._seen.values()) - OVERLAP if self._seen else None
        request = {
            "resource_names": [f"projects/{self._project}"],
            "filter": self._filter(since),
            "order_by": "timestamp asc",
            "page_size": PAGE,
        }
        try:
            for entry in self._client.list_log_entries(request=request, timeout=TIMEOUT):
                if entry.insert_id not in self._seen:
                    self._seen[entry.insert_id] = _time(entry)
                    yield from entry.text_payload.rstrip("\n").split("\n")
        except (GoogleAPICallError, RetryError, GoogleAuthError) as error:
            text = str(getattr(error, "message", "") or error)
            raise OperatorError(text) from None
        if since:
            self._seen = {key: time for key, time in self._seen.items() if time >= since}

    def _filter(self, since: datetime | None) -> str:
        parts = ['resource.type="build"', f'resource.labels.build_id="{self._id}"']
        if since:
            parts.append(f'timestamp>="{since.isoformat()}"')
        return " AND ".join(parts)


def _time(entry: Any) -> datetime:
    return entry.timestamp
