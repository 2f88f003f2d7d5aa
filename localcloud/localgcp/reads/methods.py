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
    """The resource that its path names: ``projects/p/global/networks/n``, ``b/bucket``."""
    rest: str
    """The path after the name: ``/global/firewalls``, ``:disable``."""
    variables: tuple[str, ...]
    """The variables of its path, in their order."""
    body: Mapping[str, Any]
    query: Mapping[str, list[str]]
    guest: Guest | None = None
    """The job whose process calls; None for a program of the owner."""
    bigquery: BigQuery | None = None
    """The service, for methods of its own."""
    denied: tuple[str, ...] = ()
    """Text that faults of kind ``deny`` match on this request; an empty text matches all of it."""
    utilization: tuple[Fault, ...] = ()
    """Faults of kind ``utilization`` on it."""
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
    """Raises RefusedRequestError."""
    permission: str | None = ""
    """The permission it requires: a fault of kind ``deny`` reports it. "": SERVICE and the last two
    parts of the id. None: ``answer`` makes that a no itself."""
    fault: str = ""
    """The method as faults name it, ``SERVICE.METHOD``. "": the id without its version."""

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
