"""What a deployment asks other services over REST, answered from the inventory.

Permissions of accounts and projects, reservations, and quotas of Vertex AI. Callers have no
identity here, so who asks holds every permission on what exists; and there are no quotas. A fault
of kind ``deny`` makes an answer a no.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from localgcp.errors import RefusedRequestError
from localgcp.faults.model import Kind, Service
from localgcp.faults.table import FaultTable
from localgcp.inventory import reservations
from localgcp.inventory.store import Store

_UNLIMITED: Final = "-1"


@dataclass(frozen=True)
class _Read:
    """A method: the requests that call it, and what answers them."""

    service: Service
    method: str
    verb: str
    path: re.Pattern[str]
    answer: Callable[[Reads, re.Match[str], Mapping[str, Any], bool], dict[str, Any]]


class Reads:
    """Serves the methods of ``METHODS``."""

    def __init__(self, store: Store, faults: FaultTable, stopping: threading.Event) -> None:
        self._store, self._faults, self._stopping = store, faults, stopping

    def answer(self, verb: str, path: str, body: bytes) -> bytes | None:
        """The answer as JSON; None if no method is called so. Raises RefusedRequestError."""
        for read in METHODS:
            found = read.path.fullmatch(path) if read.verb == verb else None
            if found:
                denied = self._is_denied(read, unquote(path))
                return json.dumps(read.answer(self, found, _document(body), denied)).encode()
        return None

    def _is_denied(self, read: _Read, path: str) -> bool:
        """Whether a fault makes the answer a no. Raises RefusedRequestError for an error."""
        taken = self._faults.count_call(read.service, read.method, lambda _: [path], lambda _: True)
        for entry in taken:
            if entry.fault.kind is Kind.DELAY:
                self._stopping.wait(entry.fault.seconds)
            if entry.fault.kind is Kind.ERROR:
                text = f"fault {entry.id} of the local cloud"
                raise RefusedRequestError(int(entry.fault.code), text)
        return any(entry.fault.kind is Kind.DENY for entry in taken)

    def permissions(
        self, match: re.Match[str], body: Mapping[str, Any], denied: bool
    ) -> dict[str, Any]:
        """All that are asked for, on an account or a project that exists; none on others."""
        email = match.groupdict().get("account")
        if email is None:
            exists = match["project"] in self._store.projects()
        else:
            exists = self._store.account(unquote(email)) is not None
        return {"permissions": body.get("permissions", [])} if exists and not denied else {}

    def reservation(
        self, match: re.Match[str], _body: Mapping[str, Any], denied: bool
    ) -> dict[str, Any]:
        """A reservation that is there."""
        name = match["name"]
        found = None if denied else reservations.find(self._store, name)
        if found is None:
            raise RefusedRequestError(404, f"The resource '{name}' was not found")
        return {"name": name.rpartition("/")[2], "zone": found.zone, "status": "READY"}

    def quota(self, match: re.Match[str], _body: Mapping[str, Any], denied: bool) -> dict[str, Any]:
        """One limit, which is none."""
        bucket = {} if denied else {"effectiveLimit": _UNLIMITED}  # JSON leaves 0 out
        limits = [{"unit": "1/{project}/{region}", "quotaBuckets": [bucket]}]
        return {"metric": unquote(match["metric"]), "consumerQuotaLimits": limits}


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body) if body else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RefusedRequestError(400, "the body is no JSON object.")
    return found


METHODS: Final = (
    _Read(
        Service.IAM,
        "TestIamPermissions",
        "POST",
        re.compile(r"/v1/projects/[^/]+/serviceAccounts/(?P<account>[^/:]+):testIamPermissions"),
        Reads.permissions,
    ),
    _Read(
        Service.IAM,
        "TestIamPermissions",
        "POST",
        re.compile(r"/v3/projects/(?P<project>[^/:]+):testIamPermissions"),
        Reads.permissions,
    ),
    _Read(
        Service.COMPUTE,
        "reservations.get",
        "GET",
        re.compile(r"/compute/v1/(?P<name>projects/[^/]+/zones/[^/]+/reservations/[^/]+)"),
        Reads.reservation,
    ),
    _Read(
        Service.SERVICEUSAGE,
        "consumerQuotaMetrics.get",
        "GET",
        re.compile(
            r"/v1beta1/projects/[^/]+/services/aiplatform\.googleapis\.com/consumerQuotaMetrics/"
            r"(?P<metric>[^/]+)"
        ),
        Reads.quota,
    ),
)
