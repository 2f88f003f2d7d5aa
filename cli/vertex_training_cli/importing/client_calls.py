"""Read calls of Vertex AI's Python client in source code as jobs, without running the code.

Options have the meaning that google-cloud-aiplatform 2.7.0 defines in aiplatform/jobs.py,
training_jobs.py, hyperparameter_tuning.py and utils/worker_spec_utils.py. Airflow operators and
pipeline components have the same options.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.request.hints import messages
from vertex_training.customjob.request.message import to_camel_case
from vertex_training.errors import CommandError
from vertex_training_cli.importing.command_lines import (
    GCLOUD,
    CommandFiles,
    job_of,
    options_of,
    split,
)
from vertex_training_cli.importing.imported import (
    ImportedJob,
    Note,
    from_message,
    key_of,
    labels_of,
    placeholder,
    region_of,
    staged,
    with_api_names,
    with_placeholders,
)
from vertex_training_cli.importing.literals import (
    FUNCTIONS,
    MAX_ITEMS,
    Literals,
    Placeholder,
    dotted_name,
)

#: Positional arguments of each constructor and method of the client that creates a job.
POSITIONS: Final = {
    "CustomJob": ("display_name", "worker_pool_specs", "base_output_dir", "project", "location"),
    "from_local_script": ("display_name", "script_path", "container_uri", "args", "requirements"),
    "CustomTrainingJob": ("display_name", "script_path", "container_uri", "requirements"),
    "CustomContainerTrainingJob": ("display_name", "container_uri", "command"),
    "CustomPythonPackageTrainingJob": (
        *("display_name", "python_package_gcs_uri", "python_module_name", "container_uri"),
    ),
}
#: Airflow operators and pipeline components, each with the client's class of the same options.
OPERATORS: Final = {
    "CreateCustomContainerTrainingJobOperator": "CustomContainerTrainingJob",
    "CreateCustomPythonPackageTrainingJobOperator": "CustomPythonPackageTrainingJob",
    "CreateCustomTrainingJobOperator": "CustomTrainingJob",
    "CustomContainerTrainingJobRunOp": "CustomContainerTrainingJob",
    "CustomPythonPackageTrainingJobRunOp": "CustomPythonPackageTrainingJob",
    "CustomTrainingJobOp": "CustomJob",
}
#: Options that operators name differently than the client: the operator's and the client's name.
RENAMED: Final = {"region": "location", "project_id": "project",
                  "base_output_directory": "base_output_dir"}  # fmt: skip
#: Calls that create jobs but are not imported. A remark names each call.
UNREAD: Final = re.compile(
    r"(Create)?HyperparameterTuningJob(Operator|RunOp)?|create_hyperparameter_tuning_job"
    r"|Create\w*TrainingJobOperator|\w+JobRunOp"
    r"|create_custom_training_job(_op)?_from_component"
)
#: Options of operators that configure the workflow, not the job.
OF_WORKFLOW: Final = (
    "task_id", "dag", "gcp_conn_id", "impersonation_chain", "deferrable", "poll_interval",
    "retries",
)  # fmt: skip
SENDING: Final = ("run", "submit")
#: Options that a job file does not support, each with the reason.
DROPPED: Final = {
    "dataset": "managed datasets belong to training pipelines: read the bucket instead",
    "model_display_name": (
        "a CustomJob uploads no model: its code writes the model to AIP_MODEL_DIR"
    ),
    "model_serving_container_image_uri": "a CustomJob uploads no model for serving",
    "enable_autolog": "call `autolog` in the code",
    "credentials": "the job runs as its service account, without a key file",
}
#: Options of the client for the whole job, each with the path of the job's field.
JOB_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    **{name: (to_camel_case(name),) for name in (
        "service_account", "network", "enable_web_access", "enable_dashboard_access", "tensorboard",
        "experiment", "experiment_run", "psc_interface_config", "persistent_resource_id",
    )},
    **{name: ("scheduling", to_camel_case(name)) for name in (
        "restart_job_on_worker_restart", "disable_retries", "timeout", "max_wait_duration",
    )},
    "scheduling_strategy": ("scheduling", "strategy"),
    "base_output_dir": ("baseOutputDirectory", "outputUriPrefix"),
}  # fmt: skip
#: Options that configure the call, not the job.
OF_CALL: Final = ("project", "location", "sync", "create_request_timeout")
SECONDS: Final = ("timeout", "max_wait_duration")
#: Names of the client's modules. Their ``init`` sets defaults for later calls.
CLIENTS: Final = re.compile(r"(ai_?platform|aip|vertex(_?ai)?)(_v1\w*)?", re.I)
#: Message that contains a job's message.
REQUEST: Final = "CreateCustomJobRequest"
#: Functions that run a shell command. ``__shell__`` stands for a shell line of a notebook.
SHELLS: Final = ("system", "getoutput", "__shell__")
#: Options that ``aiplatform.init`` gives to all jobs.
INHERITED: Final = (
    "location", "staging_bucket", "network", "service_account", "encryption_spec_key_name",
)  # fmt: skip
MAKING: Final = "create_custom_job"
#: Name of a generated class of Pulumi: the message's name, with an optional prefix and suffix.
GENERATED: Final = re.compile(r"(?:GoogleCloudAiplatformV\d\w*?1?(?=[A-Z]))?(\w+?)(?:Args)?")


@dataclass(slots=True, eq=False)
class ClientCall:
    """A call of the client that creates a job, with the options of the job."""

    made_by: str
    options: dict[str, Any]
    place: str
    notes: set[Note] = field(default_factory=set)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """Options of each call that submits the job."""
    is_inner: bool = False
    """True if the job is only the trial job of a tuning job."""
    is_partly_read: bool = False
    """True if the call may have more options than were read."""


class CallReader(Literals):
    """Collects the jobs that calls in the code create."""

    def __init__(self, trees: list[tuple[str, ast.Module]]) -> None:
        makers = (*POSITIONS, *OPERATORS, MAKING, *SENDING, *SHELLS, "init")
        super().__init__(trees, makers, (REQUEST, *messages(), "dict"))
        self.jobs = list[ClientCall]()
        self.left_out = list[Note]()
        self._inits = list[dict[str, Any]]()
        self._made = dict[int, Any]()
        """Results of calls by the identity of the call's node."""
        self._messages = dict[int, ClientCall]()
        """Messages of jobs that no request contains yet, by the identity of the message."""
        self._has_lines = False
        """True if the code contains a whole gcloud command in one text."""
        self._items = 0

    def read(self) -> None:
        """Read all calls in the order of the code."""
        super().read()
        self._has_lines = any(job.made_by == "gcloud" for job in self.jobs)
        self.jobs += self._messages.values()
        for label, tree in self.trees:
            self.label = label
            for node in ast.walk(tree):
                self._note_values(node)
                self._note_words(node)

    def _note_values(self, node: ast.AST) -> None:
        is_plain = isinstance(node, ast.Attribute | ast.Subscript | ast.arg | ast.AnnAssign)
        if is_plain or isinstance(node, FUNCTIONS) or self._called(node) == "isinstance":
            return
        for child in ast.iter_child_nodes(node):
            name = self.name_of(child) if isinstance(child, ast.Name | ast.Attribute) else ""
            if name in POSITIONS and child is not getattr(node, "func", None):
                what = f"a job of `{name}` is not imported: the code uses another name for `{name}`"
                self.left_out.append(Note(what, self.place(child)))

    def _note_words(self, node: ast.AST) -> None:
        words = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
        texts = [word.value for word in words if isinstance(word, ast.Constant)]
        is_plain = isinstance(node, ast.Constant)
        text = " ".join(text for text in texts if isinstance(text, str))
        if GCLOUD.search(text) and not (is_plain and self._has_lines):
            what = "a gcloud command is not imported: the code builds it from single words"
            self.left_out.append(Note(what, self.place(node)))

    def _called(self, node: ast.AST) -> str:
        return self.name_of(node) if isinstance(node, ast.Call) else ""

    def call(self, node: ast.Call) -> Any:
        if id(node) not in self._made:
            self._made[id(node)] = NotImplemented
            self._made[id(node)] = self._read(node, self.name_of(node))
        return self._made[id(node)]

    def _job_of(self, node: ast.expr) -> ClientCall | None:
        job = self.call(node) if isinstance(node, ast.Call) else self._name(dotted_name(node))
        return job if isinstance(job, ClientCall) else None

    def _read(self, node: ast.Call, called: str) -> Any:
        """Return the job or message that a call creates; NotImplemented for other calls."""
        made_by = OPERATORS.get(called, called)
        if made_by in POSITIONS:
            return self._maker(node, called, made_by)
        if UNREAD.fullmatch(called):
            self.left_out.append(Note(f"call `{called}(…)` is not imported", self.place(node)))
            arguments = [*node.args, *(word.value for word in node.keywords)]
            for job in filter(None, map(self._job_of, arguments)):
                job.is_inner = True
            return NotImplemented
        if called == MAKING:
            return self._request(node)
        message = GENERATED.fullmatch(called)
        if called in (REQUEST, "dict") or (message and message[1] in messages()):
            options, unread = self._options(node, ())
            return NotImplemented if unread or node.args else options
        if called in SHELLS:
            return self._shell(node, called)
        if called == "init" and CLIENTS.fullmatch(dotted_name(node.func).partition(".")[0]):
            self._inits.append(self._options(node, ("project", "location"))[0])
        of = self._job_of(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if of and called in SENDING:
            options, unread = self._options(node, ())
            of.sent.append(options)
            of.notes |= unread | self._conditions(node)
            of.is_partly_read |= bool(unread)
        return NotImplemented

    def _maker(self, node: ast.Call, called: str, made_by: str) -> Any:
        options, unread = self._options(node, POSITIONS[made_by])
        if "job_spec" in options:
            message = {key: value for key, value in options.items() if key != "location"}
            job = self._new(node, "message", {**options, "message": message})
            job.sent = [{}] * bool(node.args)  # a resource of Pulumi, with its name
            self._messages[id(options)] = job
            return options
        if called in OPERATORS:
            options = {RENAMED.get(key, key): with_placeholders(value)
                       for key, value in options.items() if key not in OF_WORKFLOW}  # fmt: skip
        job = self._new(node, made_by, options)
        job.notes |= unread
        job.sent = [{}] * (called in OPERATORS)
        job.is_partly_read = bool(unread) or called in OPERATORS  # it may have default_args
        self.jobs.append(job)
        return job

    def _new(self, node: ast.Call, made_by: str, options: dict[str, Any]) -> ClientCall:
        return ClientCall(made_by, options, self.place(node), self._conditions(node))

    def _conditions(self, node: ast.Call) -> set[Note]:
        what = f"{self.condition} decides if and how often the job is submitted"
        return {Note(what, self.place(node))} if self.condition else set()

    def _options(self, node: ast.Call, names: tuple[str, ...]) -> tuple[dict[str, Any], set[Note]]:
        """Return the arguments of a call by name, and notes on arguments without a name."""
        plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
        options: dict[str, Any] = dict(zip(names, map(self.value, plain), strict=False))
        unread = [] if len(plain) <= len(names) else ["positional arguments"]
        unread += ["starred arguments"] if len(plain) < len(node.args) else []
        for word in node.keywords:
            value = self.value(word.value, key=word.arg or "")
            if word.arg:
                options[word.arg] = value
            elif isinstance(value, dict):
                options |= value
            else:
                unread.append(f"`**{ast.unparse(word.value)[:60]}`")
        place = self.place(node)
        notes = {Note(f"not imported: {what} of `{self._called(node)}`", place) for what in unread}
        return options, notes

    def _request(self, node: ast.Call) -> ClientCall:
        names = ("parent", "custom_job") if len(node.args) > 1 else ("request",)
        options = self._options(node, names)[0]
        if isinstance(request := options.get("request"), dict):
            options = {**request, **options}
        message = options.get("custom_job", Placeholder(placeholder("custom_job")))
        self._messages.pop(id(message), None)
        region = region_of(options.get("parent"))
        location = {"location": region} if region else {}
        job = self._new(node, "message", {"message": message, **location})
        job.sent.append({})
        self.jobs.append(job)
        return job

    def _shell(self, node: ast.Call, called: str) -> Any:
        command = self.value(node.args[0]) if node.args else None
        line = command if isinstance(command, str) else ""
        if called == "__shell__":

            def named(match: re.Match[str]) -> str:
                name = ast.copy_location(ast.Name(match[1] or match[2], ast.Load()), node)
                value = self.value(name)
                return str(value) if isinstance(value, str | int | float) else placeholder(name.id)

            line = re.sub(r"(?<!\{)\{(\w+)\}|\$\{?(\w+)\}?", named, line)
        if not (match := GCLOUD.search(line)):
            return NotImplemented
        words = split(line[match.start() :])[0]
        job = self._new(node, "gcloud", {"flags": options_of(words, self.place(node))})
        job.sent.append({})
        self.jobs.append(job)
        return job

    def options_of(self, job: ClientCall) -> dict[str, Any]:
        """Return all options of a job: from ``init``, the constructor and the submitting call."""
        defaults = dict[str, Any]()
        if job.made_by not in ("message", "gcloud"):
            inherited = self._merged(job, self._inits)
            defaults = {key: value for key, value in inherited.items() if key in INHERITED}
            if self._inits and defaults.get("location") is None:
                defaults["location"] = "us-central1"  # the client's own
        for options in (job.options, self._merged(job, job.sent)):
            defaults |= {key: value for key, value in options.items() if value is not None}
        options = self._plain(defaults)
        for name in re.findall(r"<[A-Z0-9_]+>", str(options)):
            job.notes |= self.notes.get(name, set())
        return options

    def _merged(self, job: ClientCall, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Merge the options of several calls. If values differ, the option gets a placeholder."""
        merged = dict[str, Any]()
        for key in dict.fromkeys(key for call in calls for key in call):
            values = [call.get(key) for call in calls]
            merged[key] = values[0]
            if any(value != values[0] for value in values):
                merged[key] = placeholder(key)
                job.notes.add(Note(f"{merged[key]} differs between calls", job.place))
        return merged

    def _plain(self, value: Any) -> Any:
        self._items += 1
        if self._items > MAX_ITEMS:
            raise CommandError("The code contains a value that is too large for a job.")
        if isinstance(value, dict):
            return {key: self._plain(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._plain(item) for item in value]
        if isinstance(value, ClientCall):
            return placeholder(value.made_by)
        return str(value) if isinstance(value, str) else value


def jobs_in(
    trees: list[tuple[str, ast.Module]], name: str, read: CommandFiles
) -> tuple[list[ImportedJob], list[str]]:
    """Return the jobs that the parsed code creates, and remarks on calls that are not imported."""
    reader = CallReader(trees)
    reader.read()
    refusals, jobs = list[str](), list[ImportedJob]()
    for call in reader.jobs:
        if call.is_inner and not call.sent:
            continue
        try:
            jobs.append(_job(call, reader.options_of(call), name, read))
        except CommandError as refused:
            if call.made_by != "gcloud":
                raise
            refusals.append(f"{refused.message.rstrip('.')} ({call.place})")
    refusals += map(str, dict.fromkeys(reader.left_out))
    return jobs, refusals


def _job(call: ClientCall, options: dict[str, Any], name: str, read: CommandFiles) -> ImportedJob:
    display = str(options.pop("display_name", None) or name)
    region = str(options.get("location") or "")
    if call.made_by == "gcloud":
        job = job_of(options["flags"], name, read)
    elif call.made_by == "message":
        message = options["message"]
        if isinstance(message, dict):
            job = from_message(message, str(message.get("display_name") or display))
        else:
            job = from_message({"workerPoolSpecs": message}, display)
    else:
        job = _of_client(call, options, display, name)
        job.name = key_of(display, name)
    if not call.sent and not call.is_inner:
        job.remarks.append(f"no call in the source submits this job ({call.place})")
    job.region = region or job.region
    job.notes += sorted(call.notes)
    return job


def _of_client(call: ClientCall, options: dict[str, Any], display: str, name: str) -> ImportedJob:
    if call.made_by == "CustomJob":
        pools = options.pop("worker_pool_specs", None) or []
        job = from_message({"worker_pool_specs": pools}, display)
    else:
        job = ImportedJob(key_of(display, name), {"workerPoolSpecs": _pools(call, options)})
        job.script = str(options.pop("script_path", ""))
        required = options.pop("requirements", None) or []
        job.requirements = tuple(map(str, required if isinstance(required, list) else [required]))
    job.labels = labels_of(options.pop("labels", None))
    keys = [options.pop(f"{of}encryption_spec_key_name", None) for of in ("", "training_")]
    job.encryption_key = str(next(filter(None, keys), ""))
    for option, path in JOB_FIELDS.items():
        value = options.pop(option, None)
        if value is None or value == "":
            continue
        inner = job.spec
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        is_number = option in SECONDS and not str(value).endswith("s")
        inner[path[-1]] = f"{value}s" if is_number else with_api_names(value)
    bucket = options.pop("staging_bucket", None)
    if "baseOutputDirectory" not in job.spec:
        if bucket:
            staged(job, str(bucket))
        else:
            job.remarks.append(
                "the job has no output directory, because the source names no staging bucket"
            )
    job.remarks += [f"{key} is omitted: {why}" for key, why in DROPPED.items() if options.get(key)]
    job.remarks += [
        f"the client's option {key} is not imported ({call.place})"
        for key in options if key not in (*OF_CALL, *DROPPED)
    ]  # fmt: skip
    return job


def _pools(call: ClientCall, options: dict[str, Any]) -> list[dict[str, Any]]:
    # Arguments that were not read may set the machine type.
    is_open = call.is_partly_read or not call.sent
    default = "<MACHINE_TYPE>" if is_open else "n1-standard-4"
    machine: dict[str, Any] = {"machineType": options.pop("machine_type", default)}
    accelerator, count = (options.pop(f"accelerator_{of}", None) for of in ("type", "count"))
    if accelerator and count and not str(accelerator).endswith("_UNSPECIFIED"):
        machine |= {"acceleratorType": accelerator, "acceleratorCount": count}
    affinity = _without_empty(
        reservationAffinityType=options.pop("reservation_affinity_type", None),
        key=options.pop("reservation_affinity_key", None),
        values=options.pop("reservation_affinity_values", None),
    )
    machine |= _without_empty(reservationAffinity=affinity)
    replicas = options.pop("replica_count", "<REPLICA_COUNT>" if is_open else 1)
    topology = options.pop("tpu_topology", None)
    pool: dict[str, Any] = {"replicaCount": 1, "machineSpec": machine, **_task(call, options)}
    if not call.is_partly_read or "boot_disk_size_gb" in options:
        pool["diskSpec"] = {
            "bootDiskType": options.pop("boot_disk_type", "pd-ssd"),
            "bootDiskSizeGb": options.pop("boot_disk_size_gb", 100),
        }
    chief = {**pool, "machineSpec": {**machine, "tpuTopology": topology}} if topology else pool
    pools = [chief]
    if not isinstance(replicas, int):  # the first replica is the chief
        pools.append({**pool, "replicaCount": f"{replicas} - 1"})
    elif replicas > 1:
        pools.append({**pool, "replicaCount": replicas - 1})
    return pools


def _task(call: ClientCall, options: dict[str, Any]) -> dict[str, Any]:
    image, args = options.pop("container_uri", "<YOUR_IMAGE>"), options.pop("args", None) or []
    arguments = [str(argument) for argument in (args if isinstance(args, list) else [args])]
    variables = options.pop("environment_variables", None) or {}
    if not isinstance(variables, dict):
        variables = {"ENVIRONMENT_VARIABLES": variables}
    env = [{"name": str(key), "value": str(value)} for key, value in variables.items()]
    more = _without_empty(args=arguments, env=env)
    if call.made_by == "CustomContainerTrainingJob":
        command = options.pop("command", None)
        more |= _without_empty(command=[command] if isinstance(command, str) else command)
        return {"containerSpec": {"imageUri": image, **more}}
    package = {"executorImageUri": image}
    if call.made_by == "CustomPythonPackageTrainingJob":
        package["packageUris"] = [options.pop("python_package_gcs_uri", "")]
        package["pythonModule"] = options.pop("python_module_name", "")
    return {"pythonPackageSpec": {**package, **more}}


def _without_empty(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
