"""Command lines of containers: the commands that run, through shells and wrappers, and launchers.

A line that is not understood has no commands: the rules report nothing about it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from vertex_training.customjob.rules.job import Pool, is_shell

#: Stands for what only a shell knows: ``$(…)`` and backticks.
UNKNOWN: Final = "$_"
ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_OPERATORS: Final = frozenset(";&|()<>\n")
#: Here-documents are input of a command, and not commands.
_HERE: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?\n\s*\2[ \t]*(?=\n|\Z)", re.DOTALL)
_COMMENT: Final = re.compile(r"(?m)^[ \t]*#.*$")
#: Words after which it depends on something whether a command runs, or how often.
_CONDITIONS: Final = frozenset(
    ("if", "elif", "else", "case", "for", "while", "until", "select", "function")
)
#: Words that stand before a command.
_KEYWORDS: Final = frozenset((*_CONDITIONS, "then", "do", "{", "!", "time", "fi", "done", "}"))
#: Programs that start the command after them -> their options with a value of its own word.
_WRAPPERS: Final[Mapping[str, frozenset[str]]] = {
    "env": frozenset(("-u", "--unset", "-C", "--chdir")),
    "exec": frozenset(("-a",)),
    "command": frozenset(),
    "nohup": frozenset(),
    "time": frozenset(("-f", "-o")),
    "nice": frozenset(("-n",)),
    "ionice": frozenset(("-c", "-n")),
    "setsid": frozenset(),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "numactl": frozenset(("-N", "-m", "-C", "-l")),
    "xvfb-run": frozenset(("-n", "-s", "-e", "-f", "-w", "--server-args", "--server-num")),
    "tini": frozenset(("-p", "-e")),
    "dumb-init": frozenset(("-r", "--rewrite")),
    "uv run": frozenset(("--with", "-p", "--python", "--group", "--extra", "--project")),
    "poetry run": frozenset(),
    "pipenv run": frozenset(),
    "pdm run": frozenset(),
    "pixi run": frozenset(("-e", "--environment")),
    "conda run": frozenset(("-n", "--name", "-p", "--prefix")),
    "micromamba run": frozenset(("-n", "--name", "-p", "--prefix")),
}
#: Programs whose first argument is how long the command after it may run.
_AFTER_ONE: Final = frozenset(("timeout",))
_PYTHON: Final = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)?)?")


@dataclass(frozen=True)
class Command:
    """A command that runs: its program and arguments, without what wraps it."""

    words: tuple[str, ...]
    certain: bool = True
    """Whether it runs once, whatever happens: no condition or loop is around it."""

    @property
    def program(self) -> str:
        """The name of the program, without its folder."""
        return self.words[0].rpartition("/")[2]

    @property
    def is_python(self) -> bool:
        """Whether it runs Python."""
        return _PYTHON.fullmatch(self.words[0]) is not None

    def module_and_arguments(self) -> tuple[str, tuple[str, ...]]:
        """Return the module of ``python [OPTIONS] -m MODULE``, and what follows it."""
        if self.is_python:
            for index, word in enumerate(self.words[1:-1], 1):
                if word == "-m":
                    return self.words[index + 1], self.words[index + 2 :]
                if not word.startswith("-") or word == "-c":
                    break
        return "", self.words[1:]


@dataclass(frozen=True)
class CommandLine:
    """What a pool's ``command`` and ``args`` run."""

    words: tuple[str, ...]
    """As they are written; empty if the image's own entrypoint decides what they mean."""
    script: str | None = None
    """The script of a shell, if one runs."""
    unused: int | None = None
    """Index of the first word that the shell hands to a script that reads no arguments."""
    commands: tuple[Command, ...] = ()
    is_read_by_shell: bool = False
    """Whether a shell, or another program that expands texts, reads the words."""


def read_command_line(pool: Pool) -> CommandLine:
    """Return the command line of a pool; without words where the image's entrypoint has a part."""
    if pool.task_name == "pythonPackageSpec":
        module = str(pool.task.get("pythonModule", ""))
        words = ("python", "-m", module, *pool.task.get("args", [])) if module else ()
        return CommandLine(words, commands=(Command(words),) if words else ())
    if not pool.task.get("command"):
        return CommandLine((), is_read_by_shell=True)
    return parse_words([word for _, word in pool.words()])


def parse_words(words: Sequence[str]) -> CommandLine:
    """Return the commands of the words of a command line.

    >>> parse_words(["bash", "-c", "cd /app && exec python train.py"]).commands[1].words
    ('python', 'train.py')
    """
    rest = _unwrapped(words)
    if rest and is_shell(rest[0]):
        return _shell_line(words, rest)
    program = rest[0].rpartition("/")[2] if rest else ""
    # A wrapper in front, such as env, starts the words after it as they are.
    commands = (Command(tuple(rest)),) if rest else ()
    expands = program == "envsubst" or "-S" in words or any(is_shell(word) for word in words)
    return CommandLine(tuple(words), commands=commands, is_read_by_shell=expands)


