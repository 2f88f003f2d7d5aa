"""Calls of the official client in Python code -> imported jobs. The code is read, never run.

What the calls mean is google-cloud-aiplatform 2.7.0, google/cloud/aiplatform/jobs.py,
training_jobs.py, hyperparameter_tuning.py and utils/worker_spec_utils.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from vertex_training.customjob.request.hints import messages
from vertex_training.customjob.request.message import to_camel_case
from vertex_training.errors import CommandError
from vertex_training_cli.importing.command_lines import (
    ALGORITHMS,
    GCLOUD,
    NO_FILES,
    CommandFiles,
    call_of,
    job_of,
    options_of,
    split,
)
from vertex_training_cli.importing.evaluation import called_name
from vertex_training_cli.importing.imported import (
    ImportedJob,
    Note,
    from_message,
    key_of,
    labels_of,
    staged,
)
from vertex_training_cli.importing.statements import Interpreter
from vertex_training_cli.importing.values import (
    ABOUT,
    SENDING,
    BoundMethod,
    ClientCall,
    Noted,
    UnresolvedValue,
    annotate,
    bare,
    jobs_of,
    noted,
    notes_of,
    plain,
    text,
)

#: What a constructor's arguments without a name are; classes of the client that make a job.
POSITIONS: Final = {
    "CustomJob": ("display_name", "worker_pool_specs", "base_output_dir", "project", "location"),
    "from_local_script": ("display_name", "script_path", "container_uri", "args", "requirements"),
    "CustomTrainingJob": ("display_name", "script_path", "container_uri", "requirements"),
    "CustomContainerTrainingJob": ("display_name", "container_uri", "command"),
    "CustomPythonPackageTrainingJob": (
        *("display_name", "python_package_gcs_uri", "python_module_name", "container_uri"),
    ),
    "HyperparameterTuningJob": (
        *("display_name", "custom_job", "metric_spec", "parameter_spec", "max_trial_count"),
        "parallel_trial_count",
    ),
}
#: Options that have no place in a job file, and why.
DROPPED: Final = {
    "dataset": "managed data sets belong to training pipelines: read the bucket instead",
    "model_display_name": "a CustomJob uploads no model: its code writes to AIP_MODEL_DIR",
    "model_serving_container_image_uri": "a CustomJob uploads no model for serving",
    "enable_autolog": "call autolog in the code",
    "credentials": "the job runs as its service account, without a key",
}
#: Option of the client -> field of the job, for those of the whole job.
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
#: Options of which nothing is left to say: read elsewhere, or about the call alone.
_READ: Final = (
    "display_name worker_pool_specs script_path container_uri requirements args command "
    "environment_variables machine_type accelerator_type accelerator_count boot_disk_type "
    "boot_disk_size_gb replica_count tpu_topology python_package_gcs_uri "
    "python_module_name labels encryption_spec_key_name training_encryption_spec_key_name "
    "project location staging_bucket sync create_request_timeout custom_job metric_spec "
    "parameter_spec max_trial_count parallel_trial_count max_failed_trial_count "
    "search_algorithm measurement_selection reservation_affinity_type "
    "reservation_affinity_key reservation_affinity_values "
)
READ: Final = frozenset(_READ.split())
#: The number of a pool in the name of its variable.
NUMBERED: Final = re.compile(r"pool\D*(\d{1,2})$")
SECONDS: Final = ("timeout", "max_wait_duration")
#: Names of the clients' modules, whose ``init`` gives defaults to what follows.
CLIENTS: Final = re.compile(r"(ai_?platform|aip|vertex(_?ai)?)(_v1\w*)?", re.I)
PARAMETERS: Final = {
    "DoubleParameterSpec": ("doubleValueSpec", "min", "max", "scale"),
    "IntegerParameterSpec": ("integerValueSpec", "min", "max", "scale"),
    "CategoricalParameterSpec": ("categoricalValueSpec", "values"),
    "DiscreteParameterSpec": ("discreteValueSpec", "values", "scale"),
}
#: Messages around that of a job.
REQUESTS: Final = ("CreateCustomJobRequest", "CreateHyperparameterTuningJobRequest")
#: A call of gcloud's in Python: as a line, or as a list of words.
GCLOUD_WORDS: Final = re.compile(
    r"((custom|hp-tuning)-jobs\W{1,5}create|batch\W{1,5}jobs\W{1,5}submit)\b"
)
SHELLS: Final = frozenset(
    [
        "run",
        "call",
        "check_call",
        "check_output",
        "Popen",
        "system",
        "popen",
        "getoutput",
        "__shell__",
    ]
)


class CallFinder(Interpreter):
    """Reads statements, and collects the jobs that they make."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[ClientCall] = []
        self.init: dict[str, Any] = {}
        self.left_out = list[Note]()
        self.seen = set[int]()
        """Ids of the calls that were read."""

    def call(self, node: ast.Call, of: Any, called: str, held: list[Any]) -> Any:
        called = self.aliases.get(called, called)
        self.seen.add(id(node))
        found = super().call(node, of, called, held)
        if found is not NotImplemented:
            return found
        if jobs := jobs_of(of):
            if called in SENDING:
                self._send(node, jobs, held)
            return of
        if isinstance(method := self._named_method(node, of, called), BoundMethod):
            self._send(node, method.jobs, held)
            for each in method.jobs:
                each.notes.discard(method.unread)
            return UnresolvedValue(method.name, either=method.jobs)
        root = ast.unparse(node.func).partition(".")[0]
        if called == "init" and CLIENTS.fullmatch(root):
            self.init |= self._options(node, held, ("project", "location"))
            if bare(self.init.get("location")) is None:
                self.init["location"] = "us-central1"  # the client's own
            return None
        if called in POSITIONS:
            options = self._options(node, held, POSITIONS[called])
            if "job_spec" in options or "trial_job_spec" in options:
                return options
            return self._add(node, called, self._with_init(called, options))
        if called in ("create_custom_job", "create_hyperparameter_tuning_job"):
            return self._of_request(node, called, held)
        if called in PARAMETERS:
            names = PARAMETERS[called][1:]
            return {"\0kind": called, **self._options(node, held, names)}
        if called in {*messages(), *REQUESTS} and not held and node.keywords:
            return self._options(node, held, ())
        if called in SHELLS:
            return self._shell(node, called, held)
        return NotImplemented

    def _named_method(self, node: ast.Call, of: Any, called: str) -> Any:
        """What is called by a name, or as an item of something known."""
        if isinstance(node.func, ast.Name | ast.Subscript):
            return self.value(node.func)
        return bare(of.get(called)) if isinstance(of, dict) else None

    def _with_init(self, called: str, options: dict[str, Any]) -> dict[str, Any]:
        """Options with the defaults that ``aiplatform.init`` gives them."""
        defaults = {key: each for key, each in self.init.items() if key in (
            "location", "staging_bucket", "network", "service_account", "encryption_spec_key_name"
        )}  # fmt: skip
        if called == "HyperparameterTuningJob":
            defaults.pop("staging_bucket", None)
        unset = {key for key in defaults if key in options and bare(options[key]) is None}
        return defaults | {key: each for key, each in options.items() if key not in unset}

    def _add(self, node: ast.Call, made_by: str, options: dict[str, Any]) -> ClientCall:
        notes = {*self.only_if, *self.control, *notes_of(options.pop(ABOUT, None))}
        notes.update(*(notes_of(each) for each in options.values() if bare(each) is None))
        made = ClientCall(made_by, options, self.place(node), notes)
        inner = bare(options.get("custom_job"))
        if isinstance(inner, ClientCall):
            inner.inner = True
        self.calls.append(made)
        # The client copies what it gets: a list that grows later is another one.
        made.options = {
            key: value if isinstance(bare(value), ClientCall) else _copied(value)
            for key, value in options.items()
        }
        return made

    def _send(self, node: ast.Call, jobs: Iterable[ClientCall], held: list[Any]) -> None:
        """Read the options of a call that sends a job, which may be each of ``jobs``."""
        for job in jobs:
            options = self._options(node, held, ())
            job.notes |= notes_of(options.pop(ABOUT, None))
            merge = self.merge(node, ast.unparse(node.func))
            for key, value in options.items():
                old = job.options.get(key) if job.submitted else None
                if bare(value) is None:
                    job.notes |= notes_of(value)
                else:
                    merged = value if old is None else merge.values(old, _copied(value), key)
                    job.options[key] = _copied(merged)
            job.submitted = True
            job.notes |= set(self.only_if) | self.control

    def _options(self, node: ast.Call, held: list[Any], names: tuple[str, ...]) -> dict[str, Any]:
        """The arguments of a call by their names."""
        found: dict[str, Any] = dict(zip(names, held, strict=False))
        if len(held) > len(names):
            what = f"arguments of `{called_name(node)}` without a name are not read"
            annotate(found, {Note(what, self.place(node))})
        self.update_by_keywords(found, node)
        return found

    def _of_request(self, node: ast.Call, called: str, held: list[Any]) -> Any:
        """A call of the generated client: its message is the job."""
        field = called.removeprefix("create_")
        options = self._options(node, held, ("parent", field) if len(held) > 1 else ("request",))
        if isinstance(request := bare(options.get("request")), dict):
            options = {**request, **options}
        where = re.search(r"/locations/([^/]+)", text(bare(options.get("parent"))))
        location = {"location": where[1]} if where else {}
        message = options.get(field) or UnresolvedValue(field)
        about = options.get(ABOUT)
        made = self._add(node, "message", {"message": message, ABOUT: about, **location})
        made.submitted = True
        return made

    def _shell(self, node: ast.Call, called: str, held: list[Any]) -> Any:
        """A command for a shell; one of gcloud's that makes a job is a job."""
        given = held[0] if held else None
        self.notes |= notes_of(given)
        line = plain(bare(given), self.notes) if isinstance(bare(given), str | list) else None
        joined = " ".join(map(text, line)) if isinstance(line, list) else line
        if called == "__shell__" and isinstance(joined, str):
            joined = re.sub(r"(?<!\{)\{(\w+)\}|\$\{?(\w+)\}?", self._named, joined)
        if isinstance(joined, str) and (match := GCLOUD.search(joined)):
            kind, flags = call_of(match)
            words = split(joined[match.end() :])[0]
            verb = "submit" if match["batch"] else "create"
            if isinstance(line, list) and verb in line:  # else it is a line of its own in the list
                words = [text(each) for each in line[line.index(verb) + 1 :]]
            words = [*split(flags)[0], *words]
            options = options_of(kind, words, self.place(node))
            made = self._add(node, "gcloud", {})
            made.options["options"] = options
            made.notes |= self.notes
            made.submitted = True
            return made
        return NotImplemented if called != "__shell__" else UnresolvedValue("output")

    def _named(self, match: re.Match[str]) -> str:
        """A name of the notebook in a line for the shell."""
        found = self.value(ast.Name(match[1] or match[2], ast.Load()))
        return text(plain(found, self.notes))

    def makes_job(self, statements: list[ast.stmt]) -> bool:
        return any(called_name(each) in POSITIONS for each in _calls(statements))

    def skipped(self, statements: list[ast.stmt], notes: frozenset[Note]) -> None:
        made = {each for each in _calls(statements) if called_name(each) in POSITIONS}
        for each in sorted(made, key=lambda each: each.lineno):
            why = "; ".join(sorted(note.text for note in notes))
            what = f"`{called_name(each)}(…)` is left out, as {why}"
            self.left_out.append(Note(what, self.place(each)))

    def name_unread(self, tree: ast.Module) -> None:
        """Say which makers of jobs in ``tree`` were not read: by another name, or never called."""
        told, spoken_of = {each.place for each in self.left_out}, _spoken_of(tree)
        for node in ast.walk(tree):
            name, why = "", "which the code gives another name"
            if isinstance(node, ast.Call) and id(node) not in self.seen:
                name, why = called_name(node), "which nothing that was read calls"
            elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in spoken_of:
                name = node.attr if isinstance(node, ast.Attribute) else node.id
            if name in POSITIONS and (place := self.place(node)) not in told:
                told.add(place)
                what = f"what `{name}` makes here, {why}, is left out"
                self.left_out.append(Note(what, place))

    def read_uncalled(self) -> None:
        """Read functions that make jobs and that nothing in the source calls."""
        makers = dict.fromkeys(MAKING, 0)
        for level in range(1, 6):  # functions that call those that make jobs
            for each in self.functions:
                inside = [ast.unparse(each.node)] if level == 1 else []
                if any(GCLOUD_WORDS.search(code) for code in inside) or any(
                    makers.get(called_name(call)) == level - 1 for call in _calls(each.node.body)
                ):
                    makers[each.node.name] = level
        for function in sorted(self.functions, key=lambda each: -makers.get(each.node.name, 0)):
            if not function.called and function.node.name in makers:
                parameters = [*function.node.args.posonlyargs, *function.node.args.args]
                is_method = bool(parameters) and parameters[0].arg in ("self", "cls")
                self.run(function, None, [UnresolvedValue("self")] if is_method else [])


