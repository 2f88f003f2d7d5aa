"""What CreateCustomJob refuses about networks and reservations: what the request alone shows.

Whether the things it names exist and fit is found out when the job starts (``peering``,
``interface``, ``capacity``). Which of the two the service does is documented for neither;
docs/local-stack.md lists what was chosen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from localgcp.apis.refusals import failed_precondition, permission_denied
from localgcp.errors import ApiError
from localgcp.inventory import machines, resource_paths
from localgcp.inventory.store import Store, project_number
from localgcp.vertex import job_networks
from localgcp.vertex.capacity import ANY, SPECIFIC
from localgcp.vertex.records import JobTable

FieldErrors = Iterator[tuple[str, str]]

_NAME: Final = r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NETWORK: Final = re.compile(rf"projects/(?P<number>[^/]+)/global/networks/{_NAME}\Z")
_RANGE: Final = re.compile(rf"{_NAME}\Z")
_ATTACHMENT: Final = re.compile(
    rf"(?:projects/[^/]+/regions/(?P<region>[^/]+)/networkAttachments/)?{_NAME}\Z"
)
_RESERVATION: Final = re.compile(
    rf"projects/[^/]+/zones/(?P<region>[a-z]+-[a-z]+\d+)-[a-z]/reservations/{_NAME}(?:/|\Z)"
)
_KEY: Final = "compute.googleapis.com/reservation-name"
_DNS: Final = (
    ("domain", "domain"),
    ("targetProject", "target_project"),
    ("targetNetwork", "target_network"),
)


def fields(job: dict[str, Any], region: str) -> FieldErrors:
    """Bad fields of a CustomJob in the API's JSON form, as (field, message)."""
    spec = job.get("jobSpec", {})
    yield from _network(spec)
    yield from _interface(spec, region)
    for index, pool in enumerate(spec.get("workerPoolSpecs", [])):
        machine = pool.get("machineSpec", {})
        at = f"job_spec.worker_pool_specs[{index}].machine_spec"
        yield from _accelerator(at, machine, spec)
        if "reservationAffinity" in machine:
            affinity = machine["reservationAffinity"]
            yield from _affinity(f"{at}.reservation_affinity", affinity, spec, region)


def check(store: Store, jobs: JobTable, job: dict[str, Any], project: str, region: str) -> None:
    """Raise ApiError for a network of an unknown project, or a second one in the region."""
    network = job["jobSpec"].get("network")
    if not network:
        return
    number = network.split("/")[1]
    if resource_paths.project_id(store, number) is None:
        raise permission_denied(
            f"Permission denied on resource project {number} (or it may not exist)."
        )
    path = resource_paths.canonical(store, network)
    for other in jobs.list(project_number(project), region):
        if other.state.terminal:
            continue
        if (used := job_networks.network_of(store, other)) and used != path:
            raise _second_network(network, other.name, other.spec["network"], region)


def _second_network(network: str, other: str, used: str, region: str) -> ApiError:
    return failed_precondition(
        f"Training on {network} cannot begin while {other} uses {used}: only one network can be "
        f"peered in {region} at a time. Wait for it to end, or cancel it."
    )


def _network(spec: dict[str, Any]) -> FieldErrors:
    network = spec.get("network")
    if network is not None:
        match = _NETWORK.match(network)
        if match is None or not match["number"].isdecimal():
            form = "projects/{project number}/global/networks/{network}"
            yield "job_spec.network", f"Network must be in the form {form}, got {network!r}."
        if "pscInterfaceConfig" in spec:
            message = "A network and a Private Service Connect interface cannot be used together."
            yield "job_spec.psc_interface_config", message
    ranges = spec.get("reservedIpRanges", [])
    if ranges and network is None:
        yield "job_spec.reserved_ip_ranges", "Reserved IP ranges need a network."
    for name in ranges:
        if not _RANGE.match(name):
            message = f"The name of an allocated range expected, got {name!r}."
            yield "job_spec.reserved_ip_ranges", message


def _interface(spec: dict[str, Any], region: str) -> FieldErrors:
    config = spec.get("pscInterfaceConfig")
    if config is None:
        return
    at = "job_spec.psc_interface_config"
    given = config.get("networkAttachment", "")
    match = _ATTACHMENT.match(given)
    if not given:
        yield f"{at}.network_attachment", "Required field is not set."
    elif match is None:
        yield f"{at}.network_attachment", f"Not the name of a network attachment: {given!r}."
    elif match["region"] not in (None, region):
        message = f"The network attachment must be in the job's region {region}, got {given}."
        yield f"{at}.network_attachment", message
    for index, peering in enumerate(config.get("dnsPeeringConfigs", [])):
        here = f"{at}.dns_peering_configs[{index}]"
        for json_name, field in _DNS:
            if not peering.get(json_name):
                yield f"{here}.{field}", "Required field is not set."
        if peering.get("domain") and not peering["domain"].endswith("."):
            yield f"{here}.domain", f"The domain must end with a dot, got {peering['domain']!r}."


def _accelerator(at: str, machine: dict[str, Any], spec: dict[str, Any]) -> FieldErrors:
    name = machine.get("acceleratorType", "")
    if spec.get("network") and name in machines.WITHOUT_VPC_PEERING:
        message = (
            f"VPC peering is not supported with {name}; use a Private Service Connect interface."
        )
        yield f"{at}.accelerator_type", message


def _affinity(at: str, affinity: dict[str, Any], spec: dict[str, Any], region: str) -> FieldErrors:
    kind, values = affinity.get("reservationAffinityType", ""), affinity.get("values", [])
    if kind not in (ANY, SPECIFIC, "NO_RESERVATION"):
        yield f"{at}.reservation_affinity_type", "Required field is not set."
    if kind == SPECIFIC:
        if affinity.get("key") != _KEY:
            yield f"{at}.key", f"Must be {_KEY}, got {affinity.get('key', '')!r}."
        if not values:
            yield f"{at}.values", "Required field is not set."
    elif values or affinity.get("key"):
        yield f"{at}.values", f"Only {SPECIFIC} has a key and values."
    for value in values:
        match = _RESERVATION.match(value)
        if match is None:
            message = f"projects/P/zones/Z/reservations/R expected, got {value!r}."
            yield f"{at}.values", message
        elif match["region"] != region:
            yield f"{at}.values", f"The zone must be in the job's region {region}, got {value}."
    strategy = spec.get("scheduling", {}).get("strategy")
    if kind in (ANY, SPECIFIC) and strategy in ("FLEX_START", "SPOT", "LOW_COST"):
        yield at, f"A job with strategy {strategy} cannot use reservations."
    if kind in (ANY, SPECIFIC) and spec.get("persistentResourceId"):
        yield at, "A job on a persistent resource cannot use reservations."
