"""Where the tasks of a job run, and what tells each its rank and its peers.

Batch gives every task a file with the hosts of all, in one order. Vertex AI's variables cannot be
known before: a script writes them for the container that comes after it, on the same machine.
A task is the one whose host it runs on; the first host is the primary. Where no line of the file is
this host (addresses in place of names), the index of the task counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vertex_training.customjob.rules.job import Job, Pool

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
    """Where machines may be: anywhere in the region, or in the zone of the reservation."""
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