MAKING: Final = (*POSITIONS, "create_custom_job", "create_hyperparameter_tuning_job")


def _calls(statements: list[ast.stmt]) -> Iterator[ast.Call]:
    for node in (each for statement in statements for each in ast.walk(statement)):
        if isinstance(node, ast.Call):
            yield node


def _copied(value: Any) -> Any:
    """A value as it is now, with its notes."""
    notes = set[Note]()
    return noted(plain(value, notes), notes)


def _spoken_of(tree: ast.Module) -> set[int]:
    """Ids of the nodes of names that are called, or give no other name: in annotations, say."""
    found = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.add(id(node.func))
        elif isinstance(node, ast.Attribute):
            found.add(id(node.value))
        within = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Call) and called_name(node) == "isinstance":
            within += node.args
        found |= {
            id(each) for part in within if isinstance(part, ast.AST) for each in ast.walk(part)
        }
    return found


def jobs_in(
    trees: list[tuple[str, ast.Module]], name: str, read: CommandFiles
) -> tuple[list[ImportedJob], list[str]]:
    """The jobs that these trees make, and what is left out; ``name`` is for a nameless one.

    ``read`` has the files that gcloud gets. Where nothing calls the client, pools with
    a number in their names count: ``worker_pool_1 = {…}``.
    """
    finder = CallFinder()
    for label, tree in trees:
        finder.label = label
        finder.visit(tree.body)
    finder.read_uncalled()
    for label, tree in trees:
        finder.label = label
        finder.name_unread(tree)
    calls = [each for each in finder.calls if each.submitted or not each.inner]
    told = [str(note) for note in finder.left_out]
    if calls:
        jobs, any_submitted = list[ImportedJob](), any(each.submitted for each in calls)
        for call in calls:
            try:
                job = _job(call, name, read)
            except CommandError as refused:
                if call.made_by != "gcloud":
                    raise
                told.append(f"{refused.message.rstrip('.')} ({call.place})")
                continue
            if any_submitted and not call.submitted:
                job.remarks.append(f"nothing that was read runs this job ({call.place})")
            jobs.append(job)
        return jobs, told
    pools, noted_too = dict[int, Any](), set[Note]()
    for key, value in finder.scopes[0].items():
        if (match := NUMBERED.search(key)) and isinstance(bare(value), dict):
            pools[int(match[1])] = plain(value, noted_too)
    return [_of_numbered(pools, name, noted_too)] if pools else [], told


