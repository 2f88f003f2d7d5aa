"""One method of a service that is asked over REST: what calls it, and what answers."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localgcp.access.callers import Guest
from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Fault, Service
from localgcp.inventory.store import Store

if TYPE_CHECKING:
    from localgcp.bigquery.service import BigQuery


@dataclass(frozen=True)
class Request:
    """A request that calls a method."""

    store: Store
    match: re.Match[str]
    """Of the method's path, still quoted."""
    body: Mapping[str, Any]
    query: Mapping[str, list[str]]
    guest: Guest | None = None
    """The job whose process asks; None for a program of the owner."""
    bigquery: BigQuery | None = None
    """The service, for methods of its own."""
    denied: tuple[str, ...] = ()
    """What faults of kind ``deny`` on this request match; an empty text matches all of it."""
    utilization: tuple[Fault, ...] = ()
    """Faults of kind ``utilization`` on it."""

    @property
    def permissions(self) -> list[str]:
        """The permissions that are asked about."""
        return list(self.body.get("permissions") or self.query.get("permissions", ()))

    def with_denied(self, denied: tuple[str, ...]) -> Request:
        """The same, met by faults."""
        return dataclasses.replace(self, denied=denied)

    def denies(self, *subjects: str) -> bool:
        """Whether a fault makes the answer about one of these subjects a no."""
        return any(text in subject for text in self.denied for subject in subjects)


@dataclass(frozen=True)
class ReadMethod:
    """A method: the requests that call it, and what answers them."""

    service: Service
    method: str
    verb: str
    path: re.Pattern[str]
    answer: Callable[[Request], dict[str, Any]]
    """Raises RefusedRequestError."""
    permission: str = ""
    """What it asks for: a fault of kind ``deny`` is answered with it. Without one, ``answer`` makes
    that a no itself."""


def refused(permission: str, on: str) -> RefusedRequestError:
    """As IAM words it, in every service."""
    text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
    return RefusedRequestError(403, text)
