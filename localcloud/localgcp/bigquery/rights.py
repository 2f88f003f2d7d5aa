"""Who may ask BigQuery what: a job by the roles of its account; the owner's own programs all.

https://docs.cloud.google.com/bigquery/docs/access-control
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from localgcp.access.guests import Guest
from localgcp.errors import BigQueryError
from localgcp.inventory.store import Store

_ALL: Final = frozenset({"roles/bigquery.admin", "roles/owner"})
#: Roles that contain bigquery.jobs.create, on a project.
ASKERS: Final = _ALL | {"roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor"}
#: Roles that contain bigquery.tables.updateData, and .getData.
WRITERS: Final = _ALL | {
    "roles/bigquery.dataEditor",
    "roles/bigquery.dataOwner",
    "roles/editor",
}
READERS: Final = WRITERS | {"roles/bigquery.dataViewer", "roles/viewer"}


def check(
    store: Store, guest: Guest | None, place: Mapping[str, str], roles: frozenset[str], what: str
) -> None:
    """Raise BigQueryError unless the caller has one of the roles on a project, dataset or table."""
    if guest is None:
        return
    member = f"serviceAccount:{guest.account}"
    if not any(roles & store.roles(each, member) for each in _policies(place)):
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
    check(store, guest, place, READERS, "bigquery.tables.getData")


_KEYS: Final = ("datasetId", "tableId")


def _policies(place: Mapping[str, str]) -> Iterator[str]:
    """What may have a policy that counts, the project first."""
    yield (found := f"projects/{place['projectId']}")
    for kind, key in zip(("datasets", "tables"), _KEYS, strict=True):
        if key in place:
            yield (found := f"{found}/{kind}/{place[key]}")
