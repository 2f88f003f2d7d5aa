"""The command line against the machines: shells, launchers, their processes and nodes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Iterable, Iterator, Mapping
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
from vertex_training.customjob.rules.job import Job, Pool
from vertex_training.customjob.rules.registry import GUIDES, TYPES, Finding, rule
from vertex_training.errors import Mend, Path

DISTRIBUTED: Final = GUIDES + "training/distributed-training"
POSIX: Final = "https://pubs.opengroup.org/onlinepubs/9699919799/utilities/"
TORCHRUN: Final = "https://docs.pytorch.org/docs/stable/elastic/run.html"
GCSFUSE: Final = "https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/overview"
SHELL_HINT: Final = "command: [bash, -c] with the whole line as one word of args"
#: Words that mean something to a shell only.
OPERATORS: Final = frozenset(
    ("&&", "||", "|", ";", "&", ">", ">>", "<", "<<", "2>", "2>>", "2>&1", "&>", ">&2", "1>&2")
)
#: Programs that take such words themselves.
TAKE_OPERATORS: Final = frozenset(("find", "expr", "test", "[", "parallel", "jq", "awk", "make"))
#: Commands of shells for which no image has a program.
BUILTINS: Final = frozenset(
    ("cd", "source", ".", "export", "set", "unset", "ulimit", "eval", "alias", "exec", "trap")
)
#: What a shell replaces anywhere: arithmetic, and commands with arguments.
COMMANDS: Final = (
    re.compile(r"\$\(\(.+?\)\)"),
    re.compile(r"\$\([^()\s]+\s[^()]*\)"),
    re.compile(r"`[^`]+`"),
)
#: In a word of the command line; another rule reports ``${NAME}``.
IN_WORDS: Final = (
    *COMMANDS,
    re.compile(r"(?:(?<=\A)|(?<==))~/"),
    re.compile(r"(?:(?<=\A)|(?<=[=:/,]))\$[A-Z_][A-Z0-9_]*\b"),
)
#: ``$(nproc)``: the service would fill in a variable of this name, and there is none.
COMMAND: Final = re.compile(r"(?<!\$)\$\(([a-z][\w.-]*)\)")
#: In values of env; ``$NAME`` also within a text, since the service knows ``$(NAME)`` alone.
IN_ENV: Final = (
    *COMMANDS,
    re.compile(r"\A~/"),
    re.compile(r"(?<![$\\])\$(?:\{([A-Z_][A-Z0-9_]*)\}|([A-Z_][A-Z0-9_]*)\b)"),
)
#: Programs that do nothing by themselves: what they run stands in the words after them.
INTERPRETERS: Final = re.compile(
    r"(?:.*/)?(?:python|pip)[0-9.]*|torchrun|accelerate|deepspeed|mpirun|horovodrun|(?:.*/)?(?:ba)?sh"
)
SCRIPTS: Final = re.compile(r"(?:.*/)?[\w.-]+\.(?:sh|py)|\./\S+")
#: Words after a script that only name it, as ``$0``.
SCRIPT_NAMES: Final = frozenset(("--", "-", "_", "sh", "bash"))
PRINTING: Final = frozenset(("echo", "printf"))
ENGINES: Final = frozenset(("docker", "podman", "nerdctl"))
#: An option and its value, or two options, in one word.
TWO_IN_ONE: Final = re.compile(r"--?[A-Za-z][\w-]*\s+\S")
CUDA: Final = re.compile(
    r"--(?:device|accelerator|device[-_]map)[=\s](?:cuda(?::\d+)?|gpu)\Z", re.IGNORECASE
)
#: Launcher -> torchrun's option -> its own for the same.
OWN_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "accelerate": {
        "nnodes": "num-machines",
        "nproc-per-node": "num-processes",
        "node-rank": "machine-rank",
        "master-addr": "main-process-ip",
    },
    "deepspeed": {"nproc-per-node": "num-gpus"},
}
LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0"))


def _lines(job: Job) -> Iterator[tuple[Pool, CommandLine]]:
    for pool in job.pools:
        yield pool, read_command_line(pool)


def _path(pool: Pool, index: int) -> Path:
    return pool.words()[index][0]


@rule("shell-needed", POSIX + "V3_chap02.html", "warning")
def shell_needed(job: Job) -> Iterator[Finding]:
    """Words for a shell stand in the script of one: without it, they are arguments as written."""
    for pool, line in _lines(job):
        if line.is_read_by_shell or pool.task_name != "containerSpec":
            continue
        words = pool.words()
        if finding := _no_program(pool, line):
            yield finding
        command = line.commands[0] if line.commands else Command(line.words)
        if command.program not in TAKE_OPERATORS:
            operators = [(path, word) for path, word in words if word in OPERATORS]
            if operators:
                path, word = operators[0]
                what = "is for a shell, and none reads this line"
                yield Finding(path, what, word, SHELL_HINT, mend=Mend("script", 0))
        yield from _unexpanded(pool, words)


def _no_program(pool: Pool, line: CommandLine) -> Finding | None:
    """Return what is wrong with the first word, if no image has such a program."""
    first = line.words[0]
    if ASSIGNMENT.fullmatch(first) and "/" not in first.partition("=")[0]:
        what = "is an assignment of a shell, and no program"
        return Finding(_path(pool, 0), what, first, "an entry of env, or a shell: " + SHELL_HINT)
    if first in BUILTINS:
        what = "is a command of shells, and no program"
        return Finding(_path(pool, 0), what, first, SHELL_HINT)
    parts = first.split()
    if len(parts) > 1 and any(each.fullmatch(parts[0]) for each in (INTERPRETERS, SCRIPTS)):
        what = "names one program with blanks in its name"
        return Finding(_path(pool, 0), what, first, f"command: [{', '.join(parts)}]")
    return None


def _unexpanded(pool: Pool, words: list[tuple[Path, str]]) -> Iterator[Finding]:
    names = {str(each.get("name")) for each in pool.env}
    is_code = False
    for path, word in words:
        if is_code:  # python -c CODE, and the like
            is_code = False
            continue
        is_code = word in ("-c", "-e", "--eval")
        if found := _shell_syntax(word, IN_WORDS, names):
            what = "is not expanded: no shell reads this command line"
            yield Finding(path, what, found.group(), "write the value, or " + SHELL_HINT)


def _shell_syntax(
    text: str, forms: Iterable[re.Pattern[str]], variables: Container[str]
) -> re.Match[str] | None:
    """Return what only a shell would replace in a text; the service fills in ``variables``."""
    found = next((match for each in forms if (match := each.search(text))), None)
    if found is None and (named := COMMAND.search(text)) and named[1] not in variables:
        return named
    return found


@rule("shell-script-split", POSIX + "sh.html")
def shell_script_split(job: Job) -> Iterator[Finding]:
    """The script of ``bash -c`` is one word: those after it are arguments of the script."""
    for pool, line in _lines(job):
        if line.unused is None or line.script is None:
            continue
        if set(line.words[line.unused :]) <= SCRIPT_NAMES:
            continue
        one_word = len(line.script.split()) == 1
        level = None if one_word and INTERPRETERS.fullmatch(line.script.strip()) else "warning"
        what = f"is no part of the script {line.script.strip()[:60]!r}, which never reads it"
        script = line.words[line.unused - 1 :]
        whole = " ".join([line.script, *map(_quoted, script[1:])])
        hint = f"one word: {whole[:100]!r}"
        path, word = pool.words()[line.unused]
        yield Finding(path, what, word, hint, level=level, mend=Mend("script", line.unused - 1))


def _quoted(word: str) -> str:
    return word if word in OPERATORS else shlex.quote(word)


@rule("argument-of-two", POSIX + "V1_chap12.html", "warning")
def argument_of_two(job: Job) -> Iterator[Finding]:
    """An option and its value are words of their own."""
    for pool in job.pools:
        is_code = False
        for path, word in pool.words():
            if not is_code and "\n" not in word and TWO_IN_ONE.match(word):
                what = "is passed as one argument"
                yield Finding(path, what, word, f"args: [{', '.join(word.split())}]")
                break
            is_code = word in ("-c", "-e", "-lc", "-ec")


@rule("env-shell", TYPES + "env_var.py", "warning")
def env_shell(job: Job) -> Iterator[Finding]:
    """Values of variables have no shell syntax: the service expands ``$(NAME)`` alone."""
    for pool in job.pools:
        known = set[str](RESERVED)
        for index, variable in enumerate(pool.env):
            value = str(variable.get("value", ""))
            if found := _shell_syntax(value, IN_ENV, known):
                name = next((group for group in found.groups() if group), "")
                is_known = name in known or GIVEN.fullmatch(name)
                hint = f"$({name})" if is_known else "the value itself, or code that sets it"
                what = "is for a shell, and none reads the value of a variable"
                path = (*pool.task_path, "env", index, "value")
                yield Finding(path, what, found.group(), hint)
            known.add(str(variable.get("name")))


@rule("container-engine", GUIDES + "training/create-custom-container", "warning")
def container_engine(job: Job) -> Iterator[Finding]:
    """A job does not start containers: it runs in one, without an engine."""
    for pool, line in _lines(job):
        for command in line.commands:
            if command.program in ENGINES and command.words[1:2] in (("run",), ("compose",)):
                what = "the container of a job has no engine that could start another"
                hint = "imageUri: that image, and command: what runs in it"
                yield Finding(_place(pool, command), what, " ".join(command.words[:2]), hint)


def _place(pool: Pool, command: Command, option: str = "") -> Path:
    """Return the word of an option, else of the program, else of the script that has it."""
    words = pool.words()
    for wanted in filter(None, (option, command.words[0])):
        for path, word in words:
            if word.lstrip("-").partition("=")[0].replace("_", "-") == wanted or word == wanted:
                return path
    for path, word in words:
        if command.words[0] in word:
            return path
    return pool.task_path


def _own(launch: Launch, option: str) -> str:
    """Return the launcher's own name of an option of torchrun."""
    return OWN_OPTIONS.get(launch.launcher, {}).get(option, option)


