"""Lines of gcloud that make a job, in scripts, Makefiles and pages -> imported jobs.

They are ``gcloud ai custom-jobs create``, its ``hp-tuning-jobs``, and ``gcloud batch jobs submit``.

Nothing is run. What the flags mean is gcloud's command_lib/ai/custom_jobs/custom_jobs_util.py. A
variable that is set in a branch or loop is not known, unless it has a value before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from vertex_training.errors import CommandError
from vertex_training_cli.importing import batch_jobs, batch_messages
from vertex_training_cli.importing.imported import (
    REQUEST_ID,
    ImportedJob,
    Note,
    from_message,
    key_of,
)
from vertex_training_cli.importing.values import MAX_LENGTH, UnresolvedValue

#: Flags of gcloud's that stand between its words, as in `gcloud --project P ai …`.
_FLAGS: Final = (
    r"((?:\s+--?[a-z][\w-]{0,60}(?:=\S{1,300}"
    r"|\s+(?!-|(?:ai|alpha|batch|beta|create|custom-jobs|hp-tuning-jobs|jobs|submit)\s)\S{1,300})?)"
    r"{0,5})\s+"
)
#: A call of gcloud's in a line for a shell.
GCLOUD: Final = re.compile(
    rf"gcloud{_FLAGS}(?:(?:alpha|beta){_FLAGS})?"
    rf"(?:ai{_FLAGS}(?P<kind>custom-jobs|hp-tuning-jobs){_FLAGS}create"
    rf"|(?P<batch>batch){_FLAGS}jobs{_FLAGS}submit)\b"
)
BATCH: Final = "batch"
_KINDS: Final = frozenset(GCLOUD.groupindex.values())
#: The name by which gcloud reads what comes to it.
STDIN: Final = "-"
ALGORITHMS: Final = {"random": "RANDOM_SEARCH", "grid": "GRID_SEARCH"}
#: Flags of gcloud without a value.
SWITCHES: Final = ("enable-web-access", "enable-dashboard-access", "async", "quiet",
                   "no-external-ip-address")  # fmt: skip
#: Flags that are about the call alone, or are read elsewhere.
_READ: Final = (
    "display-name config region worker-pool-spec args command labels project format quiet "
    "async python-package-uris max-trial-count parallel-trial-count algorithm verbosity "
)
READ: Final = frozenset(_READ.split())
#: Flags whose values add up.
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
#: A part of a line, or what ends a command in it.
PART: Final = re.compile(
    r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|=\([^()]*\)|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\{[^}]*\}"
    r"|(?P<end>;|&&|\|\|?|(?<!>)&(?!>)|\)|\b(?:then|do|else)\b)|.",
    re.DOTALL,
)
#: `NAME ?= value` of a Makefile.
MAKE: Final = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*([:?+]?)=[ \t]*(.*)")
#: A variable that gets the text behind a line.
HELD: Final = re.compile(r"\s*(?:(?:export|local|readonly)\s+)?(\w+)=[\"']?\$\(\s*cat\s*<<")
#: The text behind a line: without its tabs (-), as it stands (a quote), and the line that ends it.
HEREDOC: Final = re.compile(r"<<(-?)\s*(['\"]?)(\w+)\2")
#: A variable, what a command prints, or a character that a backslash keeps from being one.
VARIABLE: Final = re.compile(
    r"\\(?P<escaped>[\\$`\n])"
    r"|\$'(?P<ansi>[^']*)'|\$\{(?P<prefix>[#!]?)(?P<braced>\w+)(?P<default>:?[-=][^{}]{0,500}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,9})?(?P<more>[^}]{0,200})\}"
    r"|\$(?P<name>[A-Za-z_]\w*|[0-9@*#])|%(?P<windows>[A-Za-z_]\w*)%|\$\((?P<command>(?:[^()]|\([^()]{0,300}\)){0,500})\)|`(?P<old>[^`]{0,500})`"
)
#: A variable that is used, or that grows.
USED: Final = re.compile(r"\$\{?(\w+)|\b(\w+)\+=")
#: Where a block of a script begins and ends.
OPENS: Final = re.compile(r"\s*(if|for|while|until|case|select)\b")
CLOSES: Final = re.compile(r"(?:^|[;\s])(fi|done|esac)\b")
#: The first line of a function, with its indentation and its name.
FUNCTION: Final = re.compile(
    r"(\s*)(?:function\s+([\w:-]+)(?:\s*\(\s*\))?|([\w:-]+)\s*\(\s*\))\s*\{"
)
#: The first word of a command, where a function may be called.
CALLED: Final = re.compile(
    r"(?m)(?:^|[;&|({`]|\b(?:if|then|do|else|while|until)\b)[ \t]*"
    r"([A-Za-z_][\w:-]*)(?![\w:=(-]| *\()"
)
PLACEHOLDER: Final = re.compile(r"<[A-Z0-9_]+>")
#: What of a line is certainly between quotes, and a comment behind it.
QUOTED: Final = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|(?:^|\s)#.*", re.DOTALL)
PYTHON: Final = re.compile(r"\s*(?:\w+=\S*\s+)*python[\d.]*\b")


def call_of(match: re.Match[str]) -> tuple[str, str]:
    """Which kind of job a call makes, and the flags that stand between its words."""
    flags = (text for name, text in enumerate(match.groups(), 1) if name not in _KINDS)
    return match["kind"] or match["batch"], " ".join(filter(None, flags))


class CommandFiles(Protocol):
    """Files that gcloud gets: those that a source writes, and those beside it."""

    def config(self, file: str) -> ImportedJob | None:
        """The job of Vertex AI in a file, or None."""

    def data(self, file: str) -> bytes | None:
        """What is in a file, or None if there is none."""


class _NoFiles:
    """Where gcloud reads no file."""

    def config(self, file: str) -> None: ...

    def data(self, file: str) -> None: ...


NO_FILES: Final[CommandFiles] = _NoFiles()


class Script:
    """Reads the lines of a script in their order, and collects the jobs that they make.

    ``read`` has the files that gcloud gets: those that the script writes into ``files``, too.
    """

    def __init__(
        self, label: str, read: CommandFiles, *, files: dict[str, str] | None = None
    ) -> None:
        self.label, self.files = label, files if files is not None else {}
        self.jobs = list[ImportedJob]()
        self.left_out = list[str]()
        """Why a line that makes a job is none here, one sentence each."""
        self.programs = list[tuple[str, int]]()
        """Python that it runs: the text, and the number of lines before it."""
        self._read = read
        self._values: dict[str, list[str]] = {}
        self._commands: dict[str, ImportedJob] = {}
        """Variables that hold a command, and the job that it makes."""
        self._notes: dict[str, set[Note]] = {}
        self._depth = 0
        self._function, self._end = "", ""
        """The function that is read, and the line that ends it."""

    def visit(self, text: str, name: str, *, is_make: bool = False, first: int = 1) -> None:
        """Read a script from its line ``first`` on; ``name`` is for a nameless job."""
        printed = list[ImportedJob]()
        self._called = Counter(CALLED.findall(text))
        for number, line, body in _lines(text, first):
            place = f"{self.label}, line {number}"
            if is_make and (match := MAKE.fullmatch(line.rstrip())):
                self._of_make(match, place)
                continue
            if is_make:
                line = re.sub(r"\$\((\w+)\)", r"${\1}", line.lstrip("\t@-")).replace("$$", "$")
            if re.match(r"\s*(echo|printf)\b", line) and not self._is_piped(line):
                printed += self._echo(line, place, name)
                continue
            if body is not None and self._keep_file(line, body, number):
                continue
            self._depth += bool(OPENS.match(line)) - len(CLOSES.findall(line))
            if begun := FUNCTION.match(line):
                self._function, self._end = begun[2] or begun[3], f"{begun[1]}}}"
            elif line.rstrip() == self._end:
                self._function = ""
            self._set_variables(line, place)
            self._tell_added(line, place)
            if found := GCLOUD.search(line):
                notes, (kind, flags) = self._of_function(place), call_of(found)
                words, _ = split(f"{flags} {line[found.end() :]}", self._value_of(notes))
                made = self._job(kind, words, place, name, notes)
                if held := ASSIGNMENT.match(line.strip()):
                    self._commands |= dict.fromkeys([held[1]], *made) if made else {}
                self.jobs += made
            self.files.pop(STDIN, None)
        self.jobs += [] if self.jobs else printed

    def _tell_added(self, line: str, place: str) -> None:
        """What a line adds to a command in a variable is said of its job."""
        for used in USED.finditer(line):
            if job := self._commands.get(used[1] or used[2]):
                if re.search(r"\s--[a-z]", line[used.end() :]):
                    job.notes.append(Note(f"`{line.strip()[:80]}` is not read", place))
                return

    def _of_function(self, place: str) -> set[Note]:
        """What is said of a job in a function that several lines call."""
        if self._called[self._function] < 2:
            return set()
        what = f"it is made in {self._function}, which several lines call and which is read once"
        return {Note(what, place)}

    def _is_piped(self, line: str) -> bool:
        """Whether a line prints what a gcloud reads behind it; keeps that."""
        words, ends = split(line, self._value_of(set()))[0], GCLOUD.search(line)
        if not ends or not any("|" in part for part in QUOTED.split(line[: ends.start()])):
            return False
        self.files[STDIN] = " ".join(words[1:]) + "\n"
        return True

    def _set_variables(self, line: str, place: str) -> None:
        """Assignments of a line; one behind a condition may not hold."""
        depth, begin = self._depth, 0
        for part in [*PART.finditer(line), None]:
            if part and not part["end"]:
                continue
            command = line[begin : part.start() if part else None].strip(" \t{")
            if match := ASSIGNMENT.fullmatch(command):
                self._assign(match[1], match[2], match[3], place)
            elif command.startswith("unset "):
                self._values |= {name: [""] for name in command.split()[1:]}
            self._depth += bool(part and part["end"] != ";")
            begin = part.end() if part else begin
        self._depth = depth

    def _of_make(self, match: re.Match[str], place: str) -> None:
        name, how, value = match.groups()
        value = re.sub(r"\$\((\w+)\)", r"${\1}", value).strip()
        self._assign(name, "", f'"${{{name}}} {value}"' if how == "+" else f'"{value}"', place)
        if how == "?":
            self._say(name, Note(f"{value!r} is the default of {name}", place, True))

    def _say(self, name: str, note: Note) -> None:
        self._notes.setdefault(name, set()).add(note)

    def _assign(self, name: str, more: str, value: str, place: str) -> None:
        notes = set[Note]()
        is_array = value.startswith("(")
        words, _ = split(value.strip("()") if is_array else value, self._value_of(notes))
        found = words if is_array else words[:1] or [""]
        for match in () if is_array else map(ASSIGNMENT.fullmatch, words[1:]):
            if match is None:  # variables of one command alone
                return
            self._assign(match[1], match[2], f"'{match[3]}'", place)
        if more:
            before = self._values.get(name, [])
            found = [*before, *found] if is_array else ["".join([*before[:1], *found])]
        if self._depth > 0 and self._values.get(name) != found:
            known = " ".join(self._values.setdefault(name, [str(UnresolvedValue(name))]))
            what = f"{name} is {known!r} unless a branch or loop sets it"
            self._say(name, Note(what, place, known != str(UnresolvedValue(name))))
            return
        is_long = sum(map(len, found)) > MAX_LENGTH
        self._values[name] = [str(UnresolvedValue(name))] if is_long else found
        if not more:
            self._notes[name] = set()
        for note in notes:
            self._say(name, note)

    def _keep_file(self, line: str, body: tuple[str, bool], number: int) -> bool:
        """The file that a heredoc writes, or the program that it is; whether it is a variable."""
        text, is_literal = body
        notes = set[Note]()
        _, files = split(line, self._value_of(notes))
        text = text if is_literal else self._expanded(text, notes)
        if held := HELD.match(line):
            self._values[held[1]], self._notes[held[1]] = [text], notes
            return True
        if not files and GCLOUD.search(line):
            files = [STDIN]
        self._write(files, text, line, notes)
        if not files and PYTHON.match(line):
            self.programs.append((text, number))
        return False

    def _echo(self, line: str, place: str, name: str) -> list[ImportedJob]:
        """Keep the file that a line writes; the job of the command that it prints."""
        notes = set[Note]()
        words, files = split(line, self._value_of(notes))
        text = " ".join(words[1:])
        self._write(files, f"{text}\n", line, notes)
        if files or not (found := GCLOUD.search(text)):
            return []
        notes.add(Note("the script prints this command, and does not run it", place))
        kind, flags = call_of(found)
        words = split(f"{flags} {text[found.end() :]}")[0]
        return self._job(kind, words, place, name, notes)

    def _write(self, files: list[str], text: str, line: str, notes: set[Note]) -> None:
        """Keep what a line writes into files, or behind what they have."""
        is_more = any(">>" in part for part in QUOTED.split(line))
        for file in files:
            before, of = self.files.get(file, ""), f"\0{file}"
            self.files[file] = before[:MAX_LENGTH] + text if is_more else text
            self._notes[of] = notes | self._notes.get(of, set()) if is_more else notes

    def _expanded(self, text: str, notes: set[Note]) -> str:
        """``text`` with the values of its variables."""
        value = self._value_of(notes)
        return VARIABLE.sub(lambda match: " ".join(value(match)), text)[:MAX_LENGTH]

    def _value_of(self, notes: set[Note]) -> Callable[[re.Match[str]], list[str]]:
        """The values of variables; what has to be said of them goes to ``notes``."""

        def value(match: re.Match[str]) -> list[str]:
            if match["escaped"]:
                return [match["escaped"].strip("\n")]
            command = match["command"] if match["command"] is not None else match["old"]
            if command is not None:
                if re.match(r"\s*date\b", command):
                    return [REQUEST_ID]
                words = re.findall(r"[A-Za-z]\w*", command) or ["value"]
                return [str(UnresolvedValue(words[-1]))]
            if match["ansi"] is not None or match["prefix"]:
                return [str(UnresolvedValue(match["braced"] or "text"))]
            name = match["braced"] or match["name"] or match["windows"]
            if match["default"] and name not in self._values:
                default = self._expanded(match["default"].lstrip(":-="), notes).strip("\"'")
                notes.add(Note(f"{default!r} is the default of {name}", self.label, True))
                return [default]
            if match["more"] and not re.fullmatch(r"\[[@*]\]|:\?.*", match["more"]):
                return [str(UnresolvedValue(name))]  # one of the shell's operators
            notes.update(self._notes.get(name, ()))
            name = {"@": "ARGUMENTS", "*": "ARGUMENTS"}.get(name, name)
            unknown = str(UnresolvedValue(f"arg_{name}" if name.isdigit() else name))
            known = self._values.get(name, [unknown])
            return known if match["more"] else known[:1]  # of an array, its first

        return value

    def _job(
        self, kind: str, words: list[str], place: str, name: str, notes: set[Note]
    ) -> list[ImportedJob]:
        """The job of a command; none of one that is told as left out."""
        options = options_of(kind, words, place)
        for file in [value for flag, value in options["flags"] if flag == "config"]:
            notes |= self._notes.get(f"\0{file}", set())
        try:
            job = job_of(options, name, self._read)
        except CommandError as refused:
            self.left_out.append(f"{refused.message.rstrip('.')} ({place})")
            return []
        if self._depth > 0:
            notes.add(Note("it is made in a branch or loop, which is read once", place))
        job.notes += sorted(notes)
        return [job]


def _lines(text: str, first: int) -> Iterator[tuple[int, str, tuple[str, bool] | None]]:
    """Each logical line with its number, and the text of the heredoc that it begins."""
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
            body = ("".join(f"{each.lstrip(tabs)}\n" for each in lines[index:end]),
                    bool(heredoc[2]))  # fmt: skip
            index = end + 1
        elif quotes := [each for part in QUOTED.split(line) for each in part if each in "\"'"]:
            end = next((i for i in range(index, len(lines)) if quotes[0] in lines[i]), -1) + 1
            line = "\n".join([line, *lines[index:end]])
            index = max(index, end)
        yield first + start, line, body


def split(
    line: str, value: Callable[[re.Match[str]], list[str]] | None = None
) -> tuple[list[str], list[str]]:
    """The words of a command up to its end, and the files that its output goes to.

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
    """Flags of a call of gcloud with their values."""
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
    """gcloud's list: by commas, or by what stands between two carets before it."""
    if match := re.match(r"\^([^^]+)\^", value):
        return value[match.end() :].split(match[1])
    return value.split(",") if value else []


