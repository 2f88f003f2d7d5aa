"""Rules that compare a command line with the machines: shells, launchers, processes, nodes."""

import re
import shlex
from collections.abc import Container, Iterable, Iterator
from typing import Final

from vertex_training.customjob.rules.command_lines import (
    ASSIGNMENT,
    Command,
    CommandLine,
    Launch,
    launch_of,
    read_command_line,
)
from vertex_training.customjob.rules.environment import GIVEN, RESERVED
from vertex_training.customjob.rules.job import Job, Pool, pools_of
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, Findings, rule
from vertex_training.errors import Mend, Path, counted

DISTRIBUTED: Final = GUIDES + "training/distributed-training"
POSIX: Final = "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/"
TORCHRUN: Final = "https://docs.pytorch.org/docs/stable/elastic/run.html"
GCSFUSE: Final = "https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/overview"
SHELL_HINT: Final = "use command: [bash, -c] with the whole line as one item of args"
#: Words that only a shell interprets.
OPERATORS: Final = frozenset(
    ("&&", "||", "|", ";", "&", ">", ">>", "<", "<<", "2>", "2>>", "2>&1", "&>", ">&2", "1>&2")
)
#: Programs that accept the words in ``OPERATORS`` as arguments.
TAKE_OPERATORS: Final = frozenset(("find", "expr", "test", "[", "parallel", "jq", "awk", "make"))
#: Built-in commands of shells, for which no program exists.
BUILTINS: Final = frozenset(
    ("cd", "source", ".", "export", "set", "unset", "ulimit", "eval", "alias", "exec", "trap")
)
#: Text that a shell replaces: arithmetic, and commands with arguments.
COMMANDS: Final = (
    re.compile(r"\$\(\(.+?\)\)"),
    re.compile(r"\$\([^()\s]+\s[^()]*\)"),
    re.compile(r"`[^`]+`"),
)
#: Shell syntax in a word of the command line; another rule reports ``${NAME}``.
IN_WORDS: Final = (
    *COMMANDS,
    re.compile(r"(?:(?<=\A)|(?<==))~/"),
    re.compile(r"(?:(?<=\A)|(?<=[=:/,]))\$[A-Z_][A-Z0-9_]*\b"),
)
#: A command like ``$(nproc)``, which the service would read as a variable.
COMMAND: Final = re.compile(r"(?<!\$)\$\(([a-z][\w.-]*)\)")
#: Shell syntax in values of env, also within text: the service expands only ``$(NAME)``.
IN_ENV: Final = (
    *COMMANDS,
    re.compile(r"\A~/"),
    re.compile(r"(?<![$\\])\$(?:\{([A-Z_][A-Z0-9_]*)(?::?[-=+?][^{}]*)?\}|([A-Z_][A-Z0-9_]*)\b)"),
)
#: Programs whose arguments name another program to run.
INTERPRETERS: Final = re.compile(
    r"(?:.*/)?(?:python|pip)[0-9.]*|torchrun|accelerate|deepspeed|mpirun|horovodrun|(?:.*/)?(?:ba)?sh"
)
SCRIPTS: Final = re.compile(r"(?:.*/)?[\w.-]+\.(?:sh|py)|\./\S+")
#: Words after a script that are only its name, ``$0``.
SCRIPT_NAMES: Final = frozenset(("--", "-", "_", "sh", "bash"))
PRINTING: Final = frozenset(("echo", "printf"))
ENGINES: Final = frozenset(("docker", "podman", "nerdctl"))
#: An option and its value, or two options, in one word.
TWO_IN_ONE: Final = re.compile(r"--?[A-Za-z][\w-]*\s+\S")
CUDA: Final = re.compile(
    r"--(?:device|accelerator|device[-_]map)[=\s](?:cuda(?::\d+)?|gpu)\Z", re.IGNORECASE
)
LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))


def _lines(job: Job) -> Iterator[tuple[Pool, CommandLine]]:
    for pool in job.pools:
        yield pool, read_command_line(pool)


