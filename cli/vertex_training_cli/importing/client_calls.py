"""Converts calls of the official client in Python code into jobs. The code is read, not run.

Only literals are read (``literals``). What the calls mean is google-cloud-aiplatform 2.7.0,
google/cloud/aiplatform/jobs.py, training_jobs.py, hyperparameter_tuning.py and
utils/worker_spec_utils.py; operators of Airflow and components of pipelines have its options.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from vertex_training.customjob.request.hints import messages
from vertex_training.customjob.request.message import to_camel_case
from vertex_training.errors import CommandError
from vertex_training_cli.importing.command_lines import (
    GCLOUD,
    CommandFiles,
    call_of,
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
    staged,
    with_placeholders,
)
from vertex_training_cli.importing.literals import (
    Literals,
    Names,
    Placeholder,
    called_name,
    dotted_name,
)

#: Constructor or method of the client that creates a job -> names of its positional arguments.
POSITIONS: Final = {
    "CustomJob": ("display_name", "worker_pool_specs", "base_output_dir", "project", "location"),
    "from_local_script": ("display_name", "script_path", "container_uri", "args", "requirements"),
    "CustomTrainingJob": ("display_name", "script_path", "container_uri", "requirements"),
    "CustomContainerTrainingJob": ("display_name", "container_uri", "command"),
    "CustomPythonPackageTrainingJob": (
        *("display_name", "python_package_gcs_uri", "python_module_name", "container_uri"),
    ),
}
#: Airflow operator or pipeline component -> class of the client that has the same options.
OPERATORS: Final = {
    "CreateCustomContainerTrainingJobOperator": "CustomContainerTrainingJob",
    "CreateCustomPythonPackageTrainingJobOperator": "CustomPythonPackageTrainingJob",
    "CreateCustomTrainingJobOperator": "CustomTrainingJob",
    "CustomContainerTrainingJobRunOp": "CustomContainerTrainingJob",
    "CustomPythonPackageTrainingJobRunOp": "CustomPythonPackageTrainingJob",
    "CustomTrainingJobOp": "CustomJob",
}
#: Option of an operator -> the client's name of this option.
RENAMED: Final = {"region": "location", "project_id": "project",
                  "base_output_directory": "base_output_dir"}  # fmt: skip
#: Calls that create jobs but are not imported; a remark names each call.
UNREAD: Final = re.compile(
    r"(Create)?HyperparameterTuningJob(Operator|RunOp)?|create_hyperparameter_tuning_job"
    r"|Create\w*TrainingJobOperator|\w+JobRunOp"
    r"|create_custom_training_job(_op)?_from_component"
)
#: Options of operators that concern only the workflow.
OF_WORKFLOW: Final = (
    "task_id", "dag", "gcp_conn_id", "impersonation_chain", "deferrable", "poll_interval",
    "retries",
)  # fmt: skip
SENDING: Final = ("run", "submit")
#: Option without an equivalent in a job file -> reason.
DROPPED: Final = {
    "dataset": "managed datasets belong to training pipelines: read the bucket instead",
    "model_display_name": (
        "a CustomJob uploads no model: its code writes the model to AIP_MODEL_DIR"
    ),
    "model_serving_container_image_uri": "a CustomJob uploads no model for serving",
    "enable_autolog": "call `autolog` in the code",
    "credentials": "the job runs as its service account, without a key file",
}
#: Option of the client -> field of the job, for options that concern the whole job.
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
#: Options without a remark: other code reads them, or they concern only the call.
_READ: Final = (
    "display_name worker_pool_specs script_path container_uri requirements args command "
    "environment_variables machine_type accelerator_type accelerator_count boot_disk_type "
    "boot_disk_size_gb replica_count tpu_topology python_package_gcs_uri "
    "python_module_name labels encryption_spec_key_name training_encryption_spec_key_name "
    "project location staging_bucket sync create_request_timeout reservation_affinity_type "
    "reservation_affinity_key reservation_affinity_values "
)
READ: Final = frozenset(_READ.split())
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
    """A job of the client: the class or method that creates it, and its options."""

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

    def __init__(self, names: Names) -> None:
        super().__init__(names)
        self.jobs = list[ClientCall]()
        self.left_out = list[Note]()
        self._inits = list[dict[str, Any]]()
        words = [word.arg for node in names.calls for word in node.keywords]
        self._has_defaults = "default_args" in words  # of a workflow's operators
        self._made = dict[int, tuple[Any, set[Note]]]()
        self._messages = dict[int, ClientCall]()
        """Messages of jobs by their id, until a request that contains them is read."""

    def read(self) -> None:
        """Read all calls in order, then the calls that submit jobs."""
        calls, called = self.names.calls, self.names.name_of
        for node in calls:
            root = dotted_name(node.func).partition(".")[0]
            if called(node) == "init" and CLIENTS.fullmatch(root):
                self._inits.append(self._options(node, ("project", "location"))[0])
            elif UNREAD.fullmatch(called(node)) and called(node) not in OPERATORS:
                self.left_out.append(
                    Note(f"call `{called(node)}(…)` is not imported", self.place(node))
                )
                arguments = [*node.args, *(word.value for word in node.keywords)]
                for job in filter(None, map(self._job_of, arguments)):
                    job.is_inner = True
            else:
                self.call(node)
        for node in calls:
            if isinstance(node.func, ast.Attribute) and node.func.attr in SENDING:
                self._send(node, self._job_of(node.func.value))
        for node in self.names.loads:
            name = node.attr if isinstance(node, ast.Attribute) else node.id
            if isinstance(node, ast.Attribute) and name in SENDING:
                if job := self._job_of(node.value):
                    what = f"calls of `{ast.unparse(node)}` under another name are not imported"
                    job.notes.add(Note(what, job.place))
                    job.is_partly_read = True
            elif self.names.aliases.get(name, name) in POSITIONS:
                what = f"the result of `{name}` is omitted: the code assigns it to another name"
                self.left_out.append(Note(what, self.place(node)))
        self.jobs += self._messages.values()

    def _job_of(self, node: ast.expr) -> ClientCall | None:
        """Return the job that an expression creates."""
        if not isinstance(node, ast.Name | ast.Call):
            return None
        before, self.notes = self.notes, set()
        job = self.value(node)
        self.notes = before
        return job if isinstance(job, ClientCall) else None

    def _send(self, node: ast.Call, job: ClientCall | None) -> None:
        if job is None:
            return
        self.notes = set()
        options, is_whole = self._options(node, ())
        job.sent.append(options)
        job.notes |= self.notes | self._conditions(node)
        job.is_partly_read = job.is_partly_read or not is_whole

    def _conditions(self, node: ast.Call) -> set[Note]:
        """Return notes on the branches, loops and functions around a call."""
        notes, place = set[Note](), self.place(node)
        for why in self.names.uses[id(node)].within:
            name = why.removeprefix("def ")
            if name == why:
                notes.add(Note(f"`{why}` decides if and how often the job is submitted", place))
            elif self.names.called[name] > 1:
                notes.add(Note(f"`{name}` is called on several lines, but imported once", place))
        return notes

    def call(self, node: ast.Call) -> Any:
        if id(node) not in self._made:
            before, self.notes = self.notes, set()
            result = self._read(node, self.names.name_of(node))
            self._made[id(node)] = result, self.notes
            self.notes = before
        result, notes = self._made[id(node)]
        self.notes |= set() if isinstance(result, ClientCall) else notes
        return result

    def _read(self, node: ast.Call, called: str) -> Any:
        made_by = OPERATORS.get(called, called)
        if made_by in POSITIONS:
            options, is_whole = self._options(node, POSITIONS[made_by])
            if "job_spec" in options:
                message = {key: value for key, value in options.items() if key != "location"}
                job = self._new(node, "message", {**options, "message": message})
                job.sent = [{}] * bool(node.args)  # a resource of Pulumi, with its name
                self._messages[id(options)] = job
                return options
            if called in OPERATORS:
                options = _of_operator(options)
            job = self._new(node, made_by, options)
            job.is_partly_read = not is_whole
            if called in OPERATORS:
                job.sent.append({})
                if self._has_defaults:
                    job.notes.add(Note(f"default_args of `{called}` is not imported", job.place))
                    job.is_partly_read = True
            self.jobs.append(job)
            return job
        if called == MAKING:
            return self._request(node, "custom_job")
        message = GENERATED.fullmatch(called)
        if called in (REQUEST, "dict") or (message and message[1] in messages()):
            options, is_whole = self._options(node, ())
            return options if is_whole and not node.args else NotImplemented
        return self._shell(node, called) if called in SHELLS else NotImplemented

    def _new(self, node: ast.Call, made_by: str, options: dict[str, Any]) -> ClientCall:
        notes = self.notes | self._conditions(node)
        return ClientCall(made_by, options, self.place(node), notes)

    def _options(self, node: ast.Call, names: tuple[str, ...]) -> tuple[dict[str, Any], bool]:
        """Return the arguments of a call by name, and whether all of them are known."""
        self.label = self.names.uses[id(node)].label
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
        for what in unread:
            self.notes.add(Note(f"not imported: {what} of `{called_name(node)}`", self.place(node)))
        return options, not unread

    def _request(self, node: ast.Call, field: str) -> Any:
        """Read a call of the generated client, whose message contains the job."""
        names = ("parent", field) if len(node.args) > 1 else ("request",)
        options = self._options(node, names)[0]
        if isinstance(request := options.get("request"), dict):
            options = {**request, **options}
        message = options.get(field, Placeholder(placeholder(field)))
        self._messages.pop(id(message), None)
        where = re.search(r"/locations/([^/]+)", str(options.get("parent")))
        location = {"location": where[1]} if where else {}
        job = self._new(node, "message", {"message": message, **location})
        job.sent.append({})
        self.jobs.append(job)
        return job

    def _shell(self, node: ast.Call, called: str) -> Any:
        """Read a shell command. A gcloud command that creates a job becomes a job."""
        command = self.value(node.args[0]) if node.args else None
        line = command if isinstance(command, str) else ""
        if called == "__shell__":
            line = re.sub(r"(?<!\{)\{(\w+)\}|\$\{?(\w+)\}?", lambda m: self._named(m, node), line)
        if not (match := GCLOUD.search(line)):
            return NotImplemented
        kind, flags = call_of(match)
        words = split(f"{flags} {line[match.end() :]}")[0]
        options = options_of(kind, words, self.place(node))
        job = self._new(node, "gcloud", {"options": options})
        job.sent.append({})
        self.jobs.append(job)
        return job

    def _named(self, match: re.Match[str], node: ast.Call) -> str:
        """Return the value of a notebook's variable in a shell line."""
        name = ast.copy_location(ast.Name(match[1] or match[2], ast.Load()), node)
        self.names.uses[id(name)] = self.names.uses[id(node)]
        value = self.value(name)
        del self.names.uses[id(name)]
        return str(value) if isinstance(value, str | int | float) else placeholder(name.id)

    def options_of(self, job: ClientCall) -> dict[str, Any]:
        """Return all options of a job: of ``init``, of the job, and of the submitting call."""
        merged, defaults = dict(job.options), dict[str, Any]()
        if job.made_by not in ("message", "gcloud"):
            inherited = self._merged(job, self._inits)
            defaults = {key: value for key, value in inherited.items() if key in INHERITED}
            if self._inits and defaults.get("location") is None:
                defaults["location"] = "us-central1"  # the client's own
        for options in (merged, self._merged(job, job.sent)):
            defaults |= {key: value for key, value in options.items() if value is not None}
        return defaults

    def _merged(self, job: ClientCall, calls: list[dict[str, Any]]) -> dict[str, Any]:
        """Merge the options of several calls. A value that differs becomes a placeholder."""
        merged = dict[str, Any]()
        for key in dict.fromkeys(key for call in calls for key in call):
            values = [call.get(key) for call in calls]
            merged[key] = values[0]
            if any(value != values[0] for value in values):
                merged[key] = Placeholder(placeholder(key))
                job.notes.add(Note(f"{merged[key]} differs between calls", job.place))
        return merged


