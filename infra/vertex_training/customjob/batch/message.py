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
from vertex_training.customjob.batch import machines
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
    """What a job is given beside its request."""

    project: str
    region: str
    job_id: str
    subnet: str = ""
    """``projects/P/regions/R/subnetworks/NAME``; empty for the project's default network."""
    notifications: Sequence[Mapping[str, Any]] = ()
    """Which changes of state are told to which topics."""


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
        "instances": [machines.policy(job, place.project)],
        "location": machines.location(job, place.region),
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
    found = {"CLOUD_ML_JOB_ID": job_id}
    if tasks == 1:
        found["CLUSTER_SPEC"] = machines.ALONE
    found |= output_variables(job.output)
    for variable in job.pools[0].env:
        found[variable["name"]] = expand(variable.get("value", ""), found)
    return found


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
            *([{"script": {"text": machines.SCRIPT}}] if tasks > 1 else ()),
            {"container": _container(job.pools[0], environment, names, tasks)},
        ],
        "computeResource": machines.resources(job.pools[0]),
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
        "options": f"--network=host --env-file={machines.ENV_FILE}" if tasks > 1 else "",
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