@rule("shell-needed", POSIX + "V3_chap02.html", "warning", of=_lines)
def shell_needed(pool: Pool, line: CommandLine) -> Findings:
    """Check that shell syntax has a shell: without a shell, the syntax is passed as arguments."""
    if line.is_read_by_shell or pool.task_name != "containerSpec":
        return
    words = pool.words()
    yield from _no_program(pool, line)
    command = line.commands[0] if line.commands else Command(line.words)
    operators = [(path, word) for path, word in words if word in OPERATORS]
    if operators and command.program not in TAKE_OPERATORS:
        path, word = operators[0]
        what = "only a shell interprets this word, and no shell reads this command line"
        yield Finding(path, what, word, SHELL_HINT, mend=Mend("script", 0))
    is_code = False
    for path, word in words:
        if is_code:  # python -c CODE, and the like
            is_code = False
            continue
        is_code = word in ("-c", "-e", "--eval")
        if syntax := _shell_syntax(word, IN_WORDS, pool.variable_names):
            what = "this text is not expanded: no shell reads this command line"
            yield Finding(path, what, syntax.group(), "write the value, or " + SHELL_HINT)


def _no_program(pool: Pool, line: CommandLine) -> Findings:
    first, what, hint = line.words[0], "", SHELL_HINT
    parts = first.split()
    if ASSIGNMENT.fullmatch(first) and "/" not in first.partition("=")[0]:
        what = "the first word is a shell assignment, and must be a program"
        hint = f"add an item to env, or {SHELL_HINT}"
    elif first in BUILTINS:
        what = "the first word is a shell command, and must be a program"
    elif len(parts) > 1 and any(form.fullmatch(parts[0]) for form in (INTERPRETERS, SCRIPTS)):
        what = "a program and its arguments must be separate items of command"
        hint = f"write command: [{', '.join(parts)}]"
    if what:
        yield Finding(pool.words()[0][0], what, first, hint)


def _shell_syntax(
    text: str, forms: Iterable[re.Pattern[str]], variables: Container[str]
) -> re.Match[str] | None:
    """Return the shell syntax in a text, except ``$(NAME)`` of the ``variables``."""
    syntax = next((match for form in forms if (match := form.search(text))), None)
    if syntax is None and (command := COMMAND.search(text)) and command[1] not in variables:
        return command
    return syntax


@rule("shell-script-split", POSIX + "sh.html", of=_lines)
def shell_script_split(pool: Pool, line: CommandLine) -> Findings:
    """Check that the script of ``bash -c`` is one item: bash does not run any other item."""
    if line.unused is None or line.script is None:
        return
    if set(line.words[line.unused :]) <= SCRIPT_NAMES:
        return
    one_word = len(line.script.split()) == 1
    level = None if one_word and INTERPRETERS.fullmatch(line.script.strip()) else "warning"
    what = f"the script {line.script.strip()[:60]!r} ends before this word, and ignores this word"
    rest = line.words[line.unused :]
    quoted = [word if word in OPERATORS else shlex.quote(word) for word in rest]
    whole = " ".join([line.script, *quoted])
    hint = f"write the script as one item: {whole[:100]!r}"
    path, word = pool.words()[line.unused]
    yield Finding(path, what, word, hint, level=level, mend=Mend("script", line.unused - 1))


@rule("argument-of-two", POSIX + "V1_chap12.html", "warning", of=pools_of)
def argument_of_two(pool: Pool) -> Findings:
    """Check that an option and its value are separate items."""
    is_code = False
    for path, word in pool.words():
        if not is_code and "\n" not in word and TWO_IN_ONE.match(word):
            what = "an option and its value must be separate items"
            yield Finding(path, what, word, f"write args: [{', '.join(word.split())}]")
            break
        is_code = word in ("-c", "-e", "-lc", "-ec")


@rule("env-shell", TYPES + "env_var.py", "warning", of=pools_of)
def env_shell(pool: Pool) -> Findings:
    """Check that values of variables have no shell syntax: the service expands only ``$(NAME)``."""
    known = set[str](RESERVED)
    for path, variable, value in pool.variables():
        if syntax := _shell_syntax(value, IN_ENV, known):
            name = next((group for group in syntax.groups() if group), "")
            is_known = name in known or GIVEN.fullmatch(name)
            hint = f"write $({name})" if is_known else "write the value here or in the code"
            what = "shell syntax has no effect in the value of a variable"
            yield Finding((*path, "value"), what, syntax.group(), hint)
        known.add(variable)


