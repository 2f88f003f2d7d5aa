"""Calls of the official client in Python code -> imported jobs. The code is read, never run.

What the calls mean is google-cloud-aiplatform 2.7.0, google/cloud/aiplatform/jobs.py and
training_jobs.py.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.importing import evaluation
from vertex_training_cli.importing.evaluation import Evaluator, Unknown
from vertex_training_cli.importing.imported import ImportedJob, from_message, key_of

#: Classes of the client whose constructors say what a job runs.
TRAINING_JOBS: Final = (
    "CustomTrainingJob",
    "CustomContainerTrainingJob",
    "CustomPythonPackageTrainingJob",
)
#: Methods that submit a job, with options of their own.
SUBMITS: Final = ("run", "submit")
#: Options that have no place in a job file, and why.
DROPPED: Final = {
    "dataset": "managed data sets belong to training pipelines: read the bucket instead",
    "model_display_name": "a CustomJob uploads no model: its code writes to AIP_MODEL_DIR",
    "model_serving_container_image_uri": "a CustomJob uploads no model for serving",
    "enable_autolog": "call autolog in the code",
    "credentials": "the job runs as its service account, without a key",
}
#: Option of the client -> field of the job, for those of the whole job.
JOB_FIELDS: Final = {
    "service_account": ("serviceAccount",),
    "network": ("network",),
    "enable_web_access": ("enableWebAccess",),
    "enable_dashboard_access": ("enableDashboardAccess",),
    "tensorboard": ("tensorboard",),
    "persistent_resource_id": ("persistentResourceId",),
    "restart_job_on_worker_restart": ("scheduling", "restartJobOnWorkerRestart"),
    "disable_retries": ("scheduling", "disableRetries"),
    "scheduling_strategy": ("scheduling", "strategy"),
    "timeout": ("scheduling", "timeout"),
    "max_wait_duration": ("scheduling", "maxWaitDuration"),
    "base_output_dir": ("baseOutputDirectory", "outputUriPrefix"),
}
#: Values in one job at most, as in a job file.
MAX_VALUES: Final = 20_000
#: The number of a pool in the name of its variable.
NUMBERED: Final = re.compile(r"pool\D*(\d{1,2})$")
SECONDS: Final = ("timeout", "max_wait_duration")


@dataclass(slots=True)
class ClientCall:
    """A job of the client: the class or method that made it, and all its options so far."""

    made_by: str
    options: dict[str, Any] = field(default_factory=dict)


class CallFinder:
    """Walks over statements in the order of the text, and collects the jobs that they make."""

    def __init__(self, names: dict[str, Any] | None = None) -> None:
        self.evaluator = Evaluator(names)
        self.calls: list[ClientCall] = []

    def visit(self, statements: list[ast.stmt]) -> None:
        """Read statements, those inside of functions and branches included."""
        for statement in statements:
            self._visit_one(statement)

    def _visit_one(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = CallFinder(dict(self.evaluator.names))
            inner._bind_parameters(node.args)
            inner.visit(node.body)
            self.calls += inner.calls
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            self._assign(node)
        elif isinstance(node, ast.Expr | ast.Return) and node.value is not None:
            self._value(node.value)
        else:
            for name in ("body", "orelse", "finalbody"):
                self.visit([each for each in getattr(node, name, []) if isinstance(each, ast.stmt)])

    def _bind_parameters(self, parameters: ast.arguments) -> None:
        every = [*parameters.posonlyargs, *parameters.args]
        defaults: list[ast.expr | None] = [None] * (len(every) - len(parameters.defaults))
        pairs = list(zip(every, [*defaults, *parameters.defaults], strict=True))
        pairs += list(zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True))
        for parameter, default in pairs:
            known = None if default is None else self.evaluator.value(default)
            given = self.evaluator.names.get(parameter.arg, Unknown(parameter.arg))
            self.evaluator.names[parameter.arg] = given if known is None else known

    def _assign(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if node.value is None:
            return
        value = self._value(node.value)
        if isinstance(node, ast.AugAssign):
            if not isinstance(node.op, ast.Add):
                return
            before = self.evaluator.value(node.target)
            if isinstance(before, list) and isinstance(value, list):
                value = [*before, *value]
            elif isinstance(before, str):
                value = before + evaluation.text(value)
            else:
                value = before
            if isinstance(value, str | list) and len(value) > evaluation.MAX_LENGTH:
                value = Unknown("long value")
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            self.evaluator.assign(target, value)

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression; a call that makes or submits a job is taken note of."""
        if isinstance(node, ast.Await):
            return self._value(node.value)
        if not isinstance(node, ast.Call):
            return self.evaluator.value(node)
        called, options = evaluation.called_name(node), self._options(node)
        of = None
        if isinstance(node.func, ast.Attribute):
            of = self._value(node.func.value)
        if called in TRAINING_JOBS or called in ("CustomJob", "from_local_script"):
            if "worker_pool_specs" not in options and len(node.args) > 1:
                options["worker_pool_specs"] = self.evaluator.value(node.args[1])
            if node.args:
                options.setdefault("display_name", self.evaluator.value(node.args[0]))
            self.calls.append(ClientCall(called, options))
            return self.calls[-1]
        if isinstance(of, ClientCall):
            if called in SUBMITS:
                of.options |= {key: value for key, value in options.items() if value is not None}
            return of
        return self.evaluator.value(node)

    def _options(self, node: ast.Call) -> dict[str, Any]:
        found = dict[str, Any]()
        for each in node.keywords:
            value = self.evaluator.value(each.value)
            if each.arg:
                found[each.arg] = value
            elif isinstance(value, dict):
                found |= value
        return found


