"""Requests to REST methods, and the handlers of the methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localgcp.access.callers import Guest
from localgcp.apis.discovery import DescribedMethod
from localgcp.errors import RefusedRequestError
from localgcp.faults.model import METHODS, Fault, Service
from localgcp.inventory.store import Store

if TYPE_CHECKING:
    from localgcp.bigquery.service import BigQuery


@dataclass(frozen=True)
class Request:
    """One request to a method."""

    store: Store
    method: DescribedMethod
    name: str
    """Resource name in the path, such as ``projects/p/global/networks/n`` or ``b/bucket``."""
    rest: str
    """Part of the path after the name, such as ``/global/firewalls`` or ``:disable``."""
    variables: tuple[str, ...]
    """Values of the path's variables, in order."""
    body: Mapping[str, Any]
    query: Mapping[str, list[str]]
    guest: Guest | None = None
    """The job whose process sent the request; None for a program outside of jobs."""
    bigquery: BigQuery | None = None
    """The BigQuery service, for the methods of BigQuery."""
    denied: tuple[str, ...] = ()
    """``match`` of each ``deny`` fault of this request; an empty text denies all subjects."""
    utilization: tuple[Fault, ...] = ()
    """Faults of the kind ``utilization`` of this request."""
    content: bytes | None = None
    """Content of an upload."""

    @property
    def project(self) -> str:
        """Return the project in the request's path."""
        return self.name.split("/")[1]

    @property
    def permissions(self) -> list[str]:
        """Return the permissions that the request tests."""
        return list(self.body.get("permissions") or self.query.get("permissions", ()))

    def parameter(self, name: str) -> str:
        """Return a query parameter, or "" for an unset parameter."""
        return self.query.get(name, [""])[0]

    def denies(self, *subjects: str) -> bool:
        """Return whether a fault denies the request for one of these subjects."""
        return any(text in subject for text in self.denied for subject in subjects)


@dataclass(frozen=True)
class ReadMethod:
    """The handler of a method."""

    answer: Callable[[Request], dict[str, Any]]
    """Returns the answer. Raises RefusedRequestError."""
    permission: str | None = ""
    """The permission that a ``deny`` fault reports as missing. "": the permission follows from the
    method's id. None: ``answer`` handles denials.
    """
    fault: str = ""
    """The name ``SERVICE.METHOD`` in faults. "": the name follows from the method's id."""

    def permission_of(self, id_: str) -> str | None:
        """Return the permission that the method with this id requires."""
        service, *_, collection, verb = id_.split(".")
        return f"{service}.{collection}.{verb}" if self.permission == "" else self.permission

    def fault_of(self, id_: str) -> tuple[Service, str]:
        """Return the service and the name that faults use for the method with this id."""
        if self.fault:
            service, _, place = self.fault.partition(".")
            return Service(service), place
        service, _, place = id_.split(".", 2)
        while place not in METHODS[service] and "." in place:
            place = place.partition(".")[2]
        return Service(service), place


def refused(permission: str, on: str) -> RefusedRequestError:
    """Return IAM's error for a missing permission on a resource."""
    text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
    return RefusedRequestError(403, text)
