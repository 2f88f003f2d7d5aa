"""What is asked of other services over REST, answered from the inventory.

Permissions of accounts and projects, reservations, quotas of Vertex AI, IAM policies, and what is
in a network. Callers have no identity here, so who asks holds every permission on what exists; and
there are no quotas. A fault of kind ``deny`` makes an answer a no. What is no read, and no question
of a deployment, is in ``resources``.
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
from localgcp.resources import (
    Resources,
    list_in_project,
    read_network,
    read_policy,
    write_policy,
)

_UNLIMITED: Final = "-1"
#: What an IAM policy is named after, and the project of what is listed.
_BUCKET: Final = r"(?P<policy>b/[^/]+)"
_NAMED: Final = r"(?P<policy>projects/[^:]+?)"
_LISTED: Final = r"projects/(?P<project>[^/]+)/"


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
        changed = Resources(self._store).answer(verb, unquote(path), _document(body))
        return None if changed is None else json.dumps(changed).encode()

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

    def policy(self, match: re.Match[str], body: Mapping[str, Any], denied: bool) -> dict[str, Any]:
        """The IAM policy of a resource; with one in the request, after it was written."""
        name = unquote(match["policy"])
        if denied:
            verb = "set" if "bindings" in body or "policy" in body else "get"
            permission = f"resourcemanager.projects.{verb}IamPolicy"
            raise _refused(permission, name)
        if "bindings" in body or "policy" in body:
            return write_policy(self._store, name, body.get("policy", body))
        return read_policy(self._store, name)

    def network(
        self, match: re.Match[str], _body: Mapping[str, Any], denied: bool
    ) -> dict[str, Any]:
        """A network with its peerings."""
        if denied:
            raise _refused("compute.networks.get", match["name"])
        return read_network(self._store, match["name"])

    def listed(
        self, match: re.Match[str], _body: Mapping[str, Any], denied: bool
    ) -> dict[str, Any]:
        """Firewall rules, routes or subnetworks of a project; those of regions by region."""
        project, collection = match["project"], match["collection"]
        if denied:
            raise _refused(f"compute.{collection}.list", f"projects/{project}")
        found = list_in_project(self._store, project, collection)
        if not match["aggregated"]:
            return {"items": found}
        items: dict[str, Any] = {}
        for each in found:
            region = f"regions/{each['region'].rpartition('/')[2]}"
            items.setdefault(region, {}).setdefault(collection, []).append(each)
        return {"items": items}


def _refused(permission: str, on: str) -> RefusedRequestError:
    """As IAM words it, in every service."""
    text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
    return RefusedRequestError(403, text)


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
    *(
        _Read(Service.IAM, method, verb, re.compile(path), Reads.policy)
        for method, verb, path in (
            ("GetIamPolicy", "GET", rf"/storage/v1/{_BUCKET}/iam"),
            ("SetIamPolicy", "PUT", rf"/storage/v1/{_BUCKET}/iam"),
            ("GetIamPolicy", "GET", rf"/(?:v1|compute/v1)/{_NAMED}[:/]getIamPolicy"),
            ("GetIamPolicy", "POST", rf"/v[13]/{_NAMED}:getIamPolicy"),
            ("SetIamPolicy", "POST", rf"/(?:v1|v3|compute/v1)/{_NAMED}[:/]setIamPolicy"),
        )
    ),
    _Read(
        Service.COMPUTE,
        "networks.get",
        "GET",
        re.compile(r"/compute/v1/(?P<name>projects/[^/]+/global/networks/[^/]+)"),
        Reads.network,
    ),
    *(
        _Read(
            Service.COMPUTE,
            method,
            "GET",
            re.compile(rf"/compute/v1/{_LISTED}{path}"),
            Reads.listed,
        )
        for method, path in (
            ("firewalls.list", r"global/(?P<collection>firewalls)(?P<aggregated>)"),
            ("routes.list", r"global/(?P<collection>routes)(?P<aggregated>)"),
            (
                "subnetworks.aggregatedList",
                r"(?P<aggregated>aggregated)/(?P<collection>subnetworks)",
            ),
        )
    ),
)
