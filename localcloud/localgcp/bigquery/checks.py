"""What BigQuery refuses in a request before anything else: what is missing, and wrong names.

Google's discovery document calls the fields required, and says what names may have.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from localgcp.errors import BigQueryError

_PLACE: Final = ("projectId", "datasetId", "tableId")
#: What the configuration of a job needs, by its kind.
_NEEDED: Final = {
    "query": ("query",),
    "load": ("sourceUris", *(f"destinationTable.{each}" for each in _PLACE)),
    "extract": ("destinationUris", *(f"sourceTable.{each}" for each in _PLACE)),
}
_JOB: Final = re.compile(r"[A-Za-z0-9_-]{1,1024}")
_DATASET: Final = re.compile(r"[A-Za-z0-9_]{1,1024}")


def require(document: Mapping[str, Any], *paths: str) -> None:
    """Raise BigQueryError for the first of ``a.b`` that is not set."""
    for path in paths:
        found: Any = document
        for name in path.split("."):
            found = found.get(name) or {}
        if not found:
            raise BigQueryError("required", f"Required parameter is missing: {path}")


def check_job(kind: str, reference: Mapping[str, str], config: Mapping[str, Any]) -> None:
    """Raise BigQueryError for a job that can never run. ``config`` is that of its kind."""
    require(config, *_NEEDED[kind])
    if config.get("destinationTable"):
        require(config, *_NEEDED["load"][1:])
    if (name := reference.get("jobId")) and not _JOB.fullmatch(name):
        raise BigQueryError("invalid", f"Invalid job ID {name!r}: {_JOB.pattern} is expected.")


def check_dataset(name: str) -> None:
    """Raise BigQueryError for a dataset that cannot have this name."""
    if not _DATASET.fullmatch(name):
        raise BigQueryError("invalid", f"Invalid dataset ID {name!r}: {_DATASET.pattern}")


def check_same(place: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raise BigQueryError where a reference is not to what the path names."""
    for key, value in place.items():
        if (other := given.get(key) or value) != value:
            text = f"Value {other} in content does not agree with value {value} of the path."
            raise BigQueryError("invalid", text)
