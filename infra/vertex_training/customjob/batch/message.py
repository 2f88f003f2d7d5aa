"""The Batch job that a checked CustomJob becomes. Pure, and the same for the same request.

Training code finds what Vertex AI gives it: the variables ``AIP_…``, ``CLOUD_ML_JOB_ID`` and
``CLUSTER_SPEC``, and buckets below ``/gcs``. Fields: google-cloud-batch 0.22.4, ``batch_v1.types``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training.catalog.costs import DEFAULT_TIMEOUT, batch_retries, whole_seconds
from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.naming import SECRET_VALUE

#: Ends of a task that are Google's doing: preempted, not reporting, rebooted, unresponsive
#: (batch/docs/troubleshooting#reserved-exit-codes).
GOOGLES_CODES: Final = (50001, 50002, 50003, 50004)
#: Where Batch mounts buckets on the machine; ``/`` of its images is read-only elsewhere.
MOUNTS: Final = "/mnt/disks/gcs"
#: Containers may run as any user (gcsfuse gives the files to root otherwise).
MOUNT_OPTIONS: Final = ("-o allow_other", "--implicit-dirs", "--file-mode=777", "--dir-mode=777")
#: Variables that name folders of the output directory, each with its folder.
OUTPUT_FOLDERS: Final = {
    "AIP_MODEL_DIR": "model",
    "AIP_CHECKPOINT_DIR": "checkpoints",
    "AIP_TENSORBOARD_LOG_DIR": "logs",
}
_BUCKET: Final = re.compile(r"(?:gs://|(?<![\w/.])/gcs/)([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])")
_REFERENCE: Final = re.compile(r"\$\$\((\w+)\)|\$\(([A-Za-z_]\w*)\)")


@dataclass(frozen=True, slots=True)
class BatchParameters:
    """The inputs of a job on Batch beside its request."""

    project: str
    region: str
    job_id: str
    subnet: str = ""
    """``projects/P/regions/R/subnetworks/NAME``; empty for the project's default network."""
    notifications: Sequence[Mapping[str, Any]] = ()
    """State changes to publish, and their topics."""


