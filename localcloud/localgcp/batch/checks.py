"""Check requests to Batch and the permissions of callers; errors end a call at once.

Rules: google-cloud-batch 0.22.4, doc:batch/quotas and the release notes (``allowedLocations`` is in
the job's region since 2026-07-31). Most texts are ours; users reported the text for a used name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import grpc

from localgcp.access.callers import Guest
from localgcp.apis.server import (
    failed_precondition,
    invalid_argument,
    invalid_fields,
    permission_denied,
)
from localgcp.errors import ApiError
from localgcp.inventory.machines import is_region
from localgcp.inventory.store import Store, project_number
from localgcp.vertex.checks import FieldErrors, no_act_as, usable_project

API: Final = "batch.googleapis.com"
_PARENT: Final = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)")
#: Form of job ids and network tags.
_RFC_1035: Final = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET: Final = re.compile(r"projects/[^/]+/secrets/[\w-]{1,255}/versions/(latest|[1-9]\d{0,8})")
_LOCATION: Final = re.compile(r"(?:regions/(?P<region>[^/]+)|zones/(?P<zone>[^/]+)-[a-z])")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]+(/[^\0\n]*)?")
_TOPIC: Final = re.compile(r"projects/[^/]+/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}")
MAX_BYTES: Final = 1 << 20
_MAX_TASKS: Final = 100_000
MAX_PARALLEL: Final = 5_000
#: Maximum number of parallel tasks on this machine, because each task is a process.
WIDTH: Final = 16
_OWNERS: Final = frozenset({"roles/owner", "roles/editor", "roles/batch.admin"})
EDITORS: Final = _OWNERS | {"roles/batch.jobsEditor", "roles/batch.jobsAdmin"}
READERS: Final = EDITORS | {"roles/batch.jobsViewer", "roles/viewer"}
_ACT_AS: Final = frozenset({"roles/iam.serviceAccountUser", "roles/owner"})


def resolve_parent(store: Store, parent: str, *, any_region: bool = False) -> tuple[str, str]:
    """Return project id and region. Raises ApiError for a bad or unknown project or location."""
    match = _PARENT.fullmatch(parent)
    if match is None:
        raise invalid_argument(f"Invalid resource name: {parent[:200]!r}.")
    region = match["region"]
    if not is_region(region) and not (any_region and region == "-"):
        raise invalid_argument(f"Location {region[:80]!r} is not a region of Batch.")
    apis = ((API, "Batch API"), ("compute.googleapis.com", "Compute Engine API"))
    return usable_project(store, match["project"], *apis), region


def check_caller(store: Store, guest: Guest | None, project: str, permission: str, on: str) -> None:
    """Raise ApiError if the call comes from a job whose account lacks the permission."""
    if guest is None:
        return
    roles = READERS if permission.endswith((".get", ".list")) else EDITORS
    if roles.isdisjoint(store.roles(f"projects/{project}", f"serviceAccount:{guest.account}")):
        text = f"Permission '{permission}' denied on resource '{on}' (or it may not exist)."
        raise permission_denied(text)


def check_account(store: Store, guest: Guest | None, project: str, email: str) -> None:
    """Raise ApiError if the account is missing, or if the caller may not act as the account."""
    if email == default_account(project):
        return
    if store.account(email) is None:
        raise no_act_as(email)
    if guest is not None:
        member = f"serviceAccount:{guest.account}"
        places = (f"projects/{project}/serviceAccounts/{email}", f"projects/{project}")
        if all(_ACT_AS.isdisjoint(store.roles(place, member)) for place in places):
            raise no_act_as(email)


def default_account(project: str) -> str:
    """Return the address of Compute Engine's default service account."""
    return f"{project_number(project)}-compute@developer.gserviceaccount.com"


def check_id(job_id: str) -> None:
    """Raise ApiError for an invalid ``job_id``; an empty ``job_id`` is valid."""
    if job_id and not _RFC_1035.fullmatch(job_id):
        raise invalid_argument(
            f"job_id {job_id[:80]!r} is invalid: use at most 63 characters of a-z, 0-9 and '-', "
            "begin with a letter and do not end with '-'."
        )


def check_job(job: dict[str, Any], region: str) -> None:
    """Raise ApiError if Batch or the local cloud rejects the Job (in JSON form)."""
    if bad := [*_fields(job, region)]:
        raise invalid_fields(bad)
    if unserved := next(_unserved(job["taskGroups"][0]), ""):
        text = f"job.task_groups[0].{unserved}: the local cloud does not support this field."
        raise ApiError(grpc.StatusCode.UNIMPLEMENTED, text)
    if missing := next(_not_here(job), ""):
        raise failed_precondition(f"{missing} (This is a limit of the local cloud.)")


