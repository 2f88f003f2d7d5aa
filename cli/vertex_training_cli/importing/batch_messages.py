"""Parses jobs of Google Batch in the form of REST and gcloud, with Google's own message class.

Each field of a message is carried over by ``batch_jobs``, or refused, or told with what to do
instead: the tables here say which. A field that is in none of them is told as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from vertex_training.customjob.request.message import to_camel_case
from vertex_training.errors import CommandError
from vertex_training_cli.importing.imported import Scalar

#: What a job of Batch has, in both spellings of the API, and no CustomJob.
FIELDS: Final = ("taskGroups", "task_groups")
GROUP: Final = "taskGroups."
TASK: Final = f"{GROUP}taskSpec."
STEP: Final = f"{TASK}runnables."
PLACE: Final = "allocationPolicy."
MACHINE: Final = f"{PLACE}instances."
#: What the service fills in: no part of a request. Its id is read of the name.
FILLED_IN: Final = ("uid", "status", "createTime", "updateTime")
OUTPUT: Final = ("name", *FILLED_IN, f"{GROUP}name")
#: Fields that are carried over, with what they hold; the code below says what of it is not.
CARRIED: Final = (
    "labels", "logsPolicy.destination", f"{GROUP}taskCount", f"{GROUP}parallelism",
    f"{GROUP}taskCountPerNode", f"{GROUP}requireHostsFile",
    f"{STEP}container.imageUri", f"{STEP}container.commands", f"{STEP}container.entrypoint",
    f"{STEP}container.volumes", f"{STEP}container.options", f"{STEP}script", f"{STEP}barrier",
    f"{STEP}environment.variables", f"{STEP}environment.secretVariables", f"{STEP}timeout",
    f"{TASK}environment.variables", f"{TASK}environment.secretVariables", f"{TASK}environments",
    f"{TASK}computeResource", f"{TASK}maxRunDuration", f"{TASK}maxRetryCount",
    f"{TASK}lifecyclePolicies", f"{TASK}volumes", f"{PLACE}location", f"{PLACE}serviceAccount",
    f"{PLACE}labels", f"{PLACE}network.networkInterfaces.network",
    f"{PLACE}network.networkInterfaces.subnetwork",
    f"{PLACE}network.networkInterfaces.noExternalIpAddress", f"{MACHINE}instanceTemplate",
    f"{MACHINE}installGpuDrivers", f"{MACHINE}policy.machineType",
    f"{MACHINE}policy.provisioningModel", f"{MACHINE}policy.accelerators.type",
    f"{MACHINE}policy.accelerators.count", f"{MACHINE}policy.accelerators.installGpuDrivers",
    f"{MACHINE}policy.bootDisk.type", f"{MACHINE}policy.bootDisk.sizeGb",
    f"{MACHINE}policy.reservation",
)  # fmt: skip
#: Fields that no job file has -> what to do instead.
LEFT_OUT: Final = {
    "priority": "a job of a stack starts when the stack is updated",
    "notifications": "use `messages` of the job in the stack file (docs/batch.md)",
    "logsPolicy.logsPath": "logs go to Cloud Logging: read them by `vt jobs logs`",
    "logsPolicy.cloudLoggingOption": "log entries have the resource type of Batch jobs",
    f"{GROUP}schedulingPolicy": "all tasks start at the same time",
    f"{GROUP}permissiveSsh": "machines get no SSH keys for each other: launch by torch.distributed",
    f"{GROUP}runAsNonRoot": "set USER in the image",
    f"{STEP}container.blockExternalNetwork": (
        "use network mode psc without nat, so that machines have no internet access"
    ),
    f"{STEP}container.username": (
        "the service account of the job pulls the image: grant it read access"
    ),
    f"{STEP}container.password": (
        "the service account of the job pulls the image: grant it read access"
    ),
    f"{STEP}container.enableImageStreaming": "the image is pulled before the job starts",
    f"{STEP}displayName": "a job has one runnable, named like the job",
    f"{STEP}labels": "only the job has labels",
    f"{STEP}ignoreExitStatus": "a task fails if its command fails: append `|| true` to the command",
    f"{STEP}background": "a job has one runnable: start background processes in its command",
    f"{STEP}alwaysRun": "a job has one runnable: clean up in its command, by `trap`",
    f"{STEP}environment.encryptedVariables": "store the value in a secret of the stack",
    f"{TASK}environment.encryptedVariables": "store the value in a secret of the stack",
    f"{PLACE}network.networkInterfaces.nicType": "the network card depends on the machine type",
    f"{PLACE}placement": "Batch decides the placement of machines",
    f"{PLACE}tags": "firewall rules of the stack apply to its subnet, not to tags",
    f"{MACHINE}installOpsAgent": "install the agent in the image if the job needs its metrics",
    f"{MACHINE}blockProjectSshKeys": "set block-project-ssh-keys in the project's metadata",
    f"{MACHINE}policy.minCpuPlatform": "choose a machine type with that platform",
    f"{MACHINE}policy.disks": "a job has only a boot disk: enlarge it by diskSpec",
    f"{MACHINE}policy.accelerators.driverVersion": "Batch chooses the driver version",
    f"{MACHINE}policy.bootDisk.image": (
        "Batch chooses the operating system; the container has its own"
    ),
    f"{MACHINE}policy.bootDisk.snapshot": "copy the disk's files into the image or a bucket",
    f"{MACHINE}policy.bootDisk.diskInterface": "Batch chooses the value",
}
#: How Google's class begins what it says of a field, once for each message around it.
WITHIN: Final = re.compile(r"(Failed to parse \w+ field: )+(?=Failed to parse)")
#: Parts of ``projects/P/locations/R/jobs/ID``.
NAME_PARTS: Final = 6
#: Fields without which the job would be another one -> why it is refused.
REFUSED: Final = {
    f"{GROUP}taskEnvironments": (
        "all tasks of a job have the same variables: choose values in the code by "
        "BATCH_TASK_INDEX, or write several jobs"
    ),
}
#: Fields that Batch has, and its client's class of v1 (google-cloud-batch 0.22.4) has not.
NOT_IN_CLIENT: Final = {
    f"{PLACE}instanceFlexibilityPolicy": (
        "Google's client does not send this field: choose one machine type"
    )
}
#: Numbers of types in a descriptor.
STRING: Final = 9
BOOL: Final = 8
#: A value that is to be filled in.
OPEN_VALUE: Final = re.compile(r"<[^<>]+>|\$\{?\w+\}?|\{\{?[^{}]*\}?\}|[A-Z_]+")
#: Fields that are mappings by names of somebody's own.
MAPS: Final = ("labels", "ariables", "environments")


@dataclass(slots=True)
class BatchMessage:
    """A Batch job in the form of REST, with remarks."""

    fields: dict[str, Any]
    remarks: list[str] = field(default_factory=list)
    name: str = ""
    """Id of the job, as the caller names it."""
    region: str = ""
    """Region that the caller sends the job to."""


def parsed(content: Mapping[str, Any]) -> BatchMessage:
    """Parse a job in the form of REST by Google's message class; add remarks on unknown fields.

    Raises:
        CommandError: it is no job of Batch, or has an open value (``$TASKS``) for a number.
    """
    from google.cloud import batch_v1

    message, unknown = batch_v1.Job.pb(batch_v1.Job()), list[str]()
    asked = {key: item for key, item in content.items() if to_camel_case(key) not in FILLED_IN}
    try:
        clean = _known(asked, message.DESCRIPTOR, "", unknown)
        ordered = _ordered(MessageToDict(ParseDict(clean, message)), clean)
    except (ParseError, RecursionError) as wrong:
        what = WITHIN.sub("", str(wrong).partition("\n")[0]).rstrip(".")
        raise CommandError(f"this is not a Batch job: {what}.") from None
    remarks = [
        f"{name} is omitted: {NOT_IN_CLIENT[name]}"
        if name in NOT_IN_CLIENT
        else f"unknown field {name}, which Batch refuses"
        for name in unknown
    ]
    return BatchMessage(ordered, remarks)


def of_job(message: Any) -> BatchMessage:
    """Return the message of an existing Batch job."""
    return BatchMessage(MessageToDict(type(message).pb(message)))


def left_out(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return remarks on fields that job files do not have, and reasons to refuse the message."""
    remarks, reasons = dict[str, None](), dict[str, None]()
    for path in dict.fromkeys(_paths(message)):
        if _is_below(path, (*OUTPUT, *CARRIED)):
            continue
        if why := next((text for key, text in REFUSED.items() if _is_below(path, [key])), ""):
            reasons[why] = None
            continue
        known = next((key for key in LEFT_OUT if _is_below(path, [key])), path)
        what = f"{known} is omitted (job files have no such field)"
        remarks[f"{what}: {LEFT_OUT[known]}" if known in LEFT_OUT else what] = None
    return list(remarks), list(reasons)


