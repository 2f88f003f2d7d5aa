"""Check requests to create CustomJobs; errors end a call at once.

``localgcp.apis.field_rules`` checks required fields and labels before.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from localgcp.apis.server import (
    failed_precondition,
    invalid_argument,
    invalid_fields,
    not_found,
    permission_denied,
)
from localgcp.errors import ApiError
from localgcp.inventory import machines, resource_paths
from localgcp.inventory.resource_paths import LOCAL_PREFIX, is_local
from localgcp.inventory.store import TENSORBOARD, Store, project_number
from localgcp.vertex import networks
from localgcp.vertex.capacity import ANY, SPECIFIC
from localgcp.vertex.records import JobTable

API: Final = "aiplatform.googleapis.com"
_PARENT: Final = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)")
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_POOLS: Final = 4
FieldErrors = Iterator[tuple[str, str]]
#: Entry point group of functions that check machines and images. The arguments are a CustomJob in
#: JSON form and its region. A function yields field and message of each error.
LIMITS: Final = "localgcp.job_limits"


def resolve_parent(store: Store, parent: str) -> tuple[str, str]:
    """Return project id and region of ``projects/{id or number}/locations/{region}``.

    Raises ApiError for a bad form, region or project, or if Vertex AI is not enabled.
    """
    match = _PARENT.fullmatch(parent)
    if match is None:
        text = f"Invalid resource name: {parent!r}; expected projects/P/locations/L."
        raise invalid_argument(text)
    if not machines.is_region(match["region"]):
        raise invalid_argument(f"Unsupported region for Vertex AI: {match['region']!r}.")
    return usable_project(store, match["project"], (API, "Vertex AI API")), match["region"]


def usable_project(store: Store, given: str, *apis: tuple[str, str]) -> str:
    """Return the project's id. Raises ApiError if the project lacks one of the ``apis``."""
    project = resource_paths.project_id(store, given)
    if project is None or not is_local(project):
        raise permission_denied(
            f"Permission denied on resource project {given[:80]}. "
            f"(The local cloud has only projects whose id begins with '{LOCAL_PREFIX}'.)"
        )
    for api, title in apis:
        if not store.service_enabled(project, api):
            raise permission_denied(
                f"{title} has not been used in project {project_number(project)} before or it is "
                f"disabled. Enable it ({api}) then retry."
            )
    return project


def check_custom_job(
    store: Store,
    jobs: JobTable,
    job: dict[str, Any],
    project: str,
    region: str,
    *,
    spec_field: str = "job_spec",
    more: Iterable[tuple[str, str]] = (),
) -> None:
    """Raise ApiError if the service would refuse this CustomJob (in the API's JSON form).

    ``spec_field`` is the name of ``job_spec`` in another message type; ``more`` are further errors.
    """
    errors = [*_fields(job), *placement_errors(job, region)]
    errors += [error for limits in _installed_limits() for error in limits(job, region)]
    named = [(re.sub("^job_spec", spec_field, field), text) for field, text in errors]
    if bad := [*named, *more]:
        raise invalid_fields(bad)
    check_network(store, jobs, job, project, region)
    check_account(store, job["jobSpec"].get("serviceAccount"))
    if name := job["jobSpec"].get("tensorboard"):
        place, _, id_ = name.partition("/tensorboards/")
        project, region = resolve_parent(store, place)
        number = project_number(project)
        if not store.get(TENSORBOARD, f"projects/{number}/locations/{region}/tensorboards/{id_}"):
            raise not_found(name, "Tensorboard")


@cache
def _installed_limits() -> tuple[Callable[[dict[str, Any], str], FieldErrors], ...]:
    limits = []
    for point in importlib.metadata.entry_points(group=LIMITS):
        try:
            limits.append(point.load())
        except ImportError as error:  # the distribution is incomplete, for example without extra
            print(f"machines and images are not checked by {point.value}: {error}", file=sys.stderr)
    return tuple(limits)


def check_account(store: Store, account: str | None) -> None:
    """Raise ApiError if a service account is set but does not exist."""
    if account and store.account(account) is None:
        raise no_act_as(account)


def no_act_as(account: str) -> ApiError:
    """Return the error for an account that is missing, or that the caller may not act as."""
    text = f"You do not have permission to act as service_account: {account}."
    return permission_denied(f"{text} (or it may not exist).")


def _fields(job: dict[str, Any]) -> FieldErrors:
    spec = job.get("jobSpec", {})
    pools, at = spec.get("workerPoolSpecs", []), "job_spec.worker_pool_specs"
    if pools and not pools[0]:
        yield at, "At least one worker pool should be specified."
    if len(pools) > _MAX_POOLS:
        yield at, f"At most {_MAX_POOLS} worker pools are allowed."
    for index, pool in enumerate(pools):
        if pool:
            yield from _pool(f"{at}[{index}]", pool)
    uri = spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "")
    if "baseOutputDirectory" in spec and not re.match(r"gs://[^/]+", uri):
        field = "job_spec.base_output_directory.output_uri_prefix"
        yield field, f"Expected a Cloud Storage URI, got {uri!r}."
    if spec.get("tensorboard") and not spec.get("serviceAccount"):
        message = "must be specified when uploading to TensorBoard"
        yield "job_spec.service_account", f"`custom_job.job_spec.service_account` {message}"