def _fields(job: dict[str, Any], region: str) -> FieldErrors:
    if not 0 <= int(job.get("priority", 0)) < 100:
        yield "job.priority", "The priority must be in [0, 100)."
    yield from _reserved_labels("job.labels", job.get("labels", {}))
    groups = job.get("taskGroups", [])
    if len(groups) > 1:
        yield "job.task_groups", f"Exactly one task group is supported, got {len(groups)}."
    for group in groups[:1]:
        yield from _group("job.task_groups[0]", group)
    policy = job.get("allocationPolicy", {})
    yield from _reserved_labels("job.allocation_policy.labels", policy.get("labels", {}))
    for tag in policy.get("tags", []):
        if not _RFC_1035.fullmatch(tag):
            text = f"{tag[:80]!r} must be 1 to 63 characters that comply with RFC 1035."
            yield "job.allocation_policy.tags", text
    for location in policy.get("location", {}).get("allowedLocations", []):
        match = _LOCATION.fullmatch(location)
        if match is None or (match["region"] or match["zone"]) != region:
            text = f"{location[:80]!r} is not in the job's region {region}."
            yield "job.allocation_policy.location.allowed_locations", text
    instances = policy.get("instances", [])
    if len(instances) > 1:
        yield "job.allocation_policy.instances", "Only one instance policy is supported."
    for instance in instances[:1]:
        at = "job.allocation_policy.instances[0].policy"
        yield from _instance(at, instance.get("policy", {}))
    for index, notification in enumerate(job.get("notifications", [])):
        if not _TOPIC.fullmatch(topic := notification.get("pubsubTopic", "")):
            field = f"job.notifications[{index}].pubsub_topic"
            yield field, f"{topic!r} must be projects/PROJECT/topics/TOPIC."
    logs = job.get("logsPolicy", {})
    if logs.get("destination") == "PATH" and not logs.get("logsPath"):
        yield "job.logs_policy.logs_path", "Required where the destination is PATH."


def _reserved_labels(field: str, labels: dict[str, str]) -> FieldErrors:
    for key in labels:
        if key.startswith(("goog-", "google-")):
            yield field, f"Label {key}: the prefixes goog- and google- are reserved."


def _group(at: str, group: dict[str, Any]) -> FieldErrors:
    count = int(group.get("taskCount", 0)) or 1
    parallelism = int(group.get("parallelism", 0))
    if not 0 < count <= _MAX_TASKS:
        yield f"{at}.task_count", f"Must be between 1 and {_MAX_TASKS}, got {count}."
    if not 0 <= parallelism <= MAX_PARALLEL:
        yield f"{at}.parallelism", f"Must be at most {MAX_PARALLEL}, got {parallelism}."
    if int(group.get("taskCountPerNode", 0)) < 0:
        yield f"{at}.task_count_per_node", "Must not be negative."
    yield from _task(f"{at}.task_spec", group.get("taskSpec", {}))


def _task(at: str, spec: dict[str, Any]) -> FieldErrors:
    runnables = spec.get("runnables", [])
    for index, runnable in enumerate(runnables):
        yield from _runnable(f"{at}.runnables[{index}]", runnable)
    if not 0 <= int(spec.get("maxRetryCount", 0)) <= 10:
        yield f"{at}.max_retry_count", f"Must be in [0, 10], got {spec['maxRetryCount']}."
    policies = spec.get("lifecyclePolicies", [])
    if len(policies) > 1:
        yield f"{at}.lifecycle_policies", "Only one lifecycle policy is supported."
    for policy in policies[:1]:
        if policy.get("action") not in ("RETRY_TASK", "FAIL_TASK"):
            yield f"{at}.lifecycle_policies[0].action", "Required field is not set."
        if not policy.get("actionCondition", {}).get("exitCodes"):
            field = f"{at}.lifecycle_policies[0].action_condition.exit_codes"
            yield field, "Required field is not set."
    for field, key in (("cpu_milli", "cpuMilli"), ("memory_mib", "memoryMib")):
        if int(spec.get("computeResource", {}).get(key, 1)) < 1:
            yield f"{at}.compute_resource.{field}", "Must be positive."
    if seconds(spec.get("maxRunDuration", "1s")) <= 0:
        yield f"{at}.max_run_duration", "Must be positive."
    yield from _environment(f"{at}.environment", spec.get("environment", {}))
    for index, volume in enumerate(spec.get("volumes", [])):
        yield from _volume(f"{at}.volumes[{index}]", volume)


