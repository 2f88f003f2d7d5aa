"""Converts gcloud commands in scripts, Makefiles and pages into imported jobs.

They are ``gcloud ai custom-jobs create`` and its ``hp-tuning-jobs``. Nothing is run. What the flags
mean is gcloud's command_lib/ai/custom_jobs/custom_jobs_util.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from vertex_training.errors import CommandError
from vertex_training_cli.importing.imported import (
    MAX_LENGTH,
    REQUEST_ID,
    ImportedJob,
    Note,
    from_message,
    key_of,
    placeholder,
)

#: Flags between the words of a gcloud command, as in `gcloud --project P ai …`.
_FLAGS: Final = (
    r"((?:\s+--?[a-z][\w-]{0,60}(?:=\S{1,300}"
    r"|\s+(?!-|(?:ai|alpha|beta|create|custom-jobs|hp-tuning-jobs)\s)\S{1,300})?)"
    r"{0,5})\s+"
)
#: A gcloud command in a shell line that creates a job.
GCLOUD: Final = re.compile(
    rf"gcloud{_FLAGS}(?:(?:alpha|beta){_FLAGS})?"
    rf"ai{_FLAGS}(?P<kind>custom-jobs|hp-tuning-jobs){_FLAGS}create\b"
)
#: Name of a file that means standard input for gcloud.
STDIN: Final = "-"
ALGORITHMS: Final = {"random": "RANDOM_SEARCH", "grid": "GRID_SEARCH"}
#: Flags of gcloud without a value.
SWITCHES: Final = ("enable-web-access", "enable-dashboard-access", "async", "quiet")
#: Flags without a remark: other code reads them, or they concern only the call.
_READ: Final = (
    "display-name config region worker-pool-spec args command labels project format quiet "
    "async python-package-uris max-trial-count parallel-trial-count algorithm verbosity "
)
READ: Final = frozenset(_READ.split())
#: Flags whose values are collected if the flag is repeated.
LISTS: Final = ("args", "command", "labels", "python-package-uris")
#: Flag -> field of the job's spec.
SPEC_FIELDS: Final = {
    "network": "network",
    "service-account": "serviceAccount",
    "enable-web-access": "enableWebAccess",
    "enable-dashboard-access": "enableDashboardAccess",
    "persistent-resource-id": "persistentResourceId",
}
POOL_KEYS: Final = ("machine-type", "replica-count", "accelerator-type", "accelerator-count",
                    "container-image-uri", "executor-image-uri", "python-module")  # fmt: skip
ASSIGNMENT: Final = re.compile(
    r"(?:(?:export|readonly|local|declare(?: -\w)?|typeset)\s+)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL
)
#: A part of a shell line; ``end`` matches an operator or a keyword that ends a command.
PART: Final = re.compile(
    r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|=\([^()]*\)|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\{[^}]*\}"
    r"|(?P<end>;|&&|\|\|?|(?<!>)&(?!>)|\)|\b(?:then|do|else)\b)|.",
    re.DOTALL,
)
#: `NAME ?= value` of a Makefile.
MAKE: Final = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*([:?+]?)=[ \t]*(.*)")
#: Start of a heredoc: `-` removes leading tabs, a quote prevents expansion, and the last group is
#: the line that ends the text.
HEREDOC: Final = re.compile(r"<<(-?)\s*(['\"]?)(\w+)\2")
#: A variable, a command substitution, or an escaped character.
VARIABLE: Final = re.compile(
    r"\\(?P<escaped>[\\$`\n])"
    r"|\$'(?P<ansi>[^']*)'|\$\{(?P<prefix>[#!]?)(?P<braced>\w+)(?P<default>:?[-=][^{}]{0,500}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,9})?(?P<more>[^}]{0,200})\}"
    r"|\$(?P<name>[A-Za-z_]\w*|[0-9@*#])|%(?P<windows>[A-Za-z_]\w*)%|\$\((?P<command>(?:[^()]|\([^()]{0,300}\)){0,500})\)|`(?P<old>[^`]{0,500})`"
)
#: Beginning and end of a block in a script.
OPENS: Final = re.compile(r"\s*(if|for|while|until|case|select)\b")
CLOSES: Final = re.compile(r"(?:^|[;\s])(fi|done|esac)\b")
#: The first line of a function, with its indentation and its name.
FUNCTION: Final = re.compile(
    r"(\s*)(?:function\s+([\w:-]+)(?:\s*\(\s*\))?|([\w:-]+)\s*\(\s*\))\s*\{"
)
#: A name that a line may change: by an assignment, or by a command such as `read` or `unset`.
SETS: Final = re.compile(
    r"(?<![^\s;&|({`])([A-Za-z_]\w*)(?:\[\w*\])?[ \t]*[:?+]?="
    r"|\b(?:for|read|unset|select|getopts\s+\S+)\s+((?:-\w+\s+)*(?:[A-Za-z_]\w*[ \t]*){1,20})"
)
PLACEHOLDER: Final = re.compile(r"<[A-Z0-9_]+>")
#: Quoted texts, escaped characters and comments in a line.
QUOTED: Final = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|(?:^|\s)#.*", re.DOTALL)
PYTHON: Final = re.compile(r"\s*(?:\w+=\S*\s+)*python[\d.]*\b")


def call_of(match: re.Match[str]) -> tuple[str, str]:
    """Return the kind of job that a command creates, and its flags."""
    flags = (text for n, text in enumerate(match.groups(), 1) if n != match.re.groupindex["kind"])
    return match["kind"], " ".join(filter(None, flags))


CommandFiles = Callable[[str], "ImportedJob | None"]
"""Function that returns the job in a file that gcloud reads, or None."""


class Script:
    """Reads the lines of a script in order, and collects the jobs that they create.

    A variable has a value if the script assigns it once, outside of branches and loops. ``read``
    has the files that gcloud gets: those that the script writes into ``files``, too.
    """

    def __init__(
        self, label: str, read: CommandFiles, *, files: dict[str, str] | None = None
    ) -> None:
        self.label, self.files = label, files if files is not None else {}
        self.jobs = list[ImportedJob]()
        self.left_out = list[str]()
        """Reasons why a command is omitted, one sentence each."""
        self.programs = list[tuple[str, int]]()
        """Python code that the script runs: text, and the number of lines before it."""
        self._read = read
        self._values: dict[str, list[str]] = {}
        self._assigned = Counter[str]()
        self._depth = 0
        self._function, self._end = "", ""
        """Name of the current function, and the line that ends it."""

    def visit(self, text: str, name: str, *, is_make: bool = False, first: int = 1) -> None:
        """Read a script from line ``first`` on; ``name`` is the default name."""
        lines = list(_lines(text, first))
        self._assigned = Counter(
            assignment for _, line, _ in lines for assignment in _assigned(line)
        )
        for number, line, body in lines:
            place = f"{self.label}, line {number}"
            if is_make and (match := MAKE.fullmatch(line.rstrip())):
                self._of_make(match)
                continue
            if is_make:
                line = re.sub(r"\$\((\w+)\)", r"${\1}", line.lstrip("\t@-")).replace("$$", "$")
            if re.match(r"\s*(echo|printf)\b", line):
                self._echo(line, place)
                continue
            if body is not None:
                self._keep_file(line, body, number)
            self._depth += bool(OPENS.match(line)) - len(CLOSES.findall(line))
            if begun := FUNCTION.match(line):
                self._function, self._end = begun[2] or begun[3], f"{begun[1]}}}"
            elif line.rstrip() == self._end:
                self._function = ""
            self._set_variables(line)
            if match := GCLOUD.search(line):
                self._command(line, match, place, name)

    def _command(self, line: str, match: re.Match[str], place: str, name: str) -> None:
        """Add the job of a command. A refused command is omitted with a remark."""
        kind, flags = call_of(match)
        words, _ = split(f"{flags} {line[match.end() :]}", self._value_of)
        try:
            job = job_of(options_of(kind, words, place), name, self._read)
        except CommandError as refused:
            self.left_out.append(f"{refused.message.rstrip('.')} ({place})")
            return
        if self._depth > 0:
            job.notes.append(Note("the command is in a branch or loop, but imported once", place))
        if self._function:
            what = f"the command is in function {self._function}, but imported once"
            job.notes.append(Note(what, place))
        if held := ASSIGNMENT.match(line.strip()):
            what = (
                f"the command is stored in {held[1]}: later changes of that variable are not "
                "imported"
            )
            job.notes.append(Note(what, place))
        self.jobs.append(job)

    def _set_variables(self, line: str) -> None:
        """Record the assignments of a line, except behind a condition."""
        depth, begin = self._depth, 0
        for part in [*PART.finditer(line), None]:
            if part and not part["end"]:
                continue
            command = line[begin : part.start() if part else None].strip(" \t{")
            if (match := ASSIGNMENT.fullmatch(command)) and depth <= 0:
                self._assign(match[1], match[3])
            depth += bool(part and part["end"] != ";")
            begin = part.end() if part else begin

    def _of_make(self, match: re.Match[str]) -> None:
        name, how, value = match.groups()
        if how in ("", ":"):  # the environment or another line changes any other one
            value = re.sub(r"\$\((\w+)\)", r"${\1}", value).strip()
            self._assign(name, f'"{value}"')

    def _assign(self, name: str, value: str) -> None:
        is_array = value.startswith("(")
        words, _ = split(value.strip("()") if is_array else value, self._value_of)
        values = words if is_array else words[:1] or [""]
        for match in () if is_array else map(ASSIGNMENT.fullmatch, words[1:]):
            if match is None:  # variables of one command alone
                return
            self._assign(match[1], f"'{match[3]}'")
        if self._assigned[name] == 1 and sum(map(len, values)) <= MAX_LENGTH:
            self._values[name] = values

    def _keep_file(self, line: str, body: tuple[str, bool], number: int) -> None:
        """Record the file or the program that a heredoc contains."""
        text, is_literal = body
        _, files = split(line, self._value_of)
        text = text if is_literal else self._expanded(text)
        self._write([STDIN] if not files and GCLOUD.search(line) else files, text, line)
        if not files and PYTHON.match(line):
            self.programs.append((text, number))

    def _echo(self, line: str, place: str) -> None:
        """Record the file that `echo` writes; ignore a command that is only printed."""
        words, files = split(line, self._value_of)
        self._write(files, " ".join(words[1:]) + "\n", line)
        if not files and GCLOUD.search(line):
            what = "a printed or piped gcloud command is not imported"
            self.left_out.append(f"{what} ({place})")

    def _write(self, files: list[str], text: str, line: str) -> None:
        """Record text that a line writes or appends to files."""
        is_more = any(">>" in part for part in QUOTED.split(line))
        for file in files:
            before = self.files.get(file, "") if is_more else ""
            self.files[file] = before[:MAX_LENGTH] + text

    def _expanded(self, text: str) -> str:
        """Return ``text`` with the values of its variables."""
        return VARIABLE.sub(lambda match: " ".join(self._value_of(match)), text)[:MAX_LENGTH]

    def _value_of(self, match: re.Match[str]) -> list[str]:
        """Return the value of a variable, or its placeholder."""
        if match["escaped"]:
            return [match["escaped"].strip("\n")]
        command = match["command"] if match["command"] is not None else match["old"]
        if command is not None:
            words = re.findall(r"[A-Za-z]\w*", command) or ["value"]
            return [REQUEST_ID if re.match(r"\s*date\b", command) else placeholder(words[-1])]
        if match["ansi"] is not None or match["prefix"]:
            return [placeholder(match["braced"] or "text")]
        name = match["braced"] or match["name"] or match["windows"]
        if match["more"] and not re.fullmatch(r"\[[@*]\]|:\?.*", match["more"]):
            return [placeholder(name)]  # one of the shell's operators
        name = {"@": "ARGUMENTS", "*": "ARGUMENTS"}.get(name, name)
        unknown = placeholder(f"arg_{name}" if name.isdigit() else name)
        known = self._values.get(name, [unknown])
        return known if match["more"] else known[:1]  # of an array, its first


def _assigned(line: str) -> Iterator[str]:
    """Yield each name that a line may assign."""
    for match in SETS.finditer(line):
        yield from (match[1] or match[2]).split()


def _lines(text: str, first: int) -> Iterator[tuple[int, str, tuple[str, bool] | None]]:
    """Yield each logical line with its number and the text of its heredoc."""
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        start, line = index, lines[index]
        index += 1
        if line.lstrip("\t @-").startswith("#"):
            continue
        parts = [line]
        while index < len(lines) and (
            parts[-1].endswith("\\")
            or (parts[-1].endswith(("^", "`")) and lines[index].lstrip().startswith("-"))
        ):
            parts[-1:] = [parts[-1][:-1], lines[index]]
            index += 1
        line = "".join(parts)
        while len(line) < MAX_LENGTH and re.match(r"\s*[\w ]+\+?=\(", line) and ")" not in line:
            if index >= len(lines):
                break
            line = f"{line} {lines[index].partition(' #')[0].strip()}"
            index += 1
        body = None
        if heredoc := HEREDOC.search(line):
            end = next((i for i in range(index, len(lines)) if lines[i].strip() == heredoc[3]),
                       len(lines))  # fmt: skip
            tabs = "\t" * bool(heredoc[1])
            body = ("".join(f"{row.lstrip(tabs)}\n" for row in lines[index:end]),
                    bool(heredoc[2]))  # fmt: skip
            index = end + 1
        elif quotes := [
            character for part in QUOTED.split(line) for character in part if character in "\"'"
        ]:
            end = next((i for i in range(index, len(lines)) if quotes[0] in lines[i]), -1) + 1
            line = "\n".join([line, *lines[index:end]])
            index = max(index, end)
        yield first + start, line, body


def split(
    line: str, value: Callable[[re.Match[str]], list[str]] | None = None
) -> tuple[list[str], list[str]]:
    """Return the words of a command, and the files that its output goes to.

    ``value`` gives the values of variables, whose quotes are none of the line's.
    """
    words, files, word, quote, index = list[str](), list[str](), "", "", 0
    begun, target = False, words
    while index < len(line):
        char, index = line[index], index + 1
        placeholder = PLACEHOLDER.match(line, index - 1)
        variable = value and quote != "'" and char in "$`%" and VARIABLE.match(line, index - 1)
        if placeholder:
            word, begun, index = word + placeholder[0], True, placeholder.end()
        elif variable:
            index = variable.end()
            assert value is not None
            parts = value(variable)
            if variable["more"] != "[@]":
                parts = [" ".join(parts)] if quote else " ".join(parts).split()
            for part in parts[:-1]:
                target.append(word + part)
                word = ""
            word, begun = word + "".join(parts[-1:]), begun or bool(parts)
        elif char == "\\" and quote != "'" and index < len(line):
            keeps = quote and line[index] not in '$`"\\'
            word, begun, index = word + (char if keeps else "") + line[index], True, index + 1
        elif char == quote:
            quote = ""
        elif quote or char not in "\"' \t\n;|&<>()#" or (char == "#" and begun):
            word, begun = word + char, True
        elif char in "\"'":
            quote, begun = char, True
        else:
            if begun and not (char in "<>" and word.isdigit()):
                target.append(word)
                target = words
            word, begun = "", False
            if char in ";|&()#":
                break
            if char in "<>":
                more = re.compile(r"[<>]*(&\d?)?-?").match(line, index)
                assert more is not None
                index = more.end()
                target = words if more[1] else files if char == ">" else []
    if begun:
        target.append(word)
    return words, files


def options_of(kind: str, words: list[str], place: str) -> dict[str, Any]:
    """Return the flags of a gcloud command with their values."""
    flags, left = list[tuple[str, str]](), list(words)
    unread = list[str]()
    while left:
        word = left.pop(0)
        word = "--quiet" if word == "-q" else word
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or word == "--":
            unread.append(word)
        elif equals:
            flags.append((name, value))
        elif name in SWITCHES or not left or (left[0].startswith("--") and name != "args"):
            flags.append((name, "true"))
        else:
            flags.append((name, left.pop(0)))
    flags = [(name, STDIN if (name, value) == ("config", "/dev/stdin") else value)
             for name, value in flags]  # fmt: skip
    return {"kind": kind, "flags": flags, "place": place, "unread": unread}


def _listed(value: str) -> list[str]:
    """Parse gcloud's list syntax: by commas, or by a delimiter between two carets."""
    if match := re.match(r"\^([^^]+)\^", value):
        return value[match.end() :].split(match[1])
    return value.split(",") if value else []