@rule("container-engine", GUIDES + "training/create-custom-container", "warning", of=_lines)
def container_engine(pool: Pool, line: CommandLine) -> Findings:
    """Check that a job does not start containers: its own container has no container engine."""
    for command in line.commands:
        if command.program in ENGINES and command.words[1:2] in (("run",), ("compose",)):
            what = "a job's container has no container engine"
            hint = "set imageUri to that image, and command to the program to run in the image"
            yield Finding(_place(pool, command), what, " ".join(command.words[:2]), hint)


def _place(pool: Pool, command: Command, option: str = "") -> Path:
    """Return the path of an option; without the option, of the program or of its script."""
    words = pool.words()
    for target in filter(None, (option, command.words[0])):
        for path, word in words:
            if word.lstrip("-").partition("=")[0].replace("_", "-") == target or word == target:
                return path
    for path, word in words:
        if command.words[0] in word:
            return path
    return pool.task_path


def _launches(job: Job) -> Iterator[tuple[Pool, Command, Launch]]:
    """Yield each launcher that certainly runs and whose options do not come from variables."""
    for pool, line in _lines(job):
        if any("PET_" in text for text in (*pool.variable_names, *line.words)):
            continue  # torchrun reads its options from PET_NNODES and the like
        for command in line.commands:
            if command.certain and (launch := launch_of(command)):
                yield pool, command, launch


@rule("gpu-missing", GUIDES + "training/configure-compute", "warning", of=_lines)
def gpu_missing(pool: Pool, line: CommandLine) -> Findings:
    """Check that a job that requests CUDA has GPUs."""
    if pool.gpu or not pool.shape or pool.accelerator:
        return  # unknown machine types may have GPUs
    hint = "add acceleratorType and acceleratorCount to machineSpec, or request CPUs"
    what = f"the command requests a GPU, but {pool.machine_type} has no GPU in this pool"
    for path, name, value in pool.variables():
        if name == "CUDA_VISIBLE_DEVICES" and re.match(r"\d", value):
            yield Finding((*path, "value"), what, value, hint)
    for command in line.commands:
        if command.program not in PRINTING and (word := _asks_for_cuda(command)):
            yield Finding(_place(pool, command, word), what, word, hint)


def _asks_for_cuda(command: Command) -> str:
    for word, after in zip(command.words, (*command.words[1:], ""), strict=True):
        if CUDA.fullmatch(word) or CUDA.fullmatch(f"{word} {after}"):
            return word
    launch = launch_of(command)
    if launch and (launch.options.get("nproc-per-node") == "gpu"):
        return "nproc-per-node"
    if launch and "multi-gpu" in launch.options:
        return "--multi_gpu"
    return ""


@rule("processes-per-gpu", TORCHRUN, "warning", of=_launches)
def processes_per_gpu(pool: Pool, command: Command, launch: Launch) -> Findings:
    """Check that a launcher starts one process for each GPU of a machine."""
    count = launch.processes
    if launch.launcher == "accelerate" and launch.nodes is None:
        count = launch.total if pool.job.nodes == 1 else None
    if not pool.gpu or not pool.count or count is None or count == pool.count:
        return
    gpus = counted(pool.count, "GPU")
    if count > pool.count:
        what, level = f"NCCL does not support {count} processes on {gpus}", None
    else:
        what = f"only {count} process{'es' * (count > 1)} for {gpus}: some GPUs may be unused"
        level = "note" if count == 1 else None
    path = _place(pool, command, launch.option("processes"))
    hint = f"start {pool.count} processes on each machine"
    yield Finding(path, what, str(count), hint, level=level)


@rule("launch-nodes", DISTRIBUTED, "warning")
def launch_nodes(job: Job) -> Findings:
    """Check that a launcher's number of nodes is the number of machines in the worker pools."""
    nodes = sum(pool.replicas for pool in job.pools if pool.index < 2)
    for pool, command, launch in _launches(job):
        if pool.index > 1 or launch.launcher not in ("torchrun", "accelerate"):
            continue
        option = launch.option("nodes")
        if launch.nodes is None or launch.nodes == nodes:
            continue
        machines = counted(nodes, "machine")
        what = f"the launcher expects {launch.nodes} nodes, but the pools have {machines}"
        hint = f"write --{option}={nodes}, or change replicaCount"
        if launch.nodes == 1:
            if launch.launcher == "accelerate":
                continue  # a configuration file may set another number
            what = f"the {nodes} machines would train separately, not together"
            hint = "run python -m vertex_job.launch -- …, which reads CLUSTER_SPEC"
        elif launch.nodes > nodes:
            what += ": the job would wait for missing nodes until a timeout"
        path = _place(pool, command, option)
        yield Finding(path, what, str(launch.nodes), hint)