def _shell_line(words: Sequence[str], rest: Sequence[str]) -> CommandLine:
    script, after = _script_of(rest)
    if script is None:
        return CommandLine(tuple(words), is_read_by_shell=True)
    # Without a $, a script cannot read its arguments.
    unused = len(words) - len(after) if after and "$" not in script else None
    return CommandLine(tuple(words), script, unused, parse_script(script), is_read_by_shell=True)


def _script_of(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the script after ``-c`` and the words after it; None without ``-c``."""
    is_script = False
    index = 1
    while index < len(words) and words[index][:1] in ("-", "+") and words[index] != "--":
        word = words[index]
        is_script |= word[:1] == "-" and word[:2] != "--" and "c" in word
        # -o pipefail, also as the last letter: -euo pipefail.
        index += 2 if word[:2] != "--" and word[-1:] in ("o", "O") else 1
    if not is_script or index >= len(words):
        return None, ()
    return words[index], words[index + 1 :]


def _unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Return the words without wrappers and assignments in front of the program."""
    while words:
        name = words[0].rpartition("/")[2]
        pair = f"{name} {words[1]}" if len(words) > 1 else ""
        if pair in _WRAPPERS:
            name, words = pair, words[1:]
        elif name in _AFTER_ONE:
            words = _without_options(words, frozenset(("-k", "-s")))[1:]
            continue
        elif name not in _WRAPPERS:
            break
        words = _without_options(words, _WRAPPERS[name])
        while name == "env" and words and ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
    return words


def _without_options(words: Sequence[str], with_value: frozenset[str]) -> Sequence[str]:
    index = 1
    while index < len(words) and words[index].startswith("-"):
        if words[index] == "--":
            return words[index + 1 :]
        index += 2 if words[index] in with_value else 1
    return words[index:]


def parse_script(script: str) -> tuple[Command, ...]:
    """Return the commands of a shell script; none if its syntax is not understood."""
    text = _HERE.sub(r"\3", script.replace("\\\n", " "))
    lexer = shlex.shlex(
        _without_substitutions(_COMMENT.sub("", text)),
        posix=True,
        punctuation_chars="".join(_OPERATORS),
    )
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        tokens = list(lexer)
    except ValueError:
        return ()
    return tuple(_commands(tokens))


def _commands(tokens: Sequence[str]) -> list[Command]:
    commands: list[Command] = []
    words: list[str] = []
    certain, is_target, is_comment = True, False, False

    def end() -> None:
        nonlocal certain
        while words and (words[0] in _KEYWORDS or ASSIGNMENT.fullmatch(words[0])):
            if words[0] in _CONDITIONS:
                certain = False
            if words.pop(0) in ("for", "case", "select"):
                words.clear()
        if rest := tuple(_unwrapped(words)):
            commands.append(Command(rest, certain))
        words.clear()

    for token in tokens:
        is_operator = set(token) <= _OPERATORS
        if is_comment:
            is_comment = not (is_operator and "\n" in token)
        elif is_target:  # of a redirection
            is_target = False
        elif is_operator and ("<" in token or ">" in token):
            if words and words[-1].isdecimal():
                words.pop()  # the number of a file: 2>
            is_target = True
        elif is_operator:
            end()
            certain = certain and "||" not in token
        elif token.startswith("#"):
            is_comment = True
        else:
            words.append(token)
    end()
    return commands


def _without_substitutions(script: str) -> str:
    """Replace ``$(…)`` and backticks, outside of single quotes, by ``UNKNOWN``."""
    found: list[str] = []
    index, quoted = 0, False
    while index < len(script):
        if script[index] == "'":
            quoted = not quoted
        if not quoted and script.startswith("$(", index):
            index = _closing(script, index + 1)
            found.append(UNKNOWN)
            continue
        if not quoted and script[index] == "`" and (end := script.find("`", index + 1)) > 0:
            index = end + 1
            found.append(UNKNOWN)
            continue
        found.append(script[index])
        index += 1
    return "".join(found)


def _closing(script: str, index: int) -> int:
    depth = 0
    for position in range(index, len(script)):
        depth += {"(": 1, ")": -1}.get(script[position], 0)
        if depth == 0:
            return position + 1
    return len(script)


@dataclass(frozen=True)
class Launch:
    """How a launcher starts processes; what stands in no option is None."""

    launcher: str
    nodes: int | None = None
    processes: int | None = None
    """Of each node."""
    total: int | None = None
    """Of all nodes together."""
    rank: str | None = None
    address: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """Options with dashes for underscores -> value."""

    @property
    def is_static(self) -> bool:
        """Whether every node is told its rank and where the first one is."""
        return self.options.get("rdzv-backend", "static") == "static"


_ACCELERATE: Final = """
    cpu debug dynamo-use-dynamic dynamo-use-fullgraph enable-cpu-affinity m module multi-gpu
    no-python q quiet same-network tpu use-deepspeed use-fsdp use-megatron-lm use-xpu
"""
#: Launcher -> options without a value of their own.
_FLAGS: Final[Mapping[str, frozenset[str]]] = {
    "torchrun": frozenset(("standalone", "m", "module", "no-python", "use-env")),
    "accelerate": frozenset(_ACCELERATE.split()),
    "deepspeed": frozenset(("module", "no-python", "no-local-rank", "no-ssh", "force-multi")),
    "vertex_job.launch": frozenset(),
}
_MODULES: Final = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "vertex_job.launch": "vertex_job.launch",
}


