"""Converts a message of Google Batch into an imported job with ``backend: batch``.

The reverse of ``vertex_training.customjob.batch.message``. What of a job cannot be a job file's is
a reason to refuse it, if it would be another job, or else a remark with what to do.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from vertex_training.catalog.costs import BATCH_RETRIES, OTHER_BATCH_RETRIES
from vertex_training.catalog.machines import machine_type
from vertex_training.customjob.batch import message as machines
from vertex_training.customjob.batch.message import (
    GOOGLES_CODES,
    MOUNT_OPTIONS,
    OUTPUT_FOLDERS,
    buckets,
    output_variables,
)
from vertex_training.customjob.kinds import BATCH_JOB
from vertex_training.customjob.protocol.ports import JOB_LABEL, JOB_LABELS, REQUEST_ID_LABEL
from vertex_training.customjob.rules.job import Job
from vertex_training.errors import CommandError
from vertex_training.naming import SECRET_VALUE
from vertex_training_cli.importing.batch_messages import NAME_PARTS, BatchMessage, left_out
from vertex_training_cli.importing.imported import REQUEST_ID, ImportedJob, key_of, placeholder

#: Why a job is refused.
NOTHING: Final = "taskGroups contains no runnables: the source job would run no code"
NO_CONTAINER: Final = (
    "the source job runs a script directly on the machine, without a container: put the "
    "script into an image, which `vt images build` builds"
)
SEVERAL: Final = (
    "the source job runs {} containers one after another, but a job file has one "
    "container: merge them into one image, or write a job for each container"
)
WITH_SCRIPT: Final = (
    "the source job also runs a script on the machine, beside its container: move the "
    "script into the image or the command"
)
BARRIER: Final = (
    "the tasks of the source job wait at a barrier, which job files do not support: wait "
    "in the code, as torch.distributed does"
)
IN_TURN: Final = (
    "the source job runs {} tasks, {} at a time, but all machines of a job start "
    "together: write several jobs, or let one machine process several tasks"
)
PACKED: Final = (
    "the source job runs {} tasks per machine, but a job file has one per machine: start "
    "several processes in the container"
)
DEFAULT_ACCOUNT: Final = re.compile(r"\d+-compute@developer\.gserviceaccount\.com")
#: A reference to a variable as Vertex AI expands it, which Batch does not.
EXPANDED: Final = re.compile(r"\$\((\w+)\)")
#: Where a job puts its model, below the folder of its outputs.
MODEL_FOLDER: Final = re.compile(r"(gs://.*)/model/*")
#: What Batch gives docker by itself where there are GPUs.
GPU_OPTIONS: Final = ("--gpus=all", "--runtime=nvidia")
#: Options of docker that tasks of several machines are rendered with.
OWN_OPTIONS: Final = ("--network=host", "--net=host", f"--env-file={machines.ENV_FILE}")
MEMORY_OPTIONS: Final = ("--ipc", "--shm-size")
#: The name of an option, without a value that is written to it: ``-uroot:pw``.
OPTION: Final = re.compile(r"--[a-z][a-z0-9-]*\Z|-[A-Za-z]")
#: What is shown of a secretVariable that names no version: somebody may have put the value there.
SHOWN_SECRET: Final = re.compile(r"projects/\S+|\$\{?\w+\}?")
CLOUD_PLATFORM: Final = "https://www.googleapis.com/auth/cloud-platform"


def imported(source: BatchMessage, name: str) -> ImportedJob:
    """Return the imported job of a message; ``name`` is the default name.

    Raises:
        CommandError: a CustomJob cannot be what it is; with all reasons.
    """
    message: Mapping[str, Any] = source.fields
    own = message.get("labels", {})
    if id_ := own.get(REQUEST_ID_LABEL):  # a new submission has a folder of its own again
        message = replaced(message, id_, REQUEST_ID)
    resource = str(message.get("name", "")).split("/")
    name = own.get(JOB_LABEL) or source.name or resource[-1] or name
    job = ImportedJob(key_of(name), {}, backend=BATCH_JOB.backend, remarks=[*source.remarks])
    job.region = source.region or (resource[3] if len(resource) == NAME_PARTS else "")
    if reasons := _Conversion(message, job).reasons():
        raise CommandError(f"cannot import this Batch job: {'; '.join(reasons)}.")
    return job


class _Conversion:
    """Fills one imported job from one message."""

    def __init__(self, message: Mapping[str, Any], job: ImportedJob) -> None:
        self.message, self.job = message, job
        groups = message.get("taskGroups") or [{}]
        self.groups, self.group = groups, groups[0]
        self.task: dict[str, Any] = self.group.get("taskSpec", {})
        self.place: dict[str, Any] = message.get("allocationPolicy", {})
        self.instances: list[dict[str, Any]] = self.place.get("instances") or [{}]
        self.policy: dict[str, Any] = self.instances[0].get("policy", {})
        self.scheduling = dict[str, Any]()
        self._reasons = list[str]()

    def say(self, remark: str) -> None:
        self.job.remarks.append(remark)

    def refuse(self, reason: str) -> None:
        self._reasons.append(reason)

    def reasons(self) -> list[str]:
        """Convert the job; return the reasons why the conversion is not possible."""
        self._fields()
        step = self._step()
        tasks = self._tasks()
        if self._reasons or step is None:
            return self._reasons
        self._strategy()
        pool = {"machineSpec": self._machine(), **self._disk()}
        self._run_time(step)
        self._retries(tasks)
        self._account_and_network()
        self._labels()
        many = tasks > 1
        options = (*GPU_OPTIONS * ("acceleratorType" in pool["machineSpec"]), *OWN_OPTIONS * many)
        self._docker(str(step["container"].get("options", "")), options)
        pool["containerSpec"] = self._container(step)
        pool |= self._file_systems()
        self._resources(pool, tasks)
        pools = [{"replicaCount": 1, **pool}]
        if many:
            pools.append({"replicaCount": tasks - 1, **pool})
        self.job.spec |= {"workerPoolSpecs": pools}
        if self.scheduling:
            self.job.spec["scheduling"] = self.scheduling
        return self._reasons

    def _fields(self) -> None:
        """Add remarks and reasons for omitted or refused fields."""
        remarks, reasons = left_out(self.message)
        self.job.remarks += remarks
        self._reasons += reasons
        if len(self.instances) > 1:
            self.say(
                "Batch uses only the machines of the first entry of `instances`: the "
                "other entries are omitted"
            )
        if self.message.get("logsPolicy", {}).get("destination") != "CLOUD_LOGGING":
            self.say("the imported job writes its logs to Cloud Logging: logsPolicy is omitted")

    def _step(self) -> dict[str, Any] | None:
        """Return the only runnable with a container."""
        if len(self.groups) > 1:
            self.refuse(
                f"the source job has {len(self.groups)} task groups, but Batch accepts only one"
            )
        steps = self.task.get("runnables") or []
        steps = [step for step in steps if step.get("script", {}).get("text") != machines.SCRIPT]
        containers = [step for step in steps if "container" in step]
        if not containers:
            self.refuse(NO_CONTAINER if steps else NOTHING)
            return None
        if len(containers) > 1:
            self.refuse(SEVERAL.format(len(containers)))
        if any("script" in step for step in steps):
            self.refuse(WITH_SCRIPT)
        if any("barrier" in step for step in steps):
            self.refuse(BARRIER)
        return containers[0]

    def _tasks(self) -> int:
        """Return the number of machines: each runs one task, all at the same time."""
        count = int(self.group.get("taskCount", 1))
        parallel = int(self.group.get("parallelism", count))
        packed = int(self.group.get("taskCountPerNode", 1))
        if count < 0:
            self.refuse(f"the source job has {count} tasks")
        elif 0 < parallel < count:
            self.refuse(IN_TURN.format(count, parallel))
        if packed > 1:
            self.refuse(PACKED.format(packed))
        return count

    def _strategy(self) -> None:
        model = str(self.policy.get("provisioningModel", "STANDARD"))
        if model == "PREEMPTIBLE":
            self.say("Batch no longer supports PREEMPTIBLE: the imported job uses SPOT")
            model = "SPOT"
        if model == "RESERVATION_BOUND":
            self.say("RESERVATION_BOUND is omitted: the imported job selects its reservation by "
            "reservationAffinity")  # fmt: skip
            model = "STANDARD"
        if model != "STANDARD":
            self.scheduling["strategy"] = model

    def _machine(self) -> dict[str, Any]:
        type_ = self.policy.get("machineType") or placeholder("machine_type")
        machine: dict[str, Any] = {"machineType": type_}
        if template := self.instances[0].get("instanceTemplate"):
            self.say(f"the instance template {template} of the source job is not read: write its "
            "machine, disk and network into the job file")  # fmt: skip
        elif "machineType" not in self.policy:
            wished = [f"{k} {v}" for k, v in self.task.get("computeResource", {}).items()]
            wished += [f"{accelerator.get('count', 1)} {accelerator.get('type', 'GPU')}"
                       for accelerator in self.policy.get("accelerators", [])]  # fmt: skip
            shown = f" for {', '.join(wished)}" if wished else ""
            self.say(
                f"Batch chooses the machine of the source job{shown}: write a suitable "
                "machine type into the job file"
            )
        accelerators = self.policy.get("accelerators", [])
        if len(accelerators) > 1:
            self.say(
                "machines of a job have only one type of GPU: the other accelerators are omitted"
            )
        shape = machine_type(str(type_))
        if accelerators:
            name = str(accelerators[0].get("type", "")).rpartition("/")[2]
            machine["acceleratorType"] = name.upper().replace("-", "_")
            machine["acceleratorCount"] = int(accelerators[0].get("count", 1))
        elif shape and shape.accelerator_required:
            kind, counts = next(iter(shape.accelerators.items()))
            machine |= {"acceleratorType": kind, "acceleratorCount": counts[0]}
        has_gpu = "acceleratorType" in machine
        drivers = self.instances[0].get("installGpuDrivers") or any(
            accelerator.get("installGpuDrivers") for accelerator in accelerators
        )
        if has_gpu and not drivers:
            self.say(
                "the source job installs no GPU drivers: Batch installs them for the "
                "imported job, which needs them"
            )
        return machine | self._reservation()

    def _reservation(self) -> dict[str, Any]:
        """Return the reservation affinity. Unset means any; Spot and Flex-start have none."""
        reservation = str(self.policy.get("reservation", ""))
        if reservation == "NO_RESERVATION" or (not reservation and self.scheduling):
            return {}
        if not reservation:
            return {"reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"}}
        parts, zones = reservation.split("/"), self._allowed("zones")
        project = parts[1] if parts[0] == "projects" and len(parts) > 1 else "${stack.project}"
        zone = zones[0] if len(zones) == 1 else placeholder("zone")
        name = f"projects/{project}/zones/{zone}/reservations/{parts[-1]}"
        affinity = {
            "reservationAffinityType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [name],
        }
        return {"reservationAffinity": affinity}

    def _allowed(self, what: str) -> list[str]:
        """Return the ``regions`` or ``zones`` that the source job allows."""
        allowed = self.place.get("location", {}).get("allowedLocations", [])
        return [
            location.rpartition("/")[2] for location in allowed if location.startswith(f"{what}/")
        ]

    def _disk(self) -> dict[str, Any]:
        disk = self.policy.get("bootDisk", {})
        extra = int(self.task.get("computeResource", {}).get("bootDiskMib", 0))
        size = max(int(disk.get("sizeGb", machines.DISK_GB)), -(-extra // 1024))
        if "type" not in disk and size == machines.DISK_GB:
            return {}
        kind = {"bootDiskType": disk["type"]} if "type" in disk else {}
        return {"diskSpec": {**kind, "bootDiskSizeGb": size}}

    def _run_time(self, step: Mapping[str, Any]) -> None:
        limit, own = self.task.get("maxRunDuration"), step.get("timeout")
        if limit and own and limit != own:
            self.say(
                f"the timeout {own} of the runnable is omitted: the imported job uses "
                "maxRunDuration as the timeout of each attempt"
            )
        if duration := limit or own:
            self.scheduling["timeout"] = duration
        else:
            self.say(
                "the source job has no maxRunDuration: each attempt of the imported job ends "
                "after seven days"
            )

    def _retries(self, tasks: int) -> None:
        count = int(self.task.get("maxRetryCount", 0))
        policies = self.task.get("lifecyclePolicies", [])
        if not count:
            self.scheduling["disableRetries"] = True
            if policies:
                self.say("lifecyclePolicies is omitted: it has no effect without maxRetryCount")
            return
        here = BATCH_RETRIES.get(str(self.scheduling.get("strategy")), OTHER_BATCH_RETRIES)
        codes = [policy.get("actionCondition", {}).get("exitCodes", []) for policy in policies]
        is_ours = len(policies) == 1 and policies[0].get("action") == "RETRY_TASK" and (
            set(codes[0]) == set(GOOGLES_CODES))  # fmt: skip
        if not policies and tasks > 1:
            self.scheduling["restartJobOnWorkerRestart"] = True
            is_ours = True
        if not is_ours:
            when = ", ".join(
                f"{p.get('action')} after {', '.join(map(str, c))}"
                for p, c in zip(policies, codes, strict=True)
            )
            self.say(f"the source job retries after its own exit codes ({when or 'any'}); the "
            "imported job retries only after Google's 50001 to 50004")  # fmt: skip
        if count != here:
            self.say(f"the source job retries at most {count} times; the imported job at most "
            f"{here} times, or never with disableRetries")  # fmt: skip

    def _account_and_network(self) -> None:
        account = self.place.get("serviceAccount", {})
        email = str(account.get("email", ""))
        if not email or DEFAULT_ACCOUNT.fullmatch(email):
            self.say("the source job runs as Compute Engine's default account; the imported job "
            "runs as a service account of the stack, with grants for the resources that "
            "the source names")  # fmt: skip
        else:
            self.job.spec["serviceAccount"] = email
        if any(scope != CLOUD_PLATFORM for scope in account.get("scopes", ())):
            self.say(
                "the scopes of the source job's account are omitted: IAM roles limit the account"
            )
        regions, zones = self._allowed("regions"), self._allowed("zones")
        if zones and not regions and "reservation" not in self.policy:
            self.say(
                f"the source job may run only in {', '.join(zones)}; the imported job may run "
                "in any zone of the region"
            )
        where = regions or [zone.rpartition("-")[0] for zone in zones]
        self.job.region = self.job.region or (where[0] if where else "")
        interfaces = self.place.get("network", {}).get("networkInterfaces", [])
        if not interfaces:
            return
        names = [
            interface.get("subnetwork") or interface.get("network") or ""
            for interface in interfaces
        ]
        if interfaces[0].get("noExternalIpAddress"):
            self.job.spec["pscInterfaceConfig"] = "${network.interface}"
            self.job.subnet = names[0]
        else:
            self.say(f"the source job is in {names[0] or 'a network'} with external addresses; the "
            "imported job is in the project's default network. With pscInterfaceConfig: "
            f"${{network.interface}} it is in the stack's subnet, without external "
            "addresses")  # fmt: skip
        if len(interfaces) > 1:
            self.say(
                f"machines of a job have one network interface: {', '.join(names[1:])} is omitted"
            )

    def _labels(self) -> None:
        both = {**self.place.get("labels", {}), **self.message.get("labels", {})}
        ours = (*JOB_LABELS, "batch-job-id")
        self.job.labels |= {k: v for k, v in both.items() if k not in ours}

    def _variables(self, step: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables of runnable and task, without those that every job gets."""
        if "environments" in self.task:
            self.say(
                "environments is an old field of Batch: the imported job sets its entries as "
                "variables"
            )
        inside, own = self.task.get("environment", {}), step.get("environment", {})
        variables = {
            **self.task.get("environments", {}),
            **inside.get("variables", {}),
            **own.get("variables", {}),
        }
        secrets = {**inside.get("secretVariables", {}), **own.get("secretVariables", {})}
        for name, resource in secrets.items():
            if SECRET_VALUE.fullmatch(value := f"{resource}#value"):
                variables[name] = value
                continue
            variables[name] = placeholder(f"secret_of_{name}")
            what = f"the secret {resource}" if SHOWN_SECRET.fullmatch(resource) else "a secret"
            self.say(f"variable {name} has {what} instead of "
            "projects/PROJECT/secrets/SECRET/versions/VERSION: write "
            f"${{secrets.KEY.value}}, and add the secret as KEY to `secrets` of the stack "
            "file")  # fmt: skip
        variables.pop("CLOUD_ML_JOB_ID", None)
        if match := MODEL_FOLDER.fullmatch(str(variables.get("AIP_MODEL_DIR"))):
            self.job.spec["baseOutputDirectory"] = {"outputUriPrefix": match[1]}
            outputs = output_variables(match[1])
            variables = {
                name: value
                for name, value in variables.items()
                if name not in outputs or value.rstrip("/") != outputs[name].rstrip("/")
            }
        if variables.get("CLUSTER_SPEC") == machines.ALONE:
            del variables["CLUSTER_SPEC"]
        return variables

    def _container(self, step: Mapping[str, Any]) -> dict[str, Any]:
        container = step["container"]
        words = [str(word) for word in container.get("commands", [])]
        command = str(container.get("entrypoint", ""))
        spec: dict[str, Any] = {"imageUri": container.get("imageUri", placeholder("image"))}
        env, moves = self._variables(step), self._moves(container)
        texts = [command, *words, *env.values()]
        self._tell_moves(moves, texts)
        known = {"CLOUD_ML_JOB_ID", "CLUSTER_SPEC", *OUTPUT_FOLDERS, *env}

        def text(argument: str) -> str:
            return _kept(_moved(argument, moves), known)

        if command:
            is_list = re.fullmatch(r"[\w./-]+( +[\w./=-]+)+", command)
            if is_list:
                self.say("the entrypoint has several words: the first is imported as the command, "
                "the others as its arguments")  # fmt: skip
            spec["command"] = list(map(text, command.split() if is_list else [command]))
        if words:
            spec["args"] = list(map(text, words))
        if env:
            spec["env"] = [{"name": name, "value": text(value)} for name, value in env.items()]
        return spec

    def _docker(self, options: str, taken: Collection[str]) -> None:
        """Report docker options by name (values may be secrets), except the options ``taken``."""
        try:
            words = shlex.split(options)
        except ValueError:
            words = []
        others, is_read = dict[str, None](), False
        for word, after in itertools.pairwise([*words, ""]):
            name, _, value = word.partition("=")
            if match := OPTION.match(name):
                is_read = True
                if f"{name}={value or after}" not in taken:
                    others[match[0]] = None
        if others or (options.strip() and not is_read):
            shown = f" `{' '.join(others)}`" if others else ""
            what = "set their effect in the image, env or command"
            if others.keys() & {*MEMORY_OPTIONS}:
                what = f"shared memory is 64 MB (with PyTorch, use num_workers=0); {what}"
            self.say(f"docker options{shown} are omitted: {what}")

    def _moves(self, container: Mapping[str, Any]) -> dict[str, str]:
        """Return container paths of buckets -> paths of the same buckets in a job."""
        volumes = {volume.get("mountPath", "").rstrip("/"): volume
                   for volume in self.task.get("volumes", [])}  # fmt: skip
        mounts = {path: volume["gcs"].get("remotePath", "")
                  for path, volume in volumes.items() if path and "gcs" in volume}  # fmt: skip
        for disk in self.task.get("volumes", []):
            more = [one for one in disk.get("mountOptions", []) if one not in MOUNT_OPTIONS]
            if more:
                what = f"the mount options {' '.join(more)} are omitted"
                for_all = ": all users of the container can read and write a bucket"
                self.say(what + for_all * ("gcs" in disk))
        inside = dict[str, str]()
        for volume in container.get("volumes", []):
            host, _, rest = str(volume).partition(":")
            target, _, how = rest.partition(":")
            host, target = host.rstrip("/"), (target or host).rstrip("/")
            around = [path for path in volumes if path and _is_in(host, path)]
            moves = {
                target + path.removeprefix(host): remote
                for path, remote in mounts.items()
                if _is_in(path, host)
            }
            if (parent := max(around, key=len, default="")) in mounts:
                moves[target] = mounts[parent] + host.removeprefix(parent)
            elif not around and not moves:
                self.say(
                    f"the machine's volume {volume} is not mounted: the imported job has only "
                    "the container's files"
                )
            if moves and "ro" in how.split(","):
                self.say(
                    f"volume {volume} is read-only in the source job; the imported job can "
                    "write to the bucket if its account can"
                )
            inside |= moves
        if not container.get("volumes"):
            inside = mounts
        return {
            path: f"/gcs/{remote.removeprefix('gs://').strip('/')}"
            for path, remote in sorted(inside.items(), key=lambda item: -len(item[0]))
            if path
        }

    def _tell_moves(self, moves: Mapping[str, str], texts: list[str]) -> None:
        names = _paths(moves).findall("\n".join(texts)) if moves else []
        for path, remote in moves.items():
            named = buckets([*texts, self.job.spec.get("baseOutputDirectory", {})])
            if path == remote and remote.split("/")[2] in named:
                continue
            if path not in names:
                what = f"no argument or variable contains {path}, the mount path of a bucket"
                self.say(
                    f"{what}: jobs mount only buckets that they name, so write {remote} in an "
                    "argument or variable"
                )
            elif path != remote:
                what = f"{path} in arguments and variables is replaced by {remote}"
                self.say(f"{what}: replace it also in code and image")

    def _file_systems(self) -> dict[str, Any]:
        """Return NFS mounts in the form of a job file. A rule refuses them for jobs on Batch."""
        mounts = [
            {
                "server": volume["nfs"].get("server", ""),
                "path": volume["nfs"].get("remotePath", ""),
                "mountPoint": PurePosixPath(volume.get("mountPath", "/")).name,
            }
            for volume in self.task.get("volumes", [])
            if "nfs" in volume
        ]
        for volume in self.task.get("volumes", []):
            if "deviceName" in volume:
                what = (
                    f"the disk {volume['deviceName']} at {volume.get('mountPath', '')} is omitted"
                )
                self.say(f"{what}: copy its files to a bucket, or use a larger boot disk")
        return {"nfsMounts": mounts} if mounts else {}

    def _resources(self, pool: Mapping[str, Any], tasks: int) -> None:
        """Report a cost difference: Batch can run several tasks on one machine."""
        asked = self.task.get("computeResource", {})
        job = Job({"jobSpec": {"workerPoolSpecs": [dict(pool)]}})
        whole = machines.resources(job.pools[0])
        packs = any(int(asked.get(key, 2000)) < int(whole[key]) for key in whole)
        if tasks > 1 and "taskCountPerNode" not in self.group and packs:
            self.say("Batch may put several tasks of the source job on one machine; the imported "
            "job has a machine for each task, which costs more: choose a smaller machine "
            "type")  # fmt: skip
        requested = {key: value for key, value in asked.items() if key in whole}
        if any(int(whole[key]) < int(value) for key, value in requested.items()):
            shown = ", ".join(f"{key} {value}" for key, value in requested.items())
            self.say(f"a task requests more than its machine type has ({shown}), so Batch never "
            "starts it: choose a larger machine type")  # fmt: skip


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _paths(moves: Mapping[str, str]) -> re.Pattern[str]:
    """Return a pattern for any of the paths, longest first, in the order of ``moves``."""
    return re.compile(rf"(?<![\w./-])(?:{'|'.join(map(re.escape, moves))})(?![\w.-])")


def _moved(text: str, moves: Mapping[str, str]) -> str:
    """Return ``text`` with bucket paths replaced by the paths in a job."""
    if not moves:
        return text
    return _paths(moves).sub(lambda match: moves[match[0]], text)


def _kept(text: str, known: set[str]) -> str:
    """Return ``text`` with `$` escaped in references that only Vertex AI expands.

    >>> _kept("$(A) $(date)", {"A"})
    '$$(A) $(date)'
    """
    return EXPANDED.sub(
        lambda match: (
            f"${match[0]}"
            if match[1] in known or text[match.start() - 1 : match.start()] == "$"
            else match[0]
        ),
        text,
    )


def replaced(value: Any, old: str, new: str) -> Any:
    """Replace a text in a value, at any depth."""
    if isinstance(value, Mapping):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    return value.replace(old, new) if isinstance(value, str) else value