def _launches(job: Job) -> Iterator[tuple[Pool, Command, Launch]]:
    """Launchers that certainly run, in pools whose replicas are nodes of a training."""
    for pool, line in _lines(job):
        for command in line.commands:
            if command.certain and (launch := launch_of(command)):
                yield pool, command, launch


@rule("gpu-missing", GUIDES + "training/configure-compute", "warning")
def gpu_missing(job: Job) -> Iterator[Finding]:
    """What asks for CUDA has machines with GPUs."""
    for pool, line in _lines(job):
        if pool.gpu or not pool.shape or pool.accelerator:
            continue  # machines that no table has may have GPUs
        hint = "acceleratorType and acceleratorCount in machineSpec, or run on processors"
        for index, variable in enumerate(pool.env):
            value = str(variable.get("value", ""))
            if variable.get("name") == "CUDA_VISIBLE_DEVICES" and re.match(r"\d", value):
                path = (*pool.task_path, "env", index, "value")
                yield Finding(path, f"{pool.machine_type} has no GPU here", value, hint)
        for command in line.commands:
            if command.program not in PRINTING and (word := _asks_for_cuda(command)):
                what = f"{pool.machine_type} has no GPU here"
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


@rule("processes-per-gpu", TORCHRUN, "warning")
def processes_per_gpu(job: Job) -> Iterator[Finding]:
    """A launcher starts one process for each GPU of a machine."""
    for pool, command, launch in _launches(job):
        count = launch.processes
        if launch.launcher == "accelerate" and launch.nodes is None:
            count = launch.total if job.nodes == 1 else None
        if not pool.gpu or not pool.count or count in (None, pool.count):
            continue
        assert count is not None
        gpus = f"{pool.count} GPU{'s' * (pool.count > 1)}"
        if count > pool.count:
            what, level = f"{count} processes share {gpus}, which NCCL refuses", None
        else:
            what = (
                f"{count} process{'es' * (count > 1)} for {gpus}: if each uses one, the others are"
            )
            what += " paid for only"
            level = "note" if count == 1 else None
        path = _place(pool, command, _own(launch, "nproc-per-node"))
        hint = f"{pool.count} processes on each machine"
        yield Finding(path, what, str(count), hint, level=level)


