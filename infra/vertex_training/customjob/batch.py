"""Convert a checked CustomJob into a Batch job, and name Batch's jobs, states and exit codes.

Training code has the environment of Vertex AI: the variables ``AIP_…``, ``CLOUD_ML_JOB_ID`` and
``CLUSTER_SPEC``, and buckets below ``/gcs``. Fields: google-cloud-batch 0.22.4, ``batch_v1.types``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from vertex_training import catalog
from vertex_training.catalog.costs import DEFAULT_TIMEOUT, batch_retries, whole_seconds
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.naming import SECRET_VALUE

#: Exit codes of failures that Google causes: preempted, not reporting, rebooted, unresponsive
#: (batch/docs/troubleshooting#reserved-exit-codes).
GOOGLES_CODES: Final = (50001, 50002, 50003, 50004)
#: Folder of mounted buckets on the machine; the rest of ``/`` is read-only in Batch's images.
MOUNTS: Final = "/mnt/disks/gcs"
#: Containers can run as any user (by default gcsfuse assigns files to root).
MOUNT_OPTIONS: Final = ("-o allow_other", "--implicit-dirs", "--file-mode=777", "--dir-mode=777")
#: Variable -> subfolder of the output directory.
OUTPUT_FOLDERS: Final = {
    "AIP_MODEL_DIR": "model",
    "AIP_CHECKPOINT_DIR": "checkpoints",
    "AIP_TENSORBOARD_LOG_DIR": "logs",
}
_BUCKET: Final = re.compile(r"(?:gs://|(?<![\w/.])/gcs/)([a-z0-9][a-z0-9._-]{1,220}[a-z0-9])")
_REFERENCE: Final = re.compile(r"\$\$\((\w+)\)|\$\(([A-Za-z_]\w*)\)")


@dataclass(frozen=True, slots=True)
class BatchParameters:
    """The inputs of a Batch job that its request does not contain."""

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
    """Return the REST body of ``CreateJob`` for a CustomJob without findings of ``rules.batch``."""
    job = Job(dict(message))
    tasks, reserved = job.nodes, _reservations(job.pools[0])
    zone = f"zones/{reserved[0].split('/')[3]}" if reserved else ""
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
        "instances": [_instance(job, place.project)],
        "location": {"allowedLocations": [zone or f"regions/{place.region}"]},
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


def _variables(job: Job, job_id: str, tasks: int) -> dict[str, str]:
    """Return the environment variables of all tasks: the service's, then the job file's."""
    result = {"CLOUD_ML_JOB_ID": job_id}
    if tasks == 1:
        result["CLUSTER_SPEC"] = ALONE
    if output := job.output.rstrip("/"):
        result |= {name: f"{output}/{folder}/" for name, folder in OUTPUT_FOLDERS.items()}
    for variable in job.pools[0].env:
        result[variable["name"]] = expand(variable.get("value", ""), result)
    return result


def expand(text: str, known: Mapping[str, str]) -> str:
    """Expand ``$(NAME)`` as Vertex AI does. Unknown names remain unchanged.

    >>> expand("$(A)/$(B)/$$(A)", {"A": "x"})
    'x/$(B)/$(A)'
    """
    return _REFERENCE.sub(
        lambda match: f"$({match[1]})" if match[1] else known.get(match[2], match[0]), text
    )


def _task(job: Job, job_id: str, tasks: int) -> dict[str, Any]:
    names = sorted({match[1] for text in _texts(job.request) for match in _BUCKET.finditer(text)})
    timeout, resources = whole_seconds(job.scheduling) or DEFAULT_TIMEOUT, {}
    environment, secrets = _variables(job, job_id, tasks), dict[str, str]()
    shape = job.pools[0].shape
    if shape and shape.vcpus and shape.memory_gb:  # by default, Batch combines small tasks
        memory = str(int(shape.memory_gb * 1024))
        resources = {"cpuMilli": str(shape.vcpus * 1000), "memoryMib": memory}
    for name, value in [*environment.items()]:
        if match := SECRET_VALUE.fullmatch(value):
            secrets[name] = match[1]
            del environment[name]
    spec: dict[str, Any] = {
        "runnables": [
            *([{"script": {"text": SCRIPT}}] if tasks > 1 else ()),
            {"container": _container(job.pools[0], environment, names, tasks)},
        ],
        "computeResource": resources,
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
        # If machines restart together, the peers of a lost machine fail with another exit code.
        # Without a policy, Batch retries every failed task.
        if tasks == 1 or not job.scheduling.get("restartJobOnWorkerRestart"):
            condition = {"exitCodes": list(GOOGLES_CODES)}
            spec["lifecyclePolicies"] = [{"action": "RETRY_TASK", "actionCondition": condition}]
    return {key: value for key, value in spec.items() if value}


def _container(
    pool: Pool, known: Mapping[str, str], names: list[str], tasks: int
) -> dict[str, Any]:
    command = [expand(word, known) for word in pool.task.get("command", [])]
    words = [*command[1:], *(expand(word, known) for word in pool.task.get("args", []))]
    container: dict[str, Any] = {
        "imageUri": pool.image,
        "entrypoint": command[0] if command else "",
        "commands": words,
        "volumes": [f"{MOUNTS}/{name}:/gcs/{name}:rw" for name in names],
        "options": f"--network=host --env-file={ENV_FILE}" if tasks > 1 else "",
    }
    return {key: value for key, value in container.items() if value}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


#: Default size of Vertex AI's boot disk, in GB.
DISK_GB: Final = 100
#: Prefix of machine types with attachable accelerators; newer types include accelerators.
ATTACHED: Final = "n1-"
#: File that the script writes. Batch runs one task on a machine (``taskCountPerNode``).
ENV_NAME: Final = "vertex-training.env"
ENV_FILE: Final = f"/tmp/{ENV_NAME}"
#: Port of the entries of CLUSTER_SPEC, as on Vertex AI (training/distributed-training). The script
#: has the same port.
PORT: Final = 2222
#: Script that writes the file, with the variables ``rules.batch.LATE``. It needs only a POSIX shell
#: and awk, which all images of Batch have. Docker reads each line of the file literally, so the
#: JSON is on one line.
SCRIPT: Final = (resources.files("vertex_training.customjob") / "batch_hosts.sh").read_text("utf-8")

#: CLUSTER_SPEC of a job with one machine, the primary.
ALONE: Final = (
    f'{{"cluster":{{"workerpool0":["localhost:{PORT}"]}},"environment":"cloud",'
    '"task":{"type":"workerpool0","index":0}}'
)


def _instance(job: Job, project: str) -> dict[str, Any]:
    """Return ``allocationPolicy.instances[0]``: the machines of all tasks."""
    pool = job.pools[0]
    disk = pool.spec.get("diskSpec", {})
    disk_type, size = disk.get("bootDiskType", ""), disk.get("bootDiskSizeGb") or DISK_GB
    instance: dict[str, Any] = {
        "machineType": pool.machine_type,
        "provisioningModel": job.strategy,
        "bootDisk": {**({"type": disk_type} if disk_type else {}), "sizeGb": str(size)},
    }
    if pool.machine_type.startswith(ATTACHED) and pool.accelerator and pool.count:
        name = pool.accelerator.lower().replace("_", "-")
        instance["accelerators"] = [{"type": name, "count": str(pool.count)}]
    if reservation := _reservation(pool, project):
        instance["reservation"] = reservation
    return {"policy": instance, **({"installGpuDrivers": True} if pool.gpu else {})}


def _reservations(pool: Pool) -> list[str]:
    affinity = pool.affinity or {}
    if affinity.get("reservationAffinityType") != "SPECIFIC_RESERVATION":
        return []
    return [str(name) for name in affinity.get("values", ())]


def _reservation(pool: Pool, project: str) -> str:
    kind = (pool.affinity or {}).get("reservationAffinityType", "")
    if kind == "ANY_RESERVATION":
        return ""
    names = _reservations(pool)
    if not names:
        return "NO_RESERVATION"  # the default of Vertex AI
    _, owner, _, _, _, name = names[0].split("/")
    return name if owner == project else f"projects/{owner}/reservations/{name}"


#: Maximum length of an id. Ids begin with a lowercase letter (batch v1, CreateJobRequest).
MAX_LENGTH: Final = 63
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
#: State of a Batch job -> state of a CustomJob.
STATES: Final[dict[str, str]] = catalog.load("batch.yaml")["states"]
#: Exit code reserved by Batch -> meaning.
EXIT_CODES: Final[dict[int, str]] = catalog.load("batch.yaml")["exit_codes"]
_CODE: Final = re.compile(r"\b(5000[1-6])\b")


def job_id(stack: str, job: str, request_id: str, turn: int = 1) -> str:
    """Return the job id of a request: ``STACK-JOB-DIGITS``, with ``-tN`` for a later turn.

    Batch accepts each id once, and so refuses a second submission of a request for as long as it
    has a record of the job (60 days after its end). Long names of stack and job are cut.

    >>> job_id("dev", "titanic", "batch-0123456789abcdef0123")
    'dev-titanic-0123456789abcdef0123'
    """
    end = f"-{request_id.removeprefix(BATCH_JOB.id_prefix)}" + (f"-t{turn}" if turn > 1 else "")
    begin = _OTHERS.sub("-", f"{stack}-{job}".lower()).strip("-")
    begin = begin if begin[:1].isalpha() else f"j-{begin}"
    return begin[: MAX_LENGTH - len(end)].rstrip("-") + end


def is_job_of(name: str, request_id: str) -> bool:
    """Return whether a job's name or id belongs to the request. Labels are no proof of this."""
    digits = re.escape(request_id.removeprefix(BATCH_JOB.id_prefix))
    return re.search(rf"-{digits}(-t[0-9]+)?\Z", name) is not None


def explain(description: str, exit_code: int = 0) -> str:
    """Return the text of an event, with an explanation of Batch's exit code.

    >>> explain("Task failed with exit code 50005.")
    'Task failed with exit code 50005. 50005: the task ran longer than its timeout.'
    """
    match = _CODE.search(description)
    code = int(match[1]) if match else exit_code
    return f"{description} {code}: {EXIT_CODES[code]}." if code in EXIT_CODES else description


def reason(events: Sequence[tuple[str, int]]) -> str:
    """Return why a job failed, from event descriptions and exit codes, oldest first.

    The last event reports the failure; an earlier event with an exit code has the cause.
    """
    if not events:
        return ""
    why = [explain(text, code) for text, code in events if code or _CODE.search(text)]
    last = explain(*events[-1])
    return " ".join(dict.fromkeys([*why[-1:], last]))