def _pool(at: str, pool: dict[str, Any]) -> FieldErrors:
    yield from machine_errors(f"{at}.machine_spec", pool.get("machineSpec", {}))
    if int(pool.get("replicaCount", 0)) < 1:
        yield f"{at}.replica_count", "The replica count must be at least 1."
    if container := pool.get("containerSpec"):
        yield from env_errors(f"{at}.container_spec", container)
    elif package := pool.get("pythonPackageSpec"):
        field = f"{at}.python_package_spec"
        for uri in package.get("packageUris", []):
            if not re.match(r"gs://[^/]+/.+", uri):
                yield f"{field}.package_uris", f"Expected a Cloud Storage URI, got {uri}"
        yield from env_errors(field, package)
    else:
        yield at, "One of `container_spec` and `python_package_spec` must be set."


def machine_errors(at: str, machine: Mapping[str, Any]) -> FieldErrors:
    """Yield errors in a ``machineSpec``."""
    if not machine.get("machineType"):
        yield f"{at}.machine_type", "Required field is not set."
    if ("acceleratorType" in machine) != ("acceleratorCount" in machine):
        yield at, "Both `accelerator_type` and `accelerator_count` should be specified or none."


def env_errors(at: str, message: Mapping[str, Any]) -> FieldErrors:
    """Yield errors in the variables of a container."""
    names = [variable.get("name", "") for variable in message.get("env", [])]
    for name in names:
        if not _ENV_NAME.fullmatch(name):
            yield f"{at}.env", f"{name!r} is not a valid C identifier."
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{at}.env", f"EnvVar names must be unique: {name}"


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


def placement_errors(job: dict[str, Any], region: str) -> FieldErrors:
    """Yield bad fields of a CustomJob in the API's JSON form, as (field, message)."""
    spec = job.get("jobSpec", {})
    yield from _network(spec)
    yield from _interface(spec, region)
    for index, pool in enumerate(spec.get("workerPoolSpecs", [])):
        machine = pool.get("machineSpec", {})
        at = f"job_spec.worker_pool_specs[{index}].machine_spec"
        name = machine.get("acceleratorType")
        if spec.get("network") and name in machines.WITHOUT_VPC_PEERING:
            alternative = "use a Private Service Connect interface"
            message = f"VPC peering is not supported with {name}; {alternative}."
            yield f"{at}.accelerator_type", message
        if "reservationAffinity" in machine:
            affinity = machine["reservationAffinity"]
            yield from _affinity(f"{at}.reservation_affinity", affinity, spec, region)


def check_network(
    store: Store, jobs: JobTable, job: dict[str, Any], project: str, region: str
) -> None:
    """Raise ApiError for a network of an unknown project, or a second network in the region."""
    network = job["jobSpec"].get("network")
    if not network:
        return
    number = network.split("/")[1]
    if resource_paths.project_id(store, number) is None:
        text = f"Permission denied on resource project {number} (or it may not exist)."
        raise permission_denied(text)
    path = resource_paths.canonical(store, network)
    for other in jobs.list(project_number(project), region):
        used = networks.network_of(store, other)
        if used and used != path and not other.state.terminal:
            raise failed_precondition(
                f"Training on {network} cannot begin while {other.name} uses "
                f"{other.spec['network']}: only one network can be peered in {region} at a time. "
                "Wait until that job has ended, or cancel the job."
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
        yield "job_spec.reserved_ip_ranges", "Reserved IP ranges require a network."
    for name in ranges:
        if not _RANGE.match(name):
            text = f"Expected the name of an allocated range, got {name!r}."
            yield "job_spec.reserved_ip_ranges", text


def _interface(spec: dict[str, Any], region: str) -> FieldErrors:
    config = spec.get("pscInterfaceConfig")
    if config is None:
        return
    at = "job_spec.psc_interface_config"
    attachment, field = config.get("networkAttachment", ""), f"{at}.network_attachment"
    match = _ATTACHMENT.match(attachment)
    if not attachment:
        yield field, "Required field is not set."
    elif match is None:
        yield field, f"Expected the name of a network attachment, got {attachment!r}."
    elif match["region"] not in (None, region):
        place = f"in the job's region {region}"
        yield field, f"The network attachment must be {place}, got {attachment}."
    for index, peering in enumerate(config.get("dnsPeeringConfigs", [])):
        here = f"{at}.dns_peering_configs[{index}]"
        if peering.get("domain") and not peering["domain"].endswith("."):
            yield f"{here}.domain", f"The domain must end with a dot, got {peering['domain']!r}."


def _affinity(at: str, affinity: dict[str, Any], spec: dict[str, Any], region: str) -> FieldErrors:
    kind, values = affinity.get("reservationAffinityType", ""), affinity.get("values", [])
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
            yield f"{at}.values", f"Expected projects/P/zones/Z/reservations/R, got {value!r}."
        elif match["region"] != region:
            yield f"{at}.values", f"The zone must be in the job's region {region}, got {value}."
    strategy = spec.get("scheduling", {}).get("strategy")
    if kind in (ANY, SPECIFIC) and strategy in ("FLEX_START", "SPOT", "LOW_COST"):
        yield at, f"A job with strategy {strategy} cannot use reservations."
    if kind in (ANY, SPECIFIC) and spec.get("persistentResourceId"):
        yield at, "A job on a persistent resource cannot use reservations."