def _nodes(job: Job) -> int:
    """Machines of the first two pools, which are the nodes of a training."""
    return sum(pool.replicas for pool in job.pools if pool.index < 2)


@rule("launch-nodes", DISTRIBUTED, "warning")
def launch_nodes(job: Job) -> Iterator[Finding]:
    """A launcher waits for as many nodes as the worker pools have machines."""
    nodes = _nodes(job)
    for pool, command, launch in _launches(job):
        if pool.index > 1 or launch.launcher not in ("torchrun", "accelerate"):
            continue
        option = _own(launch, "nnodes")
        if launch.nodes is None or launch.nodes == nodes:
            continue
        what = f"{launch.nodes} nodes, and the pools have {nodes} machine{'s' * (nodes > 1)}"
        hint = f"--{option}={nodes}, or other replicaCounts"
        if launch.nodes == 1:
            if launch.launcher == "accelerate":
                continue  # its configuration file may say more
            what = f"each of {nodes} machines trains alone"
            hint = "python -m vertex_job.launch -- …, which reads CLUSTER_SPEC"
        elif launch.nodes > nodes:
            what += ": they wait for the others until a timeout"
        path = _place(pool, command, option)
        yield Finding(path, what, str(launch.nodes), hint)


@rule("node-rank", DISTRIBUTED, "warning")
def node_rank(job: Job) -> Iterator[Finding]:
    """Each node of a training has a rank of its own, and the address of the first one."""
    hint = "derive them from CLUSTER_SPEC, as jobs/lib/vertex_job/launch.py does"
    seen = dict[str, int]()
    for pool, command, launch in _launches(job):
        if pool.index > 1 or not launch.is_static or (launch.nodes or 1) < 2:
            continue
        rank = launch.rank
        if rank is not None and rank.isdecimal():
            others = seen.get(rank, 0) + pool.replicas - 1
            if others:
                what = f"{others + 1} nodes have this rank: each waits for the others"
                yield Finding(_place(pool, command, _own(launch, "node-rank")), what, rank, hint)
            seen[rank] = seen.get(rank, 0) + pool.replicas
        first = pool.index == 0 and pool.replicas == 1
        if not first and launch.address in LOCAL:
            what = "the first node has another address: this one waits for itself"
            path = _place(pool, command, _own(launch, "master-addr"))
            yield Finding(path, what, launch.address or "", hint)


