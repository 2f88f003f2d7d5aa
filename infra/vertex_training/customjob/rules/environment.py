"""Rules about environment variables, commands and arguments."""

import re
from typing import Final

from vertex_training.customjob.rules.command_lines import read_command_line
from vertex_training.customjob.rules.job import Job, Pool, is_shell, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule

REQUIREMENTS: Final = GUIDES + "training/code-requirements"
ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_ENV: Final = 100
MAX_ARGS: Final = 100_000
#: Variables that the service sets in every job: the list of google-cloud-aiplatform 2.7.0,
#: training_utils/environment_variables.py, without variables of training pipelines.
RESERVED: Final[frozenset[str]] = frozenset(
    ("CLOUD_ML_PROJECT_ID", "CLOUD_ML_JOB_ID", "CLUSTER_SPEC", "AIP_HTTP_HANDLER_PORT")
)
#: Variables that the service sets only if the job has a baseOutputDirectory.
OUTPUT_DIRS: Final = re.compile(r"\bAIP_(?:MODEL_DIR|CHECKPOINT_DIR|TENSORBOARD_LOG_DIR)\b")
#: Variables that the service sets only if the job has a TensorBoard.
TENSORBOARD: Final = frozenset(("AIP_TENSORBOARD_API_URI", "AIP_TENSORBOARD_RESOURCE_NAME"))
PLACEHOLDER: Final = re.compile(
    r"<[A-Z][A-Z0-9]*(?:[_ -][A-Z0-9]+)+>|<your[_ -][a-z0-9_ -]+>|\bYOUR_[A-Z_]+\b"
)
#: References to variables that torchrun sets for each process: $RANK, ${RANK:-0}, $(RANK).
RANK_VARIABLE: Final = re.compile(
    r"\$[{(]?(RANK|WORLD_SIZE|LOCAL_RANK|NODE_RANK|MASTER_ADDR|MASTER_PORT)\b"
)
#: Commands that stop a script at errors; also ``set -uo pipefail``, a sign of intent.
STOPS_ON_ERROR: Final = re.compile(r"\bset( -\w+)* (-[a-z]*e|-o errexit|-[a-z]*o pipefail)")
#: The same setting as an option of the shell program: ``bash -euo pipefail -c``.
STOPS_BY_OPTION: Final = re.compile(r"-[a-z]*e[a-z]*\Z|errexit\Z")
#: Ends of lines after which a shell continues the same command.
GOES_ON: Final = re.compile(r"(&&|\|\||[|\\;{(]|\b(then|do|else|in))\s*\Z")

#: A line that only prints. Its failure has no effect.
PRINTS: Final = re.compile(r"(echo|printf)\s[^|;&`]*\Z")


@rule("env-name", TYPES + "env_var.py", of=pools_of)
def env_name(pool: Pool) -> Findings:
    """Check that the name of an environment variable is a C identifier."""
    hint = "use letters, digits and '_'; do not begin with a digit"
    for index, variable in enumerate(pool.env):
        path = (*pool.task_path, "env", index)
        if "name" not in variable:
            yield Finding(path, "the variable has no name", "", hint, "name")
        elif not ENV_NAME.match(variable["name"]):
            what = "the name of a variable must be a C identifier"
            yield Finding((*path, "name"), what, variable["name"], hint)


@rule("env-value", TYPES + "env_var.py", of=pools_of)
def env_value(pool: Pool) -> Findings:
    """Check that every environment variable has a value."""
    for index, variable in enumerate(pool.env):
        if "value" not in variable:
            path, what = (*pool.task_path, "env", index), "the variable has no value"
            yield Finding(path, what, "", 'write value: "" for an empty value', "value")


@rule("env-count", TYPES + "custom_job.py", of=pools_of)
def env_count(pool: Pool) -> Findings:
    """Check that a pool has at most 100 environment variables."""
    if len(pool.env) > MAX_ENV:
        path = (*pool.task_path, "env")
        hint = "write the variables to a file in a bucket, and pass the file's name"
        what = f"a pool can have at most {MAX_ENV} environment variables"
        yield Finding(path, what, str(len(pool.env)), hint)


@rule("env-twice", GUIDES + "training/configure-container-settings", "warning", of=pools_of)
def env_twice(pool: Pool) -> Findings:
    """Check that no environment variable has two entries."""
    seen = dict[str, int]()
    for index, (path, name, _) in enumerate(pool.variables(), 1):
        if name and name in seen:
            what = f"this variable is already set by item {seen[name]} of env"
            yield Finding((*path, "name"), what, name, "remove this item, or the earlier item")
        seen.setdefault(name, index)