def _of_operator(options: dict[str, Any]) -> dict[str, Any]:
    """Return an Airflow operator's options under the client's names."""
    return {
        RENAMED.get(key, key): with_placeholders(value)
        for key, value in options.items() if key not in OF_WORKFLOW
    }  # fmt: skip


def _plain(value: Any) -> Any:
    """Convert the placeholders in a value to text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, ClientCall):
        return placeholder(value.made_by)
    return str(value) if isinstance(value, str) else value


def jobs_in(
    trees: list[tuple[str, ast.Module]], name: str, read: CommandFiles
) -> tuple[list[ImportedJob], list[str]]:
    """Return the jobs that the parsed code creates, and remarks on what was not imported.

    ``name`` is for a nameless job; ``read`` has the files that gcloud gets.
    """
    makers = (*POSITIONS, *OPERATORS, MAKING, REQUEST, *messages())
    names = Names((*makers, *SENDING, *SHELLS, "dict", "init"))
    names.read(trees)
    reader = CallReader(names)
    reader.read()
    refusals, jobs = list[str](), list[ImportedJob]()
    for call in reader.jobs:
        if call.is_inner and not call.sent:
            continue
        try:
            jobs.append(_job(call, name, read, reader))
        except CommandError as refused:
            if call.made_by != "gcloud":
                raise
            refusals.append(f"{refused.message.rstrip('.')} ({call.place})")
    reader.left_out += _commands(trees, any(call.made_by == "gcloud" for call in reader.jobs))
    refusals += map(str, dict.fromkeys(reader.left_out))
    return jobs, refusals


def _commands(trees: list[tuple[str, ast.Module]], has_lines: bool) -> Iterable[Note]:
    """Yield the locations of gcloud commands that the code builds from single words."""
    for label, tree in trees:
        for node in ast.walk(tree):
            words = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
            text = " ".join(
                word.value for word in words
                if isinstance(word, ast.Constant) and isinstance(word.value, str)
            )  # fmt: skip
            is_line = isinstance(node, ast.Constant) and has_lines
            if GCLOUD.search(text) and not is_line:
                what = "a gcloud command that the code builds from words is not imported"
                yield Note(what, f"{label}, line {getattr(node, 'lineno', 1)}")


def _job(call: ClientCall, name: str, read: CommandFiles, reader: CallReader) -> ImportedJob:
    options = reader.options_of(call)
    display = str(_plain(options.get("display_name")) or name)
    if call.made_by == "message":
        job = _of_message(_plain(options["message"]), display)
    elif call.made_by == "gcloud":
        job = job_of(options["options"], name, read)
    elif call.made_by == "CustomJob":
        pools = _plain(options.get("worker_pool_specs") or [])
        job = _of_message({"worker_pool_specs": pools}, display)
    else:
        options = _plain(options)
        job = ImportedJob(key_of(display, name), {"workerPoolSpecs": _pools(call, options)})
        job.script = str(options.get("script_path", ""))
        required = options.get("requirements") or []
        job.requirements = tuple(map(str, required if isinstance(required, list) else [required]))
    if call.made_by not in ("message", "gcloud"):
        _set_fields(job, _plain(options), display, name)
        job.remarks += [
            f"the client's option {key} is not imported ({call.place})"
            for key in options if key not in READ | JOB_FIELDS.keys() | DROPPED.keys()
        ]  # fmt: skip
    if not call.sent and not call.is_inner:
        job.remarks.append(f"no call in the source submits this job ({call.place})")
    job.region = str(_plain(options.get("location")) or job.region)
    job.notes += sorted(call.notes)
    return job


def _of_message(message: Any, display: str) -> ImportedJob:
    if isinstance(message, dict):
        return from_message(message, str(message.get("display_name") or display))
    return from_message({"workerPoolSpecs": message}, display)


def _set_fields(job: ImportedJob, options: dict[str, Any], display: str, name: str) -> None:
    """Set the fields of the job from the options."""
    job.name = key_of(display, name)
    job.labels = labels_of(options.get("labels"))
    key = "encryption_spec_key_name"
    job.encryption_key = str(options.get(key) or options.get(f"training_{key}") or "")
    for option, path in JOB_FIELDS.items():
        value = options.get(option)
        if value is None or value == "":
            continue
        inner = job.spec
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        is_message = isinstance(value, dict)
        value = from_message({"it": value}, name).spec["it"] if is_message else value
        is_number = option in SECONDS and not str(value).endswith("s")
        inner[path[-1]] = f"{value}s" if is_number else value
    if "baseOutputDirectory" not in job.spec:
        if bucket := options.get("staging_bucket"):
            staged(job, str(bucket))
        else:
            job.remarks.append(
                "the source names no staging bucket, so the job has no output directory"
            )
    job.remarks += [f"{key} is omitted: {why}" for key, why in DROPPED.items() if options.get(key)]


def _pools(call: ClientCall, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pools that the client creates from its options: a chief, and workers."""
    default = dict[str, Any](machine_type="n1-standard-4", replica_count=1)
    if call.is_partly_read or not call.sent:  # what is not read may say it
        default = {key: placeholder(key) for key in default}
    options = default | options
    machine: dict[str, Any] = {"machineType": options["machine_type"]}
    accelerator = options.get("accelerator_type")
    count = options.get("accelerator_count") or 0  # without one, the client sends no type
    if accelerator and count and not str(accelerator).endswith("_UNSPECIFIED"):
        machine |= {"acceleratorType": accelerator, "acceleratorCount": count}
    affinity = {
        key: options[f"reservation_affinity_{name}"]
        for key, name in (("reservationAffinityType", "type"), ("key", "key"), ("values", "values"))
        if options.get(f"reservation_affinity_{name}")
    }
    machine |= {"reservationAffinity": affinity} if affinity else {}
    pool: dict[str, Any] = {"replicaCount": 1, "machineSpec": machine, **_task(call, options)}
    if not call.is_partly_read or "boot_disk_size_gb" in options:
        pool["diskSpec"] = {
            "bootDiskType": options.get("boot_disk_type", "pd-ssd"),
            "bootDiskSizeGb": options.get("boot_disk_size_gb", 100),
        }
    replicas, topology = options["replica_count"], options.get("tpu_topology")
    chief = {**pool, "machineSpec": {**machine, "tpuTopology": topology}} if topology else pool
    pools = [chief]
    if not isinstance(replicas, int):  # the client takes one of them for the chief
        pools.append({**pool, "replicaCount": f"{replicas} - 1"})
    elif replicas > 1:
        pools.append({**pool, "replicaCount": replicas - 1})
    return pools


def _task(call: ClientCall, options: dict[str, Any]) -> dict[str, Any]:
    image, args = options.get("container_uri", placeholder("image")), options.get("args") or []
    arguments = [str(argument) for argument in (args if isinstance(args, list) else [args])]
    variables = options.get("environment_variables") or {}
    if not isinstance(variables, dict):
        variables = {"ENVIRONMENT_VARIABLES": variables}
    env = [{"name": str(key), "value": str(value)} for key, value in variables.items()]
    more = ({"args": arguments} if arguments else {}) | ({"env": env} if env else {})
    if call.made_by == "CustomContainerTrainingJob":
        command = options.get("command")
        command = [command] if isinstance(command, str) else command
        more = ({"command": command} if command else {}) | more
        return {"containerSpec": {"imageUri": image, **more}}
    package = {"executorImageUri": image}
    if call.made_by == "CustomPythonPackageTrainingJob":
        package["packageUris"] = [options.get("python_package_gcs_uri", "")]
        package["pythonModule"] = options.get("python_module_name", "")
    return {"pythonPackageSpec": {**package, **more}}