def _of_numbered(pools: dict[int, Any], name: str, notes: set[Note]) -> ImportedJob:
    job = from_message({"workerPoolSpecs": [pools[number] for number in sorted(pools)]}, name)
    if missing := sorted(set(range(max(pools))) - set(pools)):
        which = ", ".join(map(str, missing))
        job.remarks.append(f"this is a part of a job: pool {which} is not in the source")
    job.notes += sorted(notes)
    return job


def _job(call: ClientCall, name: str, read: CommandFiles) -> ImportedJob:
    notes = set(call.notes)
    options = {
        key: bare(value) if isinstance(bare(value), ClientCall | dict) and key in
        ("custom_job", "parameter_spec", "options") else plain(value, notes)
        for key, value in call.options.items() if bare(value) is not None
    }  # fmt: skip
    for key, value in call.options.items():
        if isinstance(value, Noted) and key in ("custom_job", "parameter_spec"):
            notes |= value.notes
    display = str(options.get("display_name") or name)
    if call.made_by == "message":
        job = _of_message(options["message"], display)
    elif call.made_by == "gcloud":
        job = job_of(call.options["options"], name, read)
    elif call.made_by == "HyperparameterTuningJob":
        job = _tuning(call, options, display, notes)
    elif call.made_by == "CustomJob":
        job = _of_message({"worker_pool_specs": options.get("worker_pool_specs") or []}, display)
    else:
        job = ImportedJob(key_of(display, name), {"workerPoolSpecs": _pools(call, options)})
        job.script = str(options.get("script_path", ""))
        required = options.get("requirements") or []
        job.requirements = tuple(map(str, required if isinstance(required, list) else [required]))
    if call.made_by not in ("message", "gcloud"):
        _set_fields(job, options, display, name)
        job.remarks += [
            f"the client's option {key} is not read ({call.place})"
            for key in options if key not in READ | JOB_FIELDS.keys() | DROPPED.keys()
        ]  # fmt: skip
    job.region = str(options.get("location") or job.region)
    job.notes += sorted(notes)
    return job