def _mapped(items: list[str]) -> dict[str, str]:
    return {key: item for key, _, item in (pair.partition("=") for pair in items)}


def job_of(options: dict[str, Any], name: str, read: CommandFiles) -> ImportedJob:
    """Return the job that gcloud creates from its flags and the file that it reads.

    Raises:
        CommandError: it makes none, or reads a file that is missing.
    """
    flags = dict[str, str](options["flags"])
    if not {"config", "worker-pool-spec"} & flags.keys():
        what = f"`{options['kind']} create` without --config or --worker-pool-spec"
        raise CommandError(f"{what} creates no job.")
    return _of_vertex(options, flags, name, read)


def _of_vertex(
    options: dict[str, Any], flags: dict[str, str], name: str, read: CommandFiles
) -> ImportedJob:
    place = options["place"]
    lists = {flag: [item for key, value in options["flags"] if key == flag
                    for item in _listed(value)] for flag in LISTS}  # fmt: skip
    pools = [value for flag, value in options["flags"] if flag == "worker-pool-spec"]
    display = flags.get("display-name") or name
    is_search = options["kind"] == "hp-tuning-jobs"
    base = read(flags["config"]) if "config" in flags else None
    if base is None:
        base = from_message({"workerPoolSpecs": []}, display)
        if "config" in flags:
            file = flags["config"] or "a file"
            what = f"gcloud reads the job file {file}, which is not beside the source"
            if not pools:
                raise CommandError(f"{what}: copy it there and import again.")
            base.remarks.append(f"{what} ({place})")
    base.name = key_of(display, name)
    if pools:
        uris = lists["python-package-uris"]
        base.spec["workerPoolSpecs"] = [_pool(pool, uris, base, place) for pool in pools]
    if pools or not base.in_snake_case:
        _set_words(base.spec["workerPoolSpecs"], lists)
    elif "args" in flags or "command" in flags:
        what = (
            "--args and --command are omitted: gcloud ignores them with a --config file in "
            "snake case"
        )
        base.remarks.append(f"{what} ({place})")
    for flag, field in SPEC_FIELDS.items():
        if flag in flags:
            base.spec[field] = True if flags[flag] == "true" else flags[flag]
    base.labels |= _mapped(lists["labels"])
    base.encryption_key = flags.get("kms-key", base.encryption_key)
    if is_search:
        for flag, field in (("max-trial-count", "maxTrialCount"),
                            ("parallel-trial-count", "parallelTrialCount")):  # fmt: skip
            if flag in flags or field not in base.study:
                base.study[field] = _number(flags.get(flag, "1"))
        if "algorithm" in flags:
            algorithm = flags["algorithm"].replace("-", "_").upper()
            base.study.setdefault("studySpec", {})["algorithm"] = ALGORITHMS.get(
                flags["algorithm"], algorithm
            )
        base.study["displayName"] = display
    base.region = flags.get("region", base.region)
    base.project = flags.get("project", "")
    known = READ | SPEC_FIELDS.keys() | {"kms-key"}
    base.remarks += [
        f"gcloud flag --{flag} is not imported ({place})"
        for flag in dict.fromkeys(flag for flag, _ in options["flags"]) if flag not in known
    ]  # fmt: skip
    if options["unread"]:
        base.remarks.append(f"`{' '.join(options['unread'])[:80]}` is not imported ({place})")
    return base


