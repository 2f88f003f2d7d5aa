"""Roles with which the code of a job may query, read and write.

Programs outside of jobs may do everything:
https://docs.cloud.google.com/bigquery/docs/access-control
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from localgcp.access.callers import Guest
from localgcp.errors import BigQueryError
from localgcp.inventory.store import Store
from localgcp.vertex.agents import has_role

_KEYS: Final = ("datasetId", "tableId")
_ALL: Final = frozenset({"roles/bigquery.admin", "roles/owner"})
#: Roles that contain bigquery.jobs.create, on a project.
ASKERS: Final = _ALL | {"roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor"}
#: Roles that contain bigquery.tables.updateData and bigquery.tables.getData.
WRITERS: Final = _ALL | {
    "roles/bigquery.dataEditor",
    "roles/bigquery.dataOwner",
    "roles/editor",
}
READERS: Final = WRITERS | {"roles/bigquery.dataViewer", "roles/viewer"}


def check_roles(
    store: Store, guest: Guest | None, place: Mapping[str, str], roles: frozenset[str], what: str
) -> None:
    """Raise BigQueryError unless the caller has one of the roles on a project, dataset or table."""
    if guest is None or has_role(store, guest.account, roles, *_policies(place)):
        return
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
    """Yield the resources whose policies apply, the project first."""
    yield (name := f"projects/{place['projectId']}")
    for kind, key in zip(("datasets", "tables"), _KEYS, strict=True):
        if key in place:
            yield (name := f"{name}/{kind}/{place[key]}")