@rule("launch-by-ssh", "https://www.deepspeed.ai/getting-started/", "warning")
def launch_by_ssh(job: Job) -> Iterator[Finding]:
    """No launcher reaches other machines of a job by SSH: each machine starts its own processes."""
    for pool, line in _lines(job):
        for command in line.commands:
            launch = launch_of(command) if command.certain else None
            word = ""
            if launch and launch.launcher == "deepspeed" and "no-ssh" not in launch.options:
                many = (launch.nodes or 1) > 1
                word = "num-nodes" if many else "hostfile" if "hostfile" in launch.options else ""
            elif command.program in ("mpirun", "mpiexec", "horovodrun"):
                hosts = ("-H", "--host", "--hosts", "--hostfile", "-hostfile", "-machinefile")
                word = next((each for each in hosts if each in command.words), "")
                value = command.words[command.words.index(word) + 1 :][:1] if word else ()
                if value and all(each.partition(":")[0] in LOCAL for each in value[0].split(",")):
                    word = ""
            if word and "ssh" not in " ".join(line.words):
                what = "machines of a job run no SSH server, by which it starts the others"
                hint = "the same launcher on every machine: python -m vertex_job.launch -- …"
                yield Finding(_place(pool, command, word), what, word, hint)


#: Variable -> what it needs of its file system.
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


@rule("mount-locks", GCSFUSE, "warning")
def mount_locks(job: Job) -> Iterator[Finding]:
    """Nothing that needs locks, hard links or sockets is below /gcs, which has none."""
    for pool in job.pools:
        values: dict[Path, str] = {
            (*pool.task_path, "env", index, "value"): str(each.get("name"))
            for index, each in enumerate(pool.env)
        }
        for path, text in pool.texts():
            needs = CACHES.get(values.get(path, ""), "") if text.startswith("/gcs/") else ""
            found = text
            if match := DATABASE.search(text):
                needs, found = "locks, as a database does", match.group()
            elif match := FILE_STORE.search(text):
                needs, found = "locks", match.group()
            if needs:
                what = f"needs {needs}, and a bucket mounted at /gcs has none"
                yield Finding(path, what, found, "a folder of the boot disk; copy what is to stay")