def _runnable(at: str, runnable: dict[str, Any]) -> FieldErrors:
    script = runnable.get("script", {"path": "none"})
    if not (script.get("text") or script.get("path")):
        yield f"{at}.script", "One of text and path is required."
    if not {"container", "script", "barrier"} & runnable.keys():
        yield at, "One of container, script and barrier is required."
    if seconds(runnable.get("timeout", "1s")) <= 0:
        yield f"{at}.timeout", "Must be positive."
    words = [*runnable.get("container", {}).get("commands", []), script.get("text", "")]
    if any("\0" in word for word in words):
        yield at, "A NUL character cannot be passed to a program."
    yield from _reserved_labels(f"{at}.labels", runnable.get("labels", {}))
    yield from _environment(f"{at}.environment", runnable.get("environment", {}))


def _environment(at: str, environment: dict[str, Any]) -> FieldErrors:
    for name, value in environment.get("variables", {}).items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            text = f"{name[:80]!r}: the name of the variable is invalid, or its value has a NUL."
            yield f"{at}.variables", text
    for name, secret in environment.get("secretVariables", {}).items():
        if not _VARIABLE.fullmatch(name) or not _SECRET.fullmatch(secret):
            text = f"{name[:80]}: expected projects/P/secrets/S/versions/V, got {secret[:200]!r}."
            yield f"{at}.secret_variables", text


def _volume(at: str, volume: dict[str, Any]) -> FieldErrors:
    path = volume.get("mountPath", "")
    parts = path.split("/")[1:]
    if not path.startswith("/") or not parts[0] or ".." in parts or "\0" in path:
        yield f"{at}.mount_path", f"Expected an absolute path, got {path[:200]!r}."
    remote = volume.get("gcs", {}).get("remotePath", "")
    if "gcs" in volume and (not _BUCKET.fullmatch(remote) or ".." in remote.split("/")):
        yield f"{at}.gcs.remote_path", f"Expected BUCKET or BUCKET/FOLDER, got {remote[:200]!r}."
    if not {"gcs", "nfs", "deviceName"} & volume.keys():
        yield at, "One of gcs, nfs and device_name is required."


def _instance(at: str, policy: dict[str, Any]) -> FieldErrors:
    if policy.get("bootDisk", {}).get("snapshot"):
        yield f"{at}.boot_disk.snapshot", "A snapshot is not supported for boot disks."
    for accelerator in policy.get("accelerators", []):
        if not accelerator.get("type") or int(accelerator.get("count", 0)) < 1:
            yield f"{at}.accelerators", "Both type and count are required."
    model, reservation = policy.get("provisioningModel", ""), policy.get("reservation", "")
    has_reservation, field = reservation not in ("", "NO_RESERVATION"), f"{at}.reservation"
    if has_reservation and model in ("SPOT", "PREEMPTIBLE", "FLEX_START"):
        yield field, f"Machines of provisioning model {model} cannot use a reservation."
    if model == "RESERVATION_BOUND" and not has_reservation:
        yield field, "RESERVATION_BOUND requires a reservation."


def _unserved(group: dict[str, Any]) -> Iterator[str]:
    if group.get("taskEnvironments"):
        yield "task_environments"
    if group.get("schedulingPolicy") == "IN_ORDER":
        yield "scheduling_policy"
    for index, runnable in enumerate(group["taskSpec"]["runnables"]):
        at = f"task_spec.runnables[{index}]"
        yield from (f"{at}.{field}" for field in ("barrier", "background") if field in runnable)
        if "path" in runnable.get("script", {}):
            yield f"{at}.script.path"


def _not_here(job: dict[str, Any]) -> Iterator[str]:
    group = job["taskGroups"][0]
    spec, count = group["taskSpec"], int(group.get("taskCount", 0)) or 1
    if group.get("requireHostsFile") and count > WIDTH:
        yield (
            f"{count} interdependent tasks (requireHostsFile) cannot run here: at most {WIDTH} "
            "tasks run at once. Rehearse the job with a lower taskCount."
        )
    for volume in spec.get("volumes", []):
        if "gcs" not in volume:
            problem = f"The volume at {volume['mountPath']} is not a Cloud Storage bucket"
            yield f"{problem}; only buckets can be mounted."
    environments = [owner.get("environment", {}) for owner in (spec, *spec["runnables"])]
    if any(environment.get("encryptedVariables") for environment in environments):
        yield "encryptedVariables cannot be decrypted. Use secretVariables."


def as_job_spec(job: dict[str, Any]) -> dict[str, Any]:
    """Return the job's containers in the form of a CustomJob's ``jobSpec``."""
    runnables = job["taskGroups"][0]["taskSpec"]["runnables"]
    return {"workerPoolSpecs": [{"containerSpec": r.get("container", {})} for r in runnables]}


def seconds(duration: str) -> float:
    """Convert a duration in the API's JSON form (``90s``) to seconds."""
    return float(duration.removesuffix("s"))