def jobs_in(trees: list[ast.Module], name: str) -> list[ImportedJob]:
    """The jobs that these trees make, read one after the other; ``name`` is for a nameless one.

    Where nothing calls the client, a value that is a list of worker pools or a message counts.
    """
    finder = CallFinder()
    for tree in trees:
        finder.visit(tree.body)
    if finder.calls:
        return [_job(call, name) for call in finder.calls]
    found = list[ImportedJob]()
    if pools := _numbered_pools(finder.evaluator.names):
        return [_of_numbered(pools, name)]
    for key, value in finder.evaluator.names.items():
        if isinstance(value, dict) and any(field in value for field in ("job_spec", "jobSpec")):
            found.append(from_message(plain(value), name))
        elif _is_pool(value):
            found.append(from_message({"workerPoolSpecs": [plain(value)]}, name))
        elif "worker_pool_spec" in key and isinstance(value, list):
            found.append(from_message({"workerPoolSpecs": plain(value)}, name))
    return found[-1:]


def _is_pool(value: Any) -> bool:
    return isinstance(value, dict) and any("machine" in key and "spec" in key for key in value)


def _numbered_pools(names: dict[str, Any]) -> dict[int, Any]:
    """Pools by the number in their variable's name: ``worker_pool_1 = {…}``."""
    found = dict[int, Any]()
    for name, value in names.items():
        if (match := NUMBERED.search(name)) and _is_pool(value):
            found[int(match[1])] = plain(value)
    return dict(sorted(found.items()))


def _of_numbered(pools: dict[int, Any], name: str) -> ImportedJob:
    job = from_message({"workerPoolSpecs": list(pools.values())}, name)
    if missing := sorted(set(range(max(pools))) - set(pools)):
        which = ", ".join(map(str, missing))
        job.remarks.append(f"this is a part of a job: pool {which} is not in the source")
    return job