def batch_job(
    message: Mapping[str, Any], place: BatchParameters, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The message of ``CreateJob`` in REST's form. ``message`` is a CustomJob that passed the rules
    of ``rules.batch``; ``labels`` are added to its own."""
    job = Job(dict(message))
    tasks = job.nodes
    all_labels = {**message.get("labels", {}), **(labels or {})}
    group: dict[str, Any] = {
        "taskCount": str(tasks),
        "parallelism": str(tasks),
        "taskCountPerNode": "1",
        "taskSpec": _task(job, place.job_id, tasks),
    }
    if tasks > 1:
        group["requireHostsFile"] = True
    allocation: dict[str, Any] = {
        "instances": [policy(job, place.project)],
        "location": location(job, place.region),
        "serviceAccount": {"email": job.account},
        **({"labels": all_labels} if all_labels else {}),
    }
    if place.subnet:
        interface = {"subnetwork": place.subnet, "noExternalIpAddress": True}
        allocation["network"] = {"networkInterfaces": [interface]}
    return {
        "taskGroups": [group],
        "allocationPolicy": allocation,
        **({"labels": all_labels} if all_labels else {}),
        "logsPolicy": {"destination": "CLOUD_LOGGING"},
        **({"notifications": list(place.notifications)} if place.notifications else {}),
    }


def buckets(message: Any) -> list[str]:
    """Buckets that a message names, as ``gs://BUCKET`` or ``/gcs/BUCKET``."""
    return sorted({match[1] for text in _texts(message) for match in _BUCKET.finditer(text)})


def variables(job: Job, job_id: str, tasks: int) -> dict[str, str]:
    """The environment of all tasks: the service's, then the file's own."""
    result = {"CLOUD_ML_JOB_ID": job_id}
    if tasks == 1:
        result["CLUSTER_SPEC"] = ALONE
    result |= output_variables(job.output)
    for variable in job.pools[0].env:
        result[variable["name"]] = expand(variable.get("value", ""), result)
    return result


def output_variables(directory: str) -> dict[str, str]:
    """The variables that name folders of an output directory; none without one."""
    if not (output := directory.rstrip("/")):
        return {}
    return {name: f"{output}/{folder}/" for name, folder in OUTPUT_FOLDERS.items()}


def expand(text: str, known: Mapping[str, str]) -> str:
    """``$(NAME)`` as Vertex AI expands it, for Batch does not; unknown ones stay.

    >>> expand("$(A)/$(B)/$$(A)", {"A": "x"})
    'x/$(B)/$(A)'
    """
    return _REFERENCE.sub(
        lambda match: f"$({match[1]})" if match[1] else known.get(match[2], match[0]), text
    )


def _task(job: Job, job_id: str, tasks: int) -> dict[str, Any]:
    names, timeout = buckets(job.request), whole_seconds(job.scheduling) or DEFAULT_TIMEOUT
    environment, secrets = variables(job, job_id, tasks), dict[str, str]()
    for name, value in [*environment.items()]:
        if match := SECRET_VALUE.fullmatch(value):
            secrets[name] = match[1]
            del environment[name]
    spec: dict[str, Any] = {
        "runnables": [
            *([{"script": {"text": SCRIPT}}] if tasks > 1 else ()),
            {"container": _container(job.pools[0], environment, names, tasks)},
        ],
        "computeResource": resources(job.pools[0]),
        "maxRunDuration": f"{timeout:.0f}s",
        "environment": {
            "variables": environment,
            **({"secretVariables": secrets} if secrets else {}),
        },
        "volumes": [
            {
                "gcs": {"remotePath": name},
                "mountPath": f"{MOUNTS}/{name}",
                "mountOptions": list(MOUNT_OPTIONS),
            }
            for name in names
        ],
    }
    if more := batch_retries(job.scheduling):
        spec["maxRetryCount"] = more
        # Of several machines that restart together, the peers of a lost one fail as well, with a
        # code of their own: without a policy, every failed task is run again.
        if tasks == 1 or not job.scheduling.get("restartJobOnWorkerRestart"):
            condition = {"exitCodes": list(GOOGLES_CODES)}
            spec["lifecyclePolicies"] = [{"action": "RETRY_TASK", "actionCondition": condition}]
    return {key: value for key, value in spec.items() if value}


def _container(
    pool: Pool, known: Mapping[str, str], names: list[str], tasks: int
) -> dict[str, Any]:
    command = [expand(word, known) for word in pool.task.get("command", [])]
    words = [*command[1:], *(expand(word, known) for word in pool.task.get("args", []))]
    found: dict[str, Any] = {
        "imageUri": pool.image,
        "entrypoint": command[0] if command else "",
        "commands": words,
        "volumes": [f"{MOUNTS}/{name}:/gcs/{name}:rw" for name in names],
        "options": f"--network=host --env-file={ENV_FILE}" if tasks > 1 else "",
    }
    return {key: value for key, value in found.items() if value}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


#: Size of the boot disk that Vertex AI gives where a file says nothing, in GB.
DISK_GB: Final = 100
#: What only the first machines take as accelerators; the newer ones come with theirs.
ATTACHED: Final = "n1-"
#: Where the script leaves the variables. Batch runs one task on a machine (``taskCountPerNode``).
ENV_NAME: Final = "vertex-training.env"
ENV_FILE: Final = f"/tmp/{ENV_NAME}"
#: Port of the entries of CLUSTER_SPEC, as on Vertex AI (training/distributed-training).
PORT: Final = 2222
#: Variables that only a running task can know: no text of a request can have their values.
VARIABLES: Final = ("CLUSTER_SPEC", "TF_CONFIG", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")

#: POSIX shell and awk alone, which every image of Batch has. JSON is written without a blank that
#: matters; docker takes each line of the file as it is.
SCRIPT: Final = f"""\
set -eu
hosts="${{BATCH_HOSTS_FILE:?Batch gave no file of hosts}}"
self="$(hostname -f 2>/dev/null || hostname)"
awk -v self="$self" -v short="$(hostname)" -v task="$BATCH_TASK_INDEX" '
  NF {{ host[n++] = $1 }}
  END {{
    rank = task
    for (i = 0; i < n; i++) if (host[i] == self || host[i] == short) rank = i
    for (i = 1; i < n; i++) rest = rest (i > 1 ? "," : "") "\\"" host[i] ":{PORT}\\""
    first = "[\\"" host[0] ":{PORT}\\"]"
    index_ = rank > 0 ? rank - 1 : 0
    end = ",\\"environment\\":\\"cloud\\",\\"task\\":{{\\"type\\":\\""
    pool = rank > 0 ? "workerpool1" : "workerpool0"
    role = rank > 0 ? "worker" : "chief"
    tail = "\\",\\"index\\":" index_ "}}}}"
    print "CLUSTER_SPEC={{\\"cluster\\":{{\\"workerpool0\\":" first \\
      ",\\"workerpool1\\":[" rest "]}}" end pool tail
    print "TF_CONFIG={{\\"cluster\\":{{\\"chief\\":" first \\
      ",\\"worker\\":[" rest "]}}" end role tail
    print "MASTER_ADDR=" host[0]
    print "MASTER_PORT={PORT}"
    print "RANK=" rank
    print "WORLD_SIZE=" n
  }}' "$hosts" > "${{TMPDIR:-/tmp}}/{ENV_NAME}"
"""

#: CLUSTER_SPEC of the only machine of a job: it is its own primary.
ALONE: Final = (
    f'{{"cluster":{{"workerpool0":["localhost:{PORT}"]}},"environment":"cloud",'
    '"task":{"type":"workerpool0","index":0}}'
)


def policy(job: Job, project: str) -> dict[str, Any]:
    """``allocationPolicy.instances[0]`` of a job: one kind of machine for all tasks."""
    pool = job.pools[0]
    found: dict[str, Any] = {
        "machineType": pool.machine_type,
        "provisioningModel": job.strategy,
        "bootDisk": _boot_disk(pool.spec.get("diskSpec", {})),
    }
    if pool.machine_type.startswith(ATTACHED) and pool.accelerator and pool.count:
        name = pool.accelerator.lower().replace("_", "-")
        found["accelerators"] = [{"type": name, "count": str(pool.count)}]
    if reservation := _reservation(pool, project):
        found["reservation"] = reservation
    return {"policy": found, **({"installGpuDrivers": True} if pool.gpu else {})}


def location(job: Job, region: str) -> dict[str, Any]:
    """Return the allowed locations: anywhere in the region, or the zone of the reservation."""
    names = reservations(job.pools[0])
    place = f"zones/{names[0].split('/')[3]}" if names else f"regions/{region}"
    return {"allowedLocations": [place]}


def reservations(pool: Pool) -> list[str]:
    """Full names of the reservations that a pool asks for by name."""
    affinity = pool.affinity or {}
    if affinity.get("reservationAffinityType") != "SPECIFIC_RESERVATION":
        return []
    return [str(name) for name in affinity.get("values", ())]


def resources(pool: Pool) -> dict[str, Any]:
    """``computeResource``: the whole machine. Batch's own default packs small tasks on one."""
    shape = pool.shape
    if shape is None or not shape.vcpus or not shape.memory_gb:
        return {}  # one task a machine is asked for as well
    return {"cpuMilli": str(shape.vcpus * 1000), "memoryMib": str(int(shape.memory_gb * 1024))}


def _reservation(pool: Pool, project: str) -> str:
    """Batch takes a name, with its project if that is another; unset is any that fits."""
    kind = (pool.affinity or {}).get("reservationAffinityType", "")
    if kind == "ANY_RESERVATION":
        return ""
    names = reservations(pool)
    if not names:
        return "NO_RESERVATION"  # what Vertex AI takes where a file asks for none
    _, owner, _, _, _, name = names[0].split("/")
    return name if owner == project else f"projects/{owner}/reservations/{name}"


def _boot_disk(spec: Mapping[str, Any]) -> dict[str, Any]:
    kind = spec.get("bootDiskType", "")
    size = spec.get("bootDiskSizeGb") or DISK_GB
    return {**({"type": kind} if kind else {}), "sizeGb": str(size)}
