"""Check the fields, names and permissions of requests of BigQuery."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from localgcp.access.callers import Guest
from localgcp.errors import BigQueryError
from localgcp.inventory.store import Store

_KEYS: Final = ("datasetId", "tableId")
_PLACE: Final = ("projectId", *_KEYS)
#: Kind of job -> required fields of the job's configuration.
_NEEDED: Final = {
    "query": ("query",),
    "load": ("sourceUris", *(f"destinationTable.{field}" for field in _PLACE)),
    "extract": ("destinationUris", *(f"sourceTable.{field}" for field in _PLACE)),
}


def require(document: Mapping[str, Any], *paths: str) -> None:
    """Check that fields with paths such as ``a.b`` are set. Raises BigQueryError."""
    for path in paths:
        value: Any = document
        for name in path.split("."):
            value = value.get(name) or {}
        if not value:
            raise BigQueryError("required", f"Required parameter is missing: {path}")


def check_job(
    kind: str, reference: Mapping[str, str], config: Mapping[str, Any], *, has_content: bool
) -> None:
    """Check a job of a kind with the configuration ``config``. Raises BigQueryError.

    ``has_content`` is true if the request contains the rows.
    """
    require(config, *_NEEDED[kind][has_content:])
    if config.get("destinationTable"):
        require(config, *_NEEDED["load"][1:])
    form = r"[A-Za-z0-9_-]{1,1024}"
    if (name := reference.get("jobId")) and not re.fullmatch(form, name):
        raise BigQueryError("invalid", f"Invalid job ID {name!r}: {form} is expected.")


def check_dataset(name: str) -> None:
    """Check the id of a dataset. Raises BigQueryError."""
    if not re.fullmatch(form := r"[A-Za-z0-9_]{1,1024}", name):
        raise BigQueryError("invalid", f"Invalid dataset ID {name!r}: {form}")


def check_same(place: Mapping[str, str], reference: Mapping[str, str]) -> None:
    """Check that a reference in the body agrees with the request's path. Raises BigQueryError."""
    for key, value in place.items():
        if (other := reference.get(key) or value) != value:
            text = f"Value {other} in content does not agree with value {value} of the path."
            raise BigQueryError("invalid", text)


_ALL: Final = frozenset({"roles/bigquery.admin", "roles/owner"})
#: Roles that contain bigquery.jobs.create.
JOB_USERS: Final = _ALL | {"roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor"}
#: Roles that contain bigquery.tables.updateData and bigquery.tables.getData.
WRITERS: Final = _ALL | {"roles/bigquery.dataEditor", "roles/bigquery.dataOwner", "roles/editor"}
#: Roles that contain bigquery.datasets.delete.
OWNERS: Final = _ALL | {"roles/bigquery.dataOwner"}
READERS: Final = WRITERS | {"roles/bigquery.dataViewer", "roles/viewer"}


def check_roles(
    store: Store, guest: Guest | None, place: Mapping[str, str], roles: frozenset[str], what: str
) -> None:
    """Check that the caller has a role on a project, dataset or table. Raises BigQueryError."""
    if guest is None:
        return
    member = f"serviceAccount:{guest.account}"
    policies = [f"projects/{place['projectId']}"]
    for kind, key in zip(("datasets", "tables"), _KEYS, strict=True):
        if key in place:
            policies.append(f"{policies[-1]}/{kind}/{place[key]}")
    if not any(roles & store.roles(policy, member) for policy in policies):
        label = ".".join([place["projectId"], *(place.get(k, "") for k in _KEYS)]).rstrip(".")
        who = f"The job runs as {guest.account}" if guest.account else "The job has no account"
        text = f"Access Denied: {label}: {what} denied (or it may not exist). {who}."
        raise BigQueryError("accessDenied", text)


def check_read(store: Store, guest: Guest | None, place: Mapping[str, str], owner: object) -> None:
    """Check that the caller may read a table. Raises BigQueryError.

    ``owner`` is the account whose query created an anonymous table.
    """
    if guest is not None and guest.account and guest.account == owner:
        return
    check_roles(store, guest, place, READERS, "bigquery.tables.getData")
