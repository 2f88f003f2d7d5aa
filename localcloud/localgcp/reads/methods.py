"""One REST method of a service: its handler, and its name in faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localgcp.access.callers import Guest
from localgcp.apis.discovery import DescribedMethod
from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Fault, Service
from localgcp.inventory.store import Store

if TYPE_CHECKING:
    from localgcp.bigquery.service import BigQuery


@dataclass(frozen=True)
class Request:
    """One request to a method."""

    store: Store
    method: DescribedMethod
    name: str
    """Resource name in the path: ``projects/p/global/networks/n``, ``b/bucket``."""
    rest: str
    """Part of the path after the name: ``/global/firewalls``, ``:disable``."""
    variables: tuple[str, ...]
    """Variables of the path, in order."""
    body: Mapping[str, Any]
    query: Mapping[str, list[str]]
    guest: Guest | None = None
    """The job whose process calls; None for a program outside of jobs."""
    bigquery: BigQuery | None = None
    """The BigQuery service, for the methods of BigQuery."""
    denied: tuple[str, ...] = ()
    """``match`` of each ``deny`` fault on this request; an empty text denies all subjects."""
    utilization: tuple[Fault, ...] = ()
    """Faults of kind ``utilization`` on this request."""
    content: bytes | None = None
    """Content that an upload sends with the body."""

    @property
    def project(self) -> str:
        """The project in the request's path."""
        return self.name.split("/")[1]

    @property
    def permissions(self) -> list[str]:
        """The permissions to test."""
        return list(self.body.get("permissions") or self.query.get("permissions", ()))

    def parameter(self, name: str) -> str:
        """Return a query parameter, or ""."""
        return self.query.get(name, [""])[0]

    def denies(self, *subjects: str) -> bool:
        """Return whether a fault denies the request for one of these subjects."""
        return any(text in subject for text in self.denied for subject in subjects)


@dataclass(frozen=True)
class ReadMethod:
    """The handler of a method; ``fault`` is its name in faults and errors, if not its id."""

    answer: Callable[[Request], dict[str, Any]]
    """Returns the answer. Raises RefusedRequestError."""
    permission: str | None = ""
    """The required permission, which a ``deny`` fault reports as missing. "": SERVICE and the last
    two parts of the id. None: ``answer`` itself handles denials."""
    fault: str = ""
    """Name of the method in faults, ``SERVICE.METHOD``. "": the id without its version."""

    def permission_of(self, id_: str) -> str | None:
        """Return the IAM permission of the method with this id."""
        service, *_, collection, verb = id_.split(".")
        return f"{service}.{collection}.{verb}" if self.permission == "" else self.permission

    def fault_of(self, id_: str) -> tuple[Service, str]:
        """Return service and method name, as in faults, of the method with this id."""
        service, _, place = id_.split(".", 2)
        if self.fault:
            service, _, place = self.fault.partition(".")
        return Service(service), place


def refused(permission: str, on: str) -> RefusedRequestError:
    """Return IAM's permission error, which all services share."""
    text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
    return RefusedRequestError(403, text)