def launch_of(command: Command) -> Launch | None:
    """Return how a command launches its processes; None if it starts no known launcher."""
    module, arguments = command.module_and_arguments()
    name = _MODULES.get(module, "")
    if not command.is_python:
        name = command.program
        if name == "accelerate":
            if arguments[:1] != ("launch",):
                return None
            arguments = arguments[1:]
    if name not in _FLAGS:
        return None
    options = _options(arguments, _FLAGS[name])
    read = {"torchrun": _torchrun, "accelerate": _accelerate, "deepspeed": _deepspeed}
    if name in read:
        return read[name](options)
    return Launch(name, processes=_number(options.get("processes")), options=options)


def _options(words: Sequence[str], flags: frozenset[str]) -> dict[str, str]:
    """Return the options before the program, by their names with dashes."""
    found: dict[str, str] = {}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] != "--":
        name, equals, value = words[index].lstrip("-").partition("=")
        name = name.replace("_", "-")
        index += 1
        if not equals and name not in flags and index < len(words):
            value = words[index]
            index += 1
        found[name] = value
    return found


def _torchrun(options: Mapping[str, str]) -> Launch:
    nodes = _number(options.get("nnodes", "1")) if "standalone" not in options else 1
    address = options.get("master-addr")
    if endpoint := options.get("rdzv-endpoint"):
        address = endpoint.rpartition(":")[0] or endpoint
    processes = _number(options.get("nproc-per-node", "1"))
    rank = options.get("node-rank")
    return Launch("torchrun", nodes, processes, rank=rank, address=address, options=options)


def _accelerate(options: Mapping[str, str]) -> Launch:
    nodes, total = _number(options.get("num-machines")), _number(options.get("num-processes"))
    each = total // nodes if total and nodes else None
    rank, address = options.get("machine-rank"), options.get("main-process-ip")
    return Launch("accelerate", nodes, each, total, rank, address, options)


def _deepspeed(options: Mapping[str, str]) -> Launch:
    nodes, each = _number(options.get("num-nodes")), _number(options.get("num-gpus"))
    rank, address = options.get("node-rank"), options.get("master-addr")
    return Launch("deepspeed", nodes, each, None, rank, address, options)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,6}", text) else None


def started_processes(pools: Sequence[Pool]) -> tuple[str, ...]:
    """Return what the launchers of worker pools start: ``4 nodes x 8 processes (torchrun)``.

    Without the processes where only the machine knows how many.
    """
    nodes: dict[tuple[str, int | None], int] = {}
    for pool in pools:
        found = [launch_of(each) for each in read_command_line(pool).commands]
        launches = [each for each in found if each]
        if len(launches) != 1 or pool.index > 1:
            continue
        key = (launches[0].launcher, processes_of(launches[0], pool))
        nodes[key] = nodes.get(key, 0) + pool.replicas
    lines: list[str] = []
    for (launcher, each), count in nodes.items():
        processes = f" x {_counted(each, 'process', 'processes')}" if each else ""
        lines.append(f"{_counted(count, 'node', 'nodes')}{processes} ({launcher})")
    return tuple(lines)


def processes_of(launch: Launch, pool: Pool) -> int | None:
    """Return the processes that a launcher starts on each machine; None if the machine decides."""
    if launch.processes is not None:
        return launch.processes
    option = launch.options.get("nproc-per-node", launch.options.get("processes"))
    by_machine = launch.launcher in ("deepspeed", "vertex_job.launch") and option is None
    if pool.gpu and pool.count and (by_machine or option in ("gpu", "auto")):
        return pool.count
    return 1 if launch.launcher == "vertex_job.launch" and by_machine and not pool.gpu else None


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