def _of_message(message: Any, display: str) -> ImportedJob:
    pools = message.get("worker_pool_specs", []) if isinstance(message, dict) else message
    if isinstance(pools, list) and isinstance(message, dict):
        return from_message(message, str(message.get("display_name") or display))
    job = from_message({"workerPoolSpecs": []}, display)
    job.remarks.append(f"{pools} is made while the code runs: write the pools")
    return job


def _tuning(
    call: ClientCall, options: dict[str, Any], display: str, notes: set[Note]
) -> ImportedJob:
    """The message that the client makes of a search and of the job of its trials."""
    inner = options.get("custom_job")
    if isinstance(inner, ClientCall):
        job = _job(inner, display, NO_FILES)
    else:
        job = from_message({"workerPoolSpecs": []}, display)
        job.remarks.append(f"the job of the trials is not read ({call.place}): write the pools")
    notes |= set(job.notes)
    job.notes = []
    metrics, given = options.get("metric_spec"), options.get("parameter_spec")
    parameters = [
        _parameter(str(key), bare(each), notes)
        for key, each in (given if isinstance(given, dict) else {}).items() if key[:1] != "\0"
    ]  # fmt: skip
    if not isinstance(given, dict) or not isinstance(metrics, dict):
        job.remarks.append(f"what is searched is made while the code runs ({call.place})")
    study: dict[str, Any] = {
        "metrics": [
            {"metricId": key, "goal": str(goal).upper()}
            for key, goal in (metrics if isinstance(metrics, dict) else {}).items()
        ],
        "parameters": parameters,
    }
    if algorithm := options.get("search_algorithm"):
        study["algorithm"] = ALGORITHMS.get(str(algorithm), algorithm)
    measured = options.get("measurement_selection", "best")
    study["measurementSelectionType"] = f"{str(measured).upper()}_MEASUREMENT"
    job.study = {
        "maxTrialCount": options.get("max_trial_count", "<MAX_TRIAL_COUNT>"),
        "parallelTrialCount": options.get("parallel_trial_count", "<PARALLEL_TRIAL_COUNT>"),
        "studySpec": study,
    }
    if failed := options.get("max_failed_trial_count"):
        job.study["maxFailedTrialCount"] = failed
    job.study["displayName"] = display
    return job


