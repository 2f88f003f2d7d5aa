"""Parses command lines of containers: commands inside shells and wrappers, and launchers.

An unparsable command line has no commands, and rules report nothing about it.
"""

import re
import shlex
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from vertex_training import catalog
from vertex_training.customjob.rules.job import Pool, is_shell
from vertex_training.errors import counted

#: Placeholder for text that only a shell can expand: ``$(…)`` and backticks.
UNKNOWN: Final = "$_"
ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_OPERATORS: Final = frozenset(";&|()<>\n")
#: Here-documents: input of a command.
_HERE: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?\n\s*\2[ \t]*(?=\n|\Z)", re.DOTALL)
_COMMENT: Final = re.compile(r"(?m)^[ \t]*#.*$")
#: Words that begin a condition or a loop around commands.
_CONDITIONS: Final = frozenset(
    ("if", "elif", "else", "case", "for", "while", "until", "select", "function")
)
#: Words that precede a command.
_KEYWORDS: Final = frozenset((*_CONDITIONS, "then", "do", "{", "!", "time", "fi", "done", "}"))
_PYTHON: Final = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)?)?")


@dataclass(frozen=True)
class Command:
    """A program and its arguments, without wrappers."""

    words: tuple[str, ...]
    certain: bool = True
    """True if the command runs exactly once: it is outside of conditions and loops."""

    @property
    def program(self) -> str:
        """Return the name of the program without its folder."""
        return self.words[0].rpartition("/")[2]

    @property
    def is_python(self) -> bool:
        """Return whether the program is Python."""
        return _PYTHON.fullmatch(self.words[0]) is not None

    def module_and_arguments(self) -> tuple[str, tuple[str, ...]]:
        """Return the module and the arguments of ``python -m MODULE``, else all arguments."""
        if self.is_python:
            for index, word in enumerate(self.words[1:-1], 1):
                if word == "-m":
                    return self.words[index + 1], self.words[index + 2 :]
                if not word.startswith("-") or word == "-c":
                    break
        return "", self.words[1:]


@dataclass(frozen=True)
class CommandLine:
    """A pool's ``command`` and ``args``, and the commands that run in them."""

    words: tuple[str, ...]
    """Words as in the job file; empty if the image's entrypoint interprets the words."""
    script: str | None = None
    """The script of a shell, if the line runs a shell."""
    unused: int | None = None
    """Index of the first argument that the script ignores."""
    commands: tuple[Command, ...] = ()
    is_read_by_shell: bool = False
    """True if a shell or another program that expands variables reads the words."""


def read_command_line(pool: Pool) -> CommandLine:
    """Return a pool's command line; without words if the image's entrypoint interprets them."""
    if pool.task_name == "pythonPackageSpec":
        module = str(pool.task.get("pythonModule", ""))
        words = ("python", "-m", module, *pool.task.get("args", [])) if module else ()
        return CommandLine(words, commands=(Command(words),) if words else ())
    if not pool.task.get("command"):
        return CommandLine((), is_read_by_shell=True)
    return parse_words([word for _, word in pool.words()])


def parse_words(words: Sequence[str]) -> CommandLine:
    """Parse the words of a command line.

    >>> parse_words(["bash", "-c", "cd /app && exec python train.py"]).commands[1].words
    ('python', 'train.py')
    """
    rest = _unwrapped(words)
    if rest and is_shell(rest[0]):
        script, after = _script_of(rest)
        if script is None:
            return CommandLine(tuple(words), is_read_by_shell=True)
        # A script without $ ignores its arguments.
        unused = len(words) - len(after) if after and "$" not in script else None
        return CommandLine(tuple(words), script, unused, parse_script(script), True)
    program = rest[0].rpartition("/")[2] if rest else ""
    # A wrapper such as env starts the words after it without expansion.
    commands = (Command(tuple(rest)),) if rest else ()
    expands = program == "envsubst" or "-S" in words or any(is_shell(word) for word in words)
    return CommandLine(tuple(words), commands=commands, is_read_by_shell=expands)


