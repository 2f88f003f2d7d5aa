"""The environment variables of a replica, as the service sets them (pure).

Sources: google-cloud-aiplatform 2.7.0 ``CustomJobSpec.base_output_directory``,
doc:training/code-requirements, doc:training/distributed-training; ``job`` in CLUSTER_SPEC was
observed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from localgcp.clients import python_clients
from localgcp.home import BIGQUERY
from localgcp.system.gpus import ORDER, VISIBLE, Gpu, visible

_REFERENCE: Final = re.compile(r"\$\$\(([A-Za-z_]\w*)\)|\$\(([A-Za-z_]\w*)\)")
_MOUNT: Final = re.compile(r"(?<![\w/.])/gcs(?=/|$)")
#: Keys of TF_CONFIG by worker pool (doc:training/distributed-training).
_TENSORFLOW_ROLES: Final = {
    "workerpool0": "chief",
    "workerpool1": "worker",
    "workerpool2": "ps",
    "workerpool3": "evaluator",
}
#: gcloud's variable with the address of Secret Manager.
SECRET_MANAGER: Final = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"


@dataclass(frozen=True)
class Folders:
    """The folders of a replica; ``gcs`` replaces the mount ``/gcs``."""

    work: Path
    tmp: Path
    gcs: Path


def service_variables(
    *,
    job_id: str,
    project_number: str,
    spec: Mapping[str, Any],
    pool: int,
    index: int,
    cluster: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """Return the variables that the service sets for a replica.

    ``cluster`` maps pools to ``HOST:PORT`` of each replica.
    """
    pool_spec = spec.get("workerPoolSpecs", [{}])[pool]
    package = pool_spec.get("pythonPackageSpec", {})
    job = {
        "python_module": package.get("pythonModule", ""),
        "package_uris": package.get("packageUris", []),
        "job_args": (package or pool_spec.get("containerSpec", {})).get("args", []),
    }
    name, task = f"workerpool{pool}", {"index": index}
    variables = {
        "CLOUD_ML_PROJECT_ID": project_number,
        "CLOUD_ML_JOB_ID": job_id,
        "CLUSTER_SPEC": _config(cluster, {"type": name, **task}, job),
    }
    if sum(map(len, cluster.values())) > 1:  # documented by Google
        # An evaluator is never a member of the cluster, but can be a task.
        roles = {_TENSORFLOW_ROLES[other]: hosts for other, hosts in cluster.items()}
        roles.pop("evaluator", None)
        task |= {"cloud": "local"}  # the service uses an internal name
        variables["TF_CONFIG"] = _config(roles, {"type": _TENSORFLOW_ROLES[name], **task}, job)
    prefix = spec.get("baseOutputDirectory", {}).get("outputUriPrefix", "").rstrip("/")
    if prefix:
        variables["AIP_MODEL_DIR"] = f"{prefix}/model/"
        variables["AIP_CHECKPOINT_DIR"] = f"{prefix}/checkpoints/"
        variables["AIP_TENSORBOARD_LOG_DIR"] = f"{prefix}/logs/"
    if tensorboard := spec.get("tensorboard"):
        variables["AIP_TENSORBOARD_RESOURCE_NAME"] = tensorboard
        region = tensorboard.split("/")[3]
        variables["AIP_TENSORBOARD_API_URI"] = f"{region}-aiplatform.googleapis.com"
    return variables


def metrics_file(gcs: Path, replica: str) -> Path:
    """Return a trial's metrics file, which is outside of all buckets and survives restarts."""
    return gcs / ".hypertune" / f"{replica}.metrics"


def trial_variables(trial: str, gcs: Path, replica: str) -> dict[str, str]:
    """Return a trial's variables, which the package cloudml-hypertune reads."""
    file = str(metrics_file(gcs, replica))
    return {"CLOUD_ML_TRIAL_ID": trial, "CLOUD_ML_HP_METRIC_FILE": file}


def machine_variables(folders: Folders, path: str, storage_url: str) -> dict[str, str]:
    """Return this machine's variables; a job inherits no variable of the server."""
    return {
        "PATH": path,
        "HOME": str(folders.work),
        "TMPDIR": str(folders.tmp),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",  # writes log lines at once
        "STORAGE_EMULATOR_HOST": storage_url,
    }


def gpu_variables(gpus: Sequence[Gpu], user: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that restrict a program of this machine to these GPUs.

    ``CUDA_VISIBLE_DEVICES`` in ``user`` selects among the GPUs.
    """
    names = [gpu.id for gpu in visible(gpus, user.get(VISIBLE), by_position=True)]
    numbered = {ORDER: "PCI_BUS_ID"} if any(map(str.isdecimal, names)) else {}
    return {VISIBLE: ",".join(names), **numbered}


def container_gpu_variables(gpus: Sequence[Gpu]) -> dict[str, str]:
    """Return the variables of a container, which numbers its GPUs from 0.

    Without ``NVIDIA_VISIBLE_DEVICES``, NVIDIA's runtime adds the GPUs that the image names.
    """
    names = ",".join(gpu.id for gpu in gpus)
    numbers = ",".join(map(str, range(len(gpus))))
    return {VISIBLE: numbers, "NVIDIA_VISIBLE_DEVICES": names or "void"}


def api_variables(url: str) -> dict[str, str]:
    """Return variables with the addresses of the local cloud's APIs, also for gcloud."""
    if not url:
        return {}
    vertex = {python_clients.VERTEX: urlsplit(url).netloc}
    return {SECRET_MANAGER: url, BIGQUERY: url.rstrip("/"), **vertex}


def user_variables(task: Mapping[str, Any], known: Mapping[str, str], gcs: Path) -> dict[str, str]:
    """Return the task's ``env`` with expanded variables, and ``gcs`` in place of ``/gcs``."""
    variables: dict[str, str] = {}
    for item in task.get("env", []):
        value = expand(item.get("value", ""), {**known, **variables})
        variables[item["name"]] = mounted(value, gcs)
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Expand ``$(VAR)`` of known variables, and unescape ``$$(VAR)`` to ``$(VAR)``."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return f"$({match[1]})"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(replace, text)


def mounted(text: str, gcs: Path) -> str:
    """Return the text with ``/gcs`` at the start of a path replaced by the folder ``gcs``."""
    return _MOUNT.sub(lambda _match: str(gcs), text)


def mounted_buckets(task: Mapping[str, Any]) -> list[str]:
    """Return the buckets below ``/gcs/`` that command, args or env name."""
    return _buckets(_MOUNT.pattern + r"/([\w.-]+)", _texts(task))


def named_buckets(task: Mapping[str, Any], output_prefix: str | None) -> list[str]:
    """Return the output bucket and all buckets that command, args or env name in any form."""
    buckets = _buckets(r"gs://([a-z0-9][\w.-]*)", [*_texts(task), output_prefix or ""])
    return sorted({*buckets, *mounted_buckets(task)})


def _texts(task: Mapping[str, Any]) -> list[str]:
    values = [item.get("value", "") for item in task.get("env", [])]
    return [*task.get("command", []), *task.get("args", []), *values]


def _buckets(pattern: str, texts: Sequence[str]) -> list[str]:
    return sorted({bucket for text in texts for bucket in re.findall(pattern, text)})


def _config(
    cluster: Mapping[str, Sequence[str]], task: Mapping[str, Any], job: Mapping[str, Any]
) -> str:
    hosts_by_role = {role: list(hosts) for role, hosts in cluster.items()}
    config = {"cluster": hosts_by_role, "environment": "cloud", "task": task}
    return json.dumps({**config, "job": json.dumps(job)})