def _known(value: Any, type_: Descriptor, path: str, unknown: list[str]) -> Any:
    """Return a message with the fields of ``type_``; add other names to ``unknown``."""
    if not isinstance(value, Mapping):
        return value
    known = dict[str, Any]()
    for key, item in value.items():
        field = next((f for f in type_.fields if key in (f.json_name, f.name)), None)
        if field is None:
            unknown.append(f"{path}.{key}".lstrip("."))
        elif not _is_null(item):
            inside = f"{path}.{field.json_name}".lstrip(".")
            known[field.json_name] = _typed(item, field, inside, unknown)
    return known


def _typed(value: Any, field: FieldDescriptor, path: str, unknown: list[str]) -> Any:
    """Convert the value of a field as Google's class does."""
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        if not isinstance(value, Mapping):
            return value
        return {k: v if isinstance(v, dict | list) else str(v) for k, v in value.items()}
    if field.is_repeated and isinstance(value, str):  # the service takes one for a list of one
        value = [value]
    items = value if field.is_repeated and isinstance(value, list) else [value]
    if inner is not None and inner.file.package.startswith("google.cloud."):
        places = [f"{path}[{n}]" if field.is_repeated else path for n in range(len(items))]
        elements = [_known(v, inner, p, unknown) for v, p in zip(items, places, strict=True)]
    else:
        is_number = field.enum_type is None and inner is None and field.type not in (STRING, BOOL)
        for item in items if is_number else ():
            if OPEN_VALUE.fullmatch(str(item)):
                what = f"{path} is {item}, but Batch expects a number"
                raise CommandError(f"{what}.", "write a number and import again")
        switches = {"true": True, "false": False} if field.type == BOOL else {}
        elements = [
            switches.get(str(v).lower(), str(v)) if isinstance(v, str) else v for v in items
        ]
    return elements if items is value else elements[0]


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield each field of a message with a value, by names without indices."""
    if isinstance(value, Mapping) and value and not path.endswith(MAPS):
        for key, item in value.items():
            yield from _paths(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        for item in value:
            yield from _paths(item, path)
    elif path:
        yield path


def _ordered(value: Any, like: Any) -> Any:
    """Return ``value`` with its keys in the order of ``like``: Google's class sorts mappings."""
    if isinstance(value, Mapping) and isinstance(like, Mapping):
        keys = [*(key for key in like if key in value), *(key for key in value if key not in like)]
        return {key: _ordered(value[key], like.get(key)) for key in keys}
    if isinstance(value, list) and isinstance(like, list):
        return [_ordered(one, other) for one, other in zip(value, like, strict=True)]
    return value


def _is_below(path: str, names: Any) -> bool:
    return any(path == name or path.startswith(f"{name}.") for name in names)


def _is_null(value: Any) -> bool:
    """Return True if a YAML scalar is null, by its characters in the file."""
    return isinstance(value, Scalar) and value in ("", "null", "~", "Null", "NULL")