def _mapped(items: list[str]) -> dict[str, str]:
    return {key: item for key, _, item in (each.partition("=") for each in items)}


def job_of(options: dict[str, Any], name: str, read: CommandFiles) -> ImportedJob:
    """The job that gcloud makes of its flags, and of the file that it reads.

    Raises:
        CommandError: it is a job of Batch that cannot be imported.
    """
    if options["kind"] == BATCH:
        message = batch_messages.of_command(options["flags"], options["unread"], read.data)
        return batch_jobs.imported(message, name)
    return _of_vertex(options, name, read)


def _of_vertex(options: dict[str, Any], name: str, read: CommandFiles) -> ImportedJob:
    given, place = dict[str, str](options["flags"]), options["place"]
    lists = {flag: [item for each, value in options["flags"] if each == flag
                    for item in _listed(value)] for flag in LISTS}  # fmt: skip
    pools = [value for flag, value in options["flags"] if flag == "worker-pool-spec"]
    display = given.get("display-name") or name
    is_search = options["kind"] == "hp-tuning-jobs"
    base = read.config(given["config"]) if "config" in given else None
    is_missing = base is None and "config" in given
    if base is None:
        base = from_message({"workerPoolSpecs": []}, display)
        if is_missing:
            what = f"gcloud reads {given['config'] or 'a file'}, which is not beside the source"
            words = [f"--{flag}={','.join(lists[flag])}" for flag in ("command", "args")
                     if flag in given]  # fmt: skip
            what += f": each of its pools gets {' '.join(words)}" if words else ""
            base.remarks.append(f"{what} ({place})")
    base.name = key_of(display, name)
    if pools:
        uris = lists["python-package-uris"]
        base.spec["workerPoolSpecs"] = [_pool(each, uris, base, place) for each in pools]
    if pools or not base.in_snake_case:
        _set_words(base.spec["workerPoolSpecs"], lists)
    elif "args" in given or "command" in given:
        what = "gcloud leaves out --args and --command beside a file in snake case"
        base.remarks.append(f"{what} ({place})")
    for flag, field in SPEC_FIELDS.items():
        if flag in given:
            base.spec[field] = True if given[flag] == "true" else given[flag]
    base.labels |= _mapped(lists["labels"])
    base.encryption_key = given.get("kms-key", base.encryption_key)
    if is_search:
        for flag, field in (("max-trial-count", "maxTrialCount"),
                            ("parallel-trial-count", "parallelTrialCount")):  # fmt: skip
            if flag in given or field not in base.study:
                default = str(UnresolvedValue(flag)) if is_missing else "1"
                base.study[field] = _number(given.get(flag, default))
        if "algorithm" in given:
            algorithm = given["algorithm"].replace("-", "_").upper()
            base.study.setdefault("studySpec", {})["algorithm"] = ALGORITHMS.get(
                given["algorithm"], algorithm
            )
        base.study["displayName"] = display
    base.region = given.get("region", base.region)
    base.project = given.get("project", "")
    known = READ | SPEC_FIELDS.keys() | {"kms-key"}
    base.remarks += [
        f"gcloud's --{flag} is not read ({place})"
        for flag in dict.fromkeys(flag for flag, _ in options["flags"]) if flag not in known
    ]  # fmt: skip
    if options["unread"]:
        base.remarks.append(f"`{' '.join(options['unread'])[:80]}` is not read ({place})")
    return base