@rule("env-reserved", REQUIREMENTS, "warning")
def env_reserved(job: Job) -> Findings:
    """Check that a job file does not set variables that the service sets."""
    reserved = set[str](RESERVED)
    if len(job.pools) > 1:
        reserved.add("TF_CONFIG")
    if job.spec.get("tensorboard"):
        reserved |= TENSORBOARD
    for pool in job.pools:
        for path, name, _ in pool.variables():
            if name in reserved or (job.output and OUTPUT_DIRS.fullmatch(name)):
                what = "Vertex AI sets this variable itself"
                yield Finding((*path, "name"), what, name, "rename the variable")


@rule("args-length", GUIDES + "training/create-custom-job", of=pools_of)
def args_length(pool: Pool) -> Findings:
    """Check that all arguments together have at most 100,000 characters."""
    length = sum(len(text) for text in pool.task.get("args", []))
    if length > MAX_ARGS:
        hint = "write the arguments to a file in a bucket, and pass the file's name"
        what = f"args must have at most {MAX_ARGS:,} characters"
        yield Finding((*pool.task_path, "args"), what, f"{length:,}", hint)


@rule("output-variables", TYPES + "custom_job.py", of=pools_of)
def output_variables(pool: Pool) -> Findings:
    """Check that a job that uses AIP_MODEL_DIR or a similar variable has a baseOutputDirectory."""
    if pool.job.output:
        return
    for path, text in pool.texts():
        if (match := OUTPUT_DIRS.search(text)) and match.group() not in pool.variable_names:
            hint = "set baseOutputDirectory: {outputUriPrefix: gs://…}"
            what = "Vertex AI sets this variable only if the job has a baseOutputDirectory"
            yield Finding(path, what, match.group(), hint)


@rule("rank-variables", GUIDES + "training/distributed-training", "warning", of=pools_of)
def rank_variables(pool: Pool) -> Findings:
    """Check that code reads ranks and the primary's address from CLUSTER_SPEC."""
    if pool.job.context.backend == "batch" and pool.job.nodes > 1:
        return  # a script of the task sets these variables
    for path, text in pool.texts():
        for match in RANK_VARIABLE.finditer(text):
            name = match[1]  # a script may assign the variable or read a value into it
            is_set = re.search(rf"(^|[\s;&|])({name}=|read\b[^;\n]*\b{name}\b)", text)
            if name not in pool.variable_names and not is_set:
                hint = "read CLUSTER_SPEC instead, as jobs/lib/vertex_job/launch.py does"
                what = "Vertex AI does not document this variable"
                yield Finding(path, what, name, hint)
                break


@rule("placeholder", GUIDES + "training/configure-container-settings", "warning", of=pools_of)
def placeholder(pool: Pool) -> Findings:
    """Check that a job file has no placeholders such as <YOUR_BUCKET>."""
    for path, text in pool.texts():
        if match := PLACEHOLDER.search(text):
            what = "this value looks like a placeholder"
            yield Finding(path, what, match.group(), "write the actual value")


@rule("temporary-disk", GUIDES + "training/configure-compute", "warning", of=pools_of)
def temporary_disk(pool: Pool) -> Findings:
    """Check that a job stores no results below /mnt/disks, which is deleted with the job."""
    for path, text in pool.texts():
        if "/mnt/disks/" in text:
            hint = "use baseOutputDirectory with AIP_CHECKPOINT_DIR, /gcs/BUCKET, or nfsMounts"
            what = "this path is on the boot disk, which Vertex AI deletes when the job ends"
            yield Finding(path, what, "/mnt/disks/", hint)


@rule("script-goes-on", REQUIREMENTS, "warning", of=pools_of)
def script_goes_on(pool: Pool) -> Findings:
    """Check that a shell script stops at its first failed command, so that the job also fails."""
    command = pool.task.get("command", [])
    if not command or not is_shell(command[0]):
        return
    if any(STOPS_BY_OPTION.match(option) for option in command[1:]):
        return
    for path, text in pool.texts():
        if "env" not in path and _ignores_failures(text):
            what = "the script continues after a failed command"
            hint = "begin the script with `set -e`, or join its lines with &&"
            yield Finding(path, what, "", hint)


@rule("nccl-infiniband", GUIDES + "training/configure-compute", "warning", of=pools_of)
def nccl_infiniband(pool: Pool) -> Findings:
    """Check that a job on A2 machines does not enable InfiniBand for NCCL."""
    for path, *setting in pool.variables():
        if setting == ["NCCL_IB_DISABLE", "0"] and pool.machine_type.startswith("a2-"):
            what = "A2 machines have no InfiniBand"
            yield Finding(path, what, "NCCL_IB_DISABLE=0", "remove the variable")


