"""Refuses requests with missing fields, missing permissions or invalid names.

Google's discovery document calls the fields required, and says what names may have. A job asks by
the roles of its account; the owner's own programs may all:
https://docs.cloud.google.com/bigquery/docs/access-control
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from localgcp.access.callers import Guest
from localgcp.errors import BigQueryError
from localgcp.inventory.store import Store

_KEYS: Final = ("datasetId", "tableId")
_PLACE: Final = ("projectId", *_KEYS)
#: Required fields in a job's configuration, by kind of job.
_NEEDED: Final = {
    "query": ("query",),
    "load": ("sourceUris", *(f"destinationTable.{field}" for field in _PLACE)),
    "extract": ("destinationUris", *(f"sourceTable.{field}" for field in _PLACE)),
}
_JOB: Final = re.compile(r"[A-Za-z0-9_-]{1,1024}")
_DATASET: Final = re.compile(r"[A-Za-z0-9_]{1,1024}")


def require(document: Mapping[str, Any], *paths: str) -> None:
    """Raise BigQueryError for the first unset field; ``paths`` are like ``a.b``."""
    for path in paths:
        value: Any = document
        for name in path.split("."):
            value = value.get(name) or {}
        if not value:
            raise BigQueryError("required", f"Required parameter is missing: {path}")


def check_job(
    kind: str, reference: Mapping[str, str], config: Mapping[str, Any], *, has_content: bool
) -> None:
    """Raise BigQueryError for a job that can never run.

    ``config`` is that of its kind; ``has_content``: the rows came with the request.
    """
    require(config, *_NEEDED[kind][has_content:])
    if config.get("destinationTable"):
        require(config, *_NEEDED["load"][1:])
    if (name := reference.get("jobId")) and not _JOB.fullmatch(name):
        raise BigQueryError("invalid", f"Invalid job ID {name!r}: {_JOB.pattern} is expected.")


def check_dataset(name: str) -> None:
    """Raise BigQueryError for an invalid dataset id."""
    if not _DATASET.fullmatch(name):
        raise BigQueryError("invalid", f"Invalid dataset ID {name!r}: {_DATASET.pattern}")


def check_same(place: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raise BigQueryError if a reference in the body differs from the request's path."""
    for key, value in place.items():
        if (other := given.get(key) or value) != value:
            text = f"Value {other} in content does not agree with value {value} of the path."
            raise BigQueryError("invalid", text)


_ALL: Final = frozenset({"roles/bigquery.admin", "roles/owner"})
#: Roles that contain bigquery.jobs.create, on a project.
ASKERS: Final = _ALL | {"roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor"}
#: Roles that contain bigquery.tables.updateData and bigquery.tables.getData.
WRITERS: Final = _ALL | {
    "roles/bigquery.dataEditor",
    "roles/bigquery.dataOwner",
    "roles/editor",
}
#: Roles that contain bigquery.datasets.delete.
OWNERS: Final = _ALL | {"roles/bigquery.dataOwner"}
READERS: Final = WRITERS | {"roles/bigquery.dataViewer", "roles/viewer"}


def check_roles(
    store: Store, guest: Guest | None, place: Mapping[str, str], roles: frozenset[str], what: str
) -> None:
    """Raise BigQueryError unless the caller has one of the roles on a project, dataset or table."""
    if guest is None:
        return
    member = f"serviceAccount:{guest.account}"
    if not any(roles & store.roles(policy, member) for policy in _policies(place)):
        label = ".".join([place["projectId"], *(place.get(k, "") for k in _KEYS)]).rstrip(".")
        who = f"The job runs as {guest.account}" if guest.account else "The job has no account"
        text = f"Access Denied: {label}: {what} denied (or it may not exist). {who}."
        raise BigQueryError("accessDenied", text)


def check_read(store: Store, guest: Guest | None, place: Mapping[str, str], owner: object) -> None:
    """Raise BigQueryError unless the caller may read a table.

    A result in the service's own table is for the account alone whose job made it, ``owner``.
    """
    if guest is not None and guest.account and guest.account == owner:
        return
    check_roles(store, guest, place, READERS, "bigquery.tables.getData")


def _policies(place: Mapping[str, str]) -> Iterator[str]:
    yield (name := f"projects/{place['projectId']}")
    for kind, key in zip(("datasets", "tables"), _KEYS, strict=True):
        if key in place:
            yield (name := f"{name}/{kind}/{place[key]}")