def _pool(value: str, uris: list[str], job: ImportedJob, place: str) -> dict[str, Any]:
    spec = _mapped(_listed(value))
    local = ("local-package-path", "output-image-uri", "script", "requirements", "extra-packages",
             "extra-dirs") if "local-package-path" in spec else ()  # fmt: skip
    unread = [f"{key}={item}".rstrip("=") for key, item in spec.items()
              if key not in (*POOL_KEYS, *local)]  # fmt: skip
    if unread:
        job.remarks.append(f"{', '.join(unread)} of --worker-pool-spec is not read ({place})")
    if not any(spec.values()):
        return {}
    machine: dict[str, Any] = {"machineType": spec.get("machine-type", "<MACHINE_TYPE>")}
    if accelerator := spec.get("accelerator-type"):
        machine["acceleratorType"] = accelerator.upper().replace("-", "_")
        machine["acceleratorCount"] = _number(spec.get("accelerator-count", "1"))
    pool: dict[str, Any] = {
        "replicaCount": _number(spec.get("replica-count", "1")), "machineSpec": machine
    }  # fmt: skip
    if "local-package-path" in spec:
        image = spec.get("output-image-uri", "<YOUR_IMAGE>")
        what = f"gcloud builds an image of {spec['local-package-path']}, an import does not"
        job.remarks.append(f"{what} ({place}): `vt images build` makes one")
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
    """gcloud's --args and --command, which are those of every pool, of a file as well."""
    for pool in pools if isinstance(pools, list) else [pools]:
        for task in ("containerSpec", "pythonPackageSpec"):
            if isinstance(pool, dict) and isinstance(pool.get(task), dict):
                names = ("args", "command") if task == "containerSpec" else ("args",)
                pool[task] |= {name: lists[name] for name in names if lists[name]}


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() and len(value) < 10 else value