def _parameter(name: str, spec: Any, notes: set[Note]) -> dict[str, Any]:
    if not isinstance(spec, dict) or "\0kind" not in spec:
        return {"parameterId": name, "categoricalValueSpec": {"values": str(plain(spec, notes))}}
    values = plain(spec, notes)
    field, *keys = PARAMETERS[values.pop("\0kind")]
    fields = {"min": "minValue", "max": "maxValue", "values": "values"}
    found: dict[str, Any] = {
        "parameterId": name,
        field: {fields[key]: values[key] for key in keys if key in fields and key in values},
    }
    if scale := values.get("scale"):
        known = scale in ("linear", "log", "reverse_log")
        if scale != "unspecified":
            found["scaleType"] = f"UNIT_{str(scale).upper()}_SCALE" if known else scale
    if values.get("conditional_parameter_spec") or values.get("parent_values"):
        notes.add(Note(f"conditions of the parameter {name} are not read", "the search"))
    return found


def _set_fields(job: ImportedJob, options: dict[str, Any], display: str, name: str) -> None:
    """What the options of the whole job say."""
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
        inner[path[-1]] = f"{value}s" if option in SECONDS else value
    if "baseOutputDirectory" not in job.spec and not job.study:
        if bucket := options.get("staging_bucket"):
            staged(job, str(bucket))
        else:
            job.remarks.append("the source names no staging bucket: it has no output directory")
    job.remarks += [f"{key} is left out: {why}" for key, why in DROPPED.items() if options.get(key)]


def _pools(call: ClientCall, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The pools that the client makes of its options: a chief, and workers."""
    machine: dict[str, Any] = {"machineType": options.get("machine_type") or "n1-standard-4"}
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
    pool["diskSpec"] = {
        "bootDiskType": options.get("boot_disk_type", "pd-ssd"),
        "bootDiskSizeGb": options.get("boot_disk_size_gb", 100),
    }
    replicas, topology = options.get("replica_count", 1), options.get("tpu_topology")
    chief = {**pool, "machineSpec": {**machine, "tpuTopology": topology}} if topology else pool
    pools = [chief]
    if not isinstance(replicas, int):  # the client takes one of them for the chief
        pools.append({**pool, "replicaCount": f"{replicas} - 1"})
    elif replicas > 1:
        pools.append({**pool, "replicaCount": replicas - 1})
    return pools


def _task(call: ClientCall, options: dict[str, Any]) -> dict[str, Any]:
    image, given = options.get("container_uri", ""), options.get("args") or []
    arguments = [str(each) for each in (given if isinstance(given, list) else [given])]
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