def _script_of(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the script after ``-c`` and the words after the script; None without ``-c``."""
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
    wrappers = catalog.load("launchers.yaml")["wrappers"]
    while words:
        name = words[0].rpartition("/")[2]
        pair = f"{name} {words[1]}" if len(words) > 1 else ""
        if pair in wrappers:
            name, words = pair, words[1:]
        elif name not in wrappers:
            break
        words = _without_options(words, wrappers[name])
        if name == "timeout":
            words = words[1:]  # the duration precedes the command
        while name == "env" and words and ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
    return words


def _without_options(words: Sequence[str], with_value: Container[str]) -> Sequence[str]:
    index = 1
    while index < len(words) and words[index].startswith("-"):
        if words[index] == "--":
            return words[index + 1 :]
        index += 2 if words[index] in with_value else 1
    return words[index:]


def parse_script(script: str) -> tuple[Command, ...]:
    """Return the commands of a shell script; empty if the script is unparsable."""
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
    """Replace ``$(…)`` and backticks outside of single quotes by ``UNKNOWN``."""
    parts: list[str] = []
    index, quoted = 0, False
    while index < len(script):
        if script[index] == "'":
            quoted = not quoted
        if not quoted and script.startswith("$(", index):
            depth = 1
            index += 2
            while depth and index < len(script):
                depth += {"(": 1, ")": -1}.get(script[index], 0)
                index += 1
            parts.append(UNKNOWN)
            continue
        if not quoted and script[index] == "`" and (end := script.find("`", index + 1)) > 0:
            index = end + 1
            parts.append(UNKNOWN)
            continue
        parts.append(script[index])
        index += 1
    return "".join(parts)


@dataclass(frozen=True)
class Launch:
    """A launcher in a command, with the counts that its options set; None for an unset count."""

    launcher: str
    nodes: int | None
    processes: int | None
    """Number of processes on each node."""
    total: int | None
    """Number of processes on all nodes."""
    rank: str | None
    address: str | None
    options: Mapping[str, str]
    """Option, with dashes instead of underscores -> value."""

    @property
    def is_static(self) -> bool:
        """Return whether options set each node's rank and the address of the first node."""
        return self.options.get("rdzv-backend", "static") == "static"

    def option(self, common: str) -> str:
        """Return the launcher's name of an option: ``nodes``, ``processes``, ``rank``, …"""
        return _launchers()[self.launcher]["names"].get(common, "")


def _launchers() -> Mapping[str, Mapping[str, Any]]:
    return catalog.load("launchers.yaml")["launchers"]


def launch_of(command: Command) -> Launch | None:
    """Return the launcher in a command, with its counts; None without a known launcher."""
    module, arguments = command.module_and_arguments()
    name = next((name for name, row in _launchers().items() if module in row["modules"]), "")
    if not command.is_python:
        name = command.program
        if name == "accelerate":
            if arguments[:1] != ("launch",):
                return None
            arguments = arguments[1:]
    if (row := _launchers().get(name)) is None:
        return None
    options = row["defaults"] | _options(arguments, row["flags"])
    values = {common: options.get(option) for common, option in row["names"].items()}
    nodes, processes, total = _number(values.get("nodes")), _number(values["processes"]), None
    rank, address = values.get("rank"), values.get("address")
    if name == "torchrun":
        nodes = 1 if "standalone" in options else nodes
        if endpoint := options.get("rdzv-endpoint"):
            address = endpoint.rpartition(":")[0] or endpoint
    if name == "accelerate":
        total, processes = processes, processes // nodes if processes and nodes else None
    return Launch(name, nodes, processes, total, rank, address, options)


def _options(words: Sequence[str], flags: Container[str]) -> dict[str, str]:
    """Return the options before the program. Underscores in option names become dashes."""
    options: dict[str, str] = {}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] != "--":
        name, equals, value = words[index].lstrip("-").partition("=")
        name = name.replace("_", "-")
        index += 1
        if not equals and name not in flags and index < len(words):
            value = words[index]
            index += 1
        options[name] = value
    return options


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,6}", text) else None


def started_processes(pools: Sequence[Pool]) -> tuple[str, ...]:
    """Return texts like ``4 nodes x 8 processes (torchrun)`` for the launchers in worker pools.

    A text without processes means that their number depends on the machine.
    """
    nodes: dict[tuple[str, int | None], int] = {}
    for pool in pools:
        commands = read_command_line(pool).commands
        launches = [launch for command in commands if (launch := launch_of(command))]
        if len(launches) != 1 or pool.index > 1:
            continue
        key = (launches[0].launcher, processes_of(launches[0], pool))
        nodes[key] = nodes.get(key, 0) + pool.replicas
    lines: list[str] = []
    for (launcher, per_node), count in nodes.items():
        processes = f" x {per_node} process{'es' * (per_node > 1)}" if per_node else ""
        lines.append(f"{counted(count, 'node')}{processes} ({launcher})")
    return tuple(lines)


def processes_of(launch: Launch, pool: Pool) -> int | None:
    """Return the number of processes on each machine; None if the number depends on the machine."""
    if launch.processes is not None:
        return launch.processes
    option = launch.options.get("nproc-per-node", launch.options.get("processes"))
    by_machine = launch.launcher in ("deepspeed", "vertex_job.launch") and option is None
    if pool.gpu and pool.count and (by_machine or option in ("gpu", "auto")):
        return pool.count
    return 1 if launch.launcher == "vertex_job.launch" and by_machine and not pool.gpu else None