def plain(value: Any) -> Any:
    """``value`` with a text for each unknown part.

    Raises:
        CommandError: it is larger than any job; a few lines of code can nest one in another.
    """
    left = MAX_VALUES

    def copied(inner: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise CommandError("a value in the code is larger than any job.")
        if isinstance(inner, dict):
            return {key: copied(item) for key, item in inner.items()}
        if isinstance(inner, list):
            return [copied(item) for item in inner]
        return str(inner) if isinstance(inner, Unknown | ClientCall) else inner

    return copied(value)


def _job(call: ClientCall, name: str) -> ImportedJob:
    options = {key: plain(value) for key, value in call.options.items() if value is not None}
    display = str(options.get("display_name") or name)
    if call.made_by == "CustomJob":
        job = from_message({"workerPoolSpecs": options.get("worker_pool_specs") or []}, display)
        if not isinstance(job.spec["workerPoolSpecs"], list):
            job.remarks.append("worker_pool_specs is made while the code runs: write the pools")
            job.spec["workerPoolSpecs"] = []
    else:
        job = ImportedJob(key_of(display, name), {"workerPoolSpecs": _pools(call, options)})
        job.script = str(options.get("script_path", ""))
        job.requirements = tuple(map(str, options.get("requirements") or ()))
    job.name = key_of(display, name)
    labels = options.get("labels")
    job.labels = {str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {}
    job.encryption_key = str(
        options.get("encryption_spec_key_name") or options.get("training_encryption_spec_key_name")
        or ""
    )  # fmt: skip
    _set_fields(job, options)
    job.remarks += [f"{key} is left out: {why}" for key, why in DROPPED.items() if options.get(key)]
    return job


def _set_fields(job: ImportedJob, options: dict[str, Any]) -> None:
    for option, path in JOB_FIELDS.items():
        value = options.get(option)
        if value is None or value == "":
            continue
        inner = job.spec
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = f"{value}s" if option in SECONDS else value


def _pools(call: ClientCall, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The pools that the client makes of its options: a chief, workers, a reduction server."""
    machine: dict[str, Any] = {"machineType": options.get("machine_type") or "n1-standard-4"}
    accelerator = options.get("accelerator_type")
    if accelerator and not str(accelerator).endswith("_UNSPECIFIED"):
        machine["acceleratorType"] = accelerator
        machine["acceleratorCount"] = options.get("accelerator_count") or 1
    pool: dict[str, Any] = {"replicaCount": 1, "machineSpec": machine, **_task(call, options)}
    if "boot_disk_type" in options or "boot_disk_size_gb" in options:
        pool["diskSpec"] = {
            "bootDiskType": options.get("boot_disk_type", "pd-ssd"),
            "bootDiskSizeGb": options.get("boot_disk_size_gb", 100),
        }
    replicas = options.get("replica_count", 1)
    pools = [pool]
    if isinstance(replicas, int) and replicas > 1:
        pools.append({**pool, "replicaCount": replicas - 1})
    servers = options.get("reduction_server_replica_count") or 0
    if isinstance(servers, int) and servers > 0:
        image = options.get("reduction_server_container_uri") or (
            "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
        )
        reduction = {"machineType": options.get("reduction_server_machine_type", "n1-highcpu-16")}
        task = {"containerSpec": {"imageUri": image}}
        pools.append({"replicaCount": servers, "machineSpec": reduction, **task})
    return pools


def _task(call: ClientCall, options: dict[str, Any]) -> dict[str, Any]:
    image, given = options.get("container_uri", ""), options.get("args")
    arguments = [each if isinstance(each, str) else str(each) for each in given or []]
    variables = options.get("environment_variables")
    variables = variables if isinstance(variables, dict) else {}
    env = [{"name": str(key), "value": str(value)} for key, value in variables.items()]
    more = ({"args": arguments} if arguments else {}) | ({"env": env} if env else {})
    if call.made_by == "CustomContainerTrainingJob":
        command = options.get("command")
        more = ({"command": command} if command else {}) | more
        return {"containerSpec": {"imageUri": image, **more}}
    package = {"executorImageUri": image}
    if call.made_by == "CustomPythonPackageTrainingJob":
        package["packageUris"] = [options.get("python_package_gcs_uri", "")]
        package["pythonModule"] = options.get("python_module_name", "")
    return {"pythonPackageSpec": {**package, **more}}