#: Network plugins of NCCL for several machines, by the beginning of the machine type:
#: https://docs.cloud.google.com/ai-hypercomputer/docs/nccl/test-gke-custom-a3-mega-high and
#: https://docs.cloud.google.com/ai-hypercomputer/docs/nccl/release-notes-x86
PLUGINS: Final = {"a3-megagpu-": "GPUDirect-TCPXO", "a3-ultragpu-": "gIB"}
#: Names of these plugins, their libraries and variables.
NCCL_PLUGIN: Final = re.compile(
    r"tcpxo|fastrak|nccl[-_]?gib|gpudirect-gib|/gib\b|libnccl-net|nccl[-_]plugin|\bNCCL_NET(_PLUGIN)?\b",
    re.IGNORECASE,
)
#: Source: without the plugin, NCCL falls back to TCP and reports no error.
FABRIC: Final = "https://docs.nvidia.com/aicr/latest/user-guide/fabric-attached-training"


@rule("nccl-plugin", FABRIC, "warning")
def nccl_plugin(job: Job) -> Findings:
    """Check that a job on several A3 Mega or A3 Ultra nodes has NCCL's network plugin."""
    nodes = [pool for pool in job.pools if pool.index < 2]
    stack = job.context.stack
    images = stack.plugin_images if stack else frozenset[str]()
    for pool in nodes if sum(pool.replicas for pool in nodes) > 1 else ():
        name = next((PLUGINS[form] for form in PLUGINS if pool.machine_type.startswith(form)), "")
        texts = [pool.image, *(text for _, text in pool.texts()), *pool.variable_names]
        has_plugin = pool.image.partition("@")[0] in images or any(map(NCCL_PLUGIN.search, texts))
        if not name or has_plugin:
            continue
        what = (
            f"neither the image nor env names NCCL's network plugin {name}. Without the plugin, "
            "NCCL may connect the nodes by TCP, which is far slower, and report no error. Google "
            "does not document whether Vertex AI adds the plugin"
        )
        hint = "install the plugin in the image; `vt jobs logs` first prints NCCL's network"
        yield Finding((*pool.task_path, pool.image_field), what, pool.machine_type, hint)
        return


def _ignores_failures(script: str) -> bool:
    lines = [line for raw in script.splitlines() if (line := raw.strip()) and line[0] != "#"]
    lines = [line for line in lines if not PRINTS.match(line)]
    if len(lines) < 2 or STOPS_ON_ERROR.search(script):
        return False
    return any(not GOES_ON.search(line) for line in lines[:-1])


#: References that the service expands in values of variables: ``$(NAME)``, but not ``$$(NAME)``.
REFERENCE: Final = re.compile(r"(?<!\$)\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
#: Variables in shell syntax. A reference into the stack has a dot, and does not match.
SHELL_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
#: Variables that the service or most images set. A job file need not define these variables.
GIVEN: Final = re.compile(r"(AIP_|CLOUD_ML_)[A-Z_]+|CLUSTER_SPEC|TF_CONFIG|PATH|HOME|HOSTNAME")


@rule("env-unresolved", TYPES + "env_var.py", "warning", of=pools_of)
def env_unresolved(pool: Pool) -> Findings:
    """Check that a variable references only earlier variables: other names are not expanded."""
    known = set[str]()
    for path, name, value in pool.variables():
        for match in REFERENCE.finditer(value):
            if match[1] in known or GIVEN.fullmatch(match[1]):
                continue
            what = "this reference is not expanded: no variable above has this name"
            if match[1] == name:
                what = "this reference is not expanded: the variable references itself"
            hint = "define the variable above this one, or write $$(NAME) for literal text"
            yield Finding((*path, "value"), what, match.group(), hint)
        known.add(name)


@rule("shell-variable", TYPES + "custom_job.py", "warning", of=pools_of)
def shell_variable(pool: Pool) -> Findings:
    """Check that only shell scripts contain ``${NAME}``: the service does not expand variables."""
    if read_command_line(pool).is_read_by_shell:
        return
    for path, text in pool.words():
        if match := SHELL_VARIABLE.search(text):
            what = "this variable is not expanded: no shell reads this command line"
            hint = "write the value, or use command: [bash, -c] with the whole line in args"
            yield Finding(path, what, match.group(), hint)