def _pool(value: str, uris: list[str], job: ImportedJob, place: str) -> Any:
    spec = _mapped(_listed(value))
    local = ("local-package-path", "output-image-uri", "script", "requirements", "extra-packages",
             "extra-dirs") if "local-package-path" in spec else ()  # fmt: skip
    unread = [f"{key}={item}".rstrip("=") for key, item in spec.items()
              if key not in (*POOL_KEYS, *local)]  # fmt: skip
    if unread:
        job.remarks.append(f"{', '.join(unread)} of --worker-pool-spec is not imported ({place})")
    if not any(spec.values()):
        return value if unread else {}
    machine: dict[str, Any] = {"machineType": spec.get("machine-type", "<MACHINE_TYPE>")}
    if accelerator := spec.get("accelerator-type"):
        machine["acceleratorType"] = accelerator.upper().replace("-", "_")
        machine["acceleratorCount"] = _number(spec.get("accelerator-count", "1"))
    pool: dict[str, Any] = {
        "replicaCount": _number(spec.get("replica-count", "1")), "machineSpec": machine
    }  # fmt: skip
    if "local-package-path" in spec:
        image = spec.get("output-image-uri", "<YOUR_IMAGE>")
        what = f"gcloud would build an image of {spec['local-package-path']}; an import builds none"
        job.remarks.append(f"{what} ({place}): build it by `vt images build`")
        spec["container-image-uri"] = image
    if "container-image-uri" in spec:
        pool["containerSpec"] = {"imageUri": spec["container-image-uri"]}
    elif "executor-image-uri" in spec or "python-module" in spec or uris:
        pool["pythonPackageSpec"] = {
            "executorImageUri": spec.get("executor-image-uri", ""),
            "packageUris": uris,
            "pythonModule": spec.get("python-module", ""),
        }
    return pool


def _set_words(pools: Any, lists: dict[str, list[str]]) -> None:
    """Set gcloud's --args and --command in every pool, also in those of a file."""
    for pool in pools if isinstance(pools, list) else [pools]:
        for task in ("containerSpec", "pythonPackageSpec"):
            if isinstance(pool, dict) and isinstance(pool.get(task), dict):
                names = ("args", "command") if task == "containerSpec" else ("args",)
                pool[task] |= {name: lists[name] for name in names if lists[name]}


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() and len(value) < 10 else value