@rule("node-rank", DISTRIBUTED, "warning")
def node_rank(job: Job) -> Findings:
    """Check that each node of a training has its own rank and the address of the first node."""
    hint = "read rank and address from CLUSTER_SPEC, as jobs/lib/vertex_job/launch.py does"
    seen = dict[str, int]()
    for pool, command, launch in _launches(job):
        if pool.index > 1 or not launch.is_static or (launch.nodes or 1) < 2:
            continue
        default = "0" if launch.launcher == "torchrun" else None
        rank = default if launch.rank is None else launch.rank
        if rank is not None and rank.isdecimal():
            others = seen.get(rank, 0) + pool.replicas - 1
            if others:
                what = f"{others + 1} nodes would have the same rank, and wait forever"
                yield Finding(_place(pool, command, launch.option("rank")), what, rank, hint)
            seen[rank] = seen.get(rank, 0) + pool.replicas
        first = pool.index == 0 and pool.replicas == 1
        if not first and launch.address in LOCAL:
            what = "the address must be the address of the first node, which is another machine"
            path = _place(pool, command, launch.option("address"))
            yield Finding(path, what, launch.address or "", hint)


@rule("launch-by-ssh", "https://www.deepspeed.ai/getting-started/", "warning", of=_lines)
def launch_by_ssh(pool: Pool, line: CommandLine) -> Findings:
    """Check that a launcher does not use SSH: each machine of a job starts its own processes."""
    for command in line.commands:
        launch = launch_of(command) if command.certain else None
        word = ""
        if launch and launch.launcher == "deepspeed" and "no-ssh" not in launch.options:
            many = (launch.nodes or 1) > 1
            word = "num-nodes" if many else "hostfile" if "hostfile" in launch.options else ""
        elif command.program in ("mpirun", "mpiexec", "horovodrun"):
            hosts = ("-H", "--host", "--hosts", "--hostfile", "-hostfile", "-machinefile")
            word = next((option for option in hosts if option in command.words), "")
            value = command.words[command.words.index(word) + 1 :][:1] if word else ()
            if value and all(host.partition(":")[0] in LOCAL for host in value[0].split(",")):
                word = ""
        if word and "ssh" not in " ".join(line.words):
            what = "this launcher needs SSH, and machines of a job run no SSH server"
            hint = "run a launcher on every machine: python -m vertex_job.launch -- …"
            yield Finding(_place(pool, command, word), what, word, hint)


#: Variable -> the file system features that its folder needs.
CACHES: Final = {
    name: needs
    for needs, names in {
        "locks and links": "HF_HOME HF_HUB_CACHE HUGGINGFACE_HUB_CACHE HF_DATASETS_CACHE "
        "TRANSFORMERS_CACHE",
        "locks and sockets": "TMPDIR TMP TEMP RAY_TMPDIR XDG_RUNTIME_DIR",
        "hard links": "PIP_CACHE_DIR UV_CACHE_DIR XDG_CACHE_HOME",
        "locks": "TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR NUMBA_CACHE_DIR",
    }.items()
    for name in names.split()
}
DATABASE: Final = re.compile(
    r"(?:sqlite|duckdb)(?:\+\w+)?:/{2,4}gcs/\S*|/gcs/\S+\.(?:sqlite3?|db|duckdb)\b"
)
FILE_STORE: Final = re.compile(r"file:///?gcs/\S*")


@rule("mount-locks", GCSFUSE, "warning", of=pools_of)
def mount_locks(pool: Pool) -> Findings:
    """Check that files that need locks, hard links or sockets are outside of /gcs."""
    names: dict[Path, str] = {(*path, "value"): name for path, name, _ in pool.variables()}
    for path, text in pool.texts():
        needs = CACHES.get(names.get(path, ""), "") if text.startswith("/gcs/") else ""
        shown = text
        if match := DATABASE.search(text):
            needs, shown = "locks for its database", match.group()
        elif match := FILE_STORE.search(text):
            needs, shown = "locks", match.group()
        if needs:
            what = f"this path needs {needs}, which a bucket below /gcs does not support"
            hint = "use a folder on the boot disk, and copy results to the bucket"
            yield Finding(path, what, shown, hint)
