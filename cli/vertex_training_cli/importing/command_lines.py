"""Convert ``gcloud ai custom-jobs create`` and ``hp-tuning-jobs create`` in scripts to jobs.

No command is run: only literals and variables with one assignment are read. gcloud's
command_lib/ai/custom_jobs/custom_jobs_util.py defines the flags.
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
_FLAGS: Final = r"(?:\s+-\S{1,300}(?:\s+(?!-|(?:ai|create)\s)\w\S{0,300})?){0,5}\s+"
#: A gcloud command in a shell line that creates a job.
GCLOUD: Final = re.compile(
    rf"gcloud{_FLAGS}(?:(?:alpha|beta){_FLAGS})?"
    rf"ai{_FLAGS}(?:custom-jobs|hp-tuning-jobs){_FLAGS}create\b"
)
KINDS: Final = ("custom-jobs", "hp-tuning-jobs")
STDIN: Final = "-"
ALGORITHMS: Final = {"random": "RANDOM_SEARCH", "grid": "GRID_SEARCH"}
#: Flags of gcloud without a value.
SWITCHES: Final = ("enable-web-access", "enable-dashboard-access", "async", "quiet")
#: Flags that configure the call, not the job.
OF_CALL: Final = ("format", "quiet", "async", "verbosity")
#: Flags that may be repeated. A job gets the values of all repetitions.
LISTS: Final = ("args", "command", "labels", "python-package-uris")
#: Flags, each with the field of the job's spec.
SPEC_FIELDS: Final = {
    "network": "network",
    "service-account": "serviceAccount",
    "enable-web-access": "enableWebAccess",
    "enable-dashboard-access": "enableDashboardAccess",
    "persistent-resource-id": "persistentResourceId",
}
#: Keys of a worker pool for which gcloud builds an image from local files.
LOCAL_KEYS: Final = ("output-image-uri", "script", "requirements", "extra-packages", "extra-dirs")
ASSIGNMENT: Final = re.compile(
    r"(?:(?:export|readonly|local|declare(?: -\w)?|typeset)\s+)?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL
)
#: A variable, a command substitution, or a text with escapes.
VARIABLE: Final = (
    r"\$\{[^{}]{0,500}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,9}\}|\$(?:[A-Za-z_]\w*|[0-9@*#])"
    r"|%[A-Za-z_]\w*%|\$'[^']*'|\$\((?:[^()]|\([^()]{0,300}\)){0,500}\)|`[^`]{0,500}`"
)
#: A part of a shell line.
TOKEN: Final = re.compile(
    r"(?P<open><[A-Z0-9_]+>)|\\(?P<escaped>.)|'(?P<literal>[^']*)'"
    rf"|\"(?P<quoted>(?:\\.|[^\"\\])*)\"|(?P<variable>{VARIABLE})"
    r"|(?P<space>\s+)|(?P<redirect>(?:(?<!\S)\d)?[<>]+(?:&\d?-?)?)|(?P<end>[;|&()]+|(?<!\S)#.*)|.",
    re.DOTALL,
)
#: `NAME ?= value` of a Makefile.
MAKE: Final = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*([:?+]?)=[ \t]*(.*)")
#: Start of a heredoc. `-` removes leading tabs, a quote prevents the expansion of variables.
#: The last group is the line that ends the text.
HEREDOC: Final = re.compile(r"<<(-?)\s*(['\"]?)(\w+)\2")
#: Beginning and end of a block or a function in a script.
OPENS: Final = re.compile(
    r"\s*(?:(?:if|for|while|until|case|select)\b|(?:function\s+)?[\w:-]+\s*\(\)\s*\{|function\b.*\{)"
)
CLOSES: Final = re.compile(r"(?:^|[;\s])(?:fi|done|esac)\b|^\s*\}\s*$")
#: A variable that a line may change, by an assignment or by a command such as `read` or `unset`.
SETS: Final = re.compile(
    r"(?<![^\s;&|({`])([A-Za-z_]\w*)(?:\[\w*\])?[ \t]*[:?+]?="
    r"|\b(?:for|read|unset|select|getopts\s+\S+)\s+((?:-\w+\s+)*(?:[A-Za-z_]\w*[ \t]*){1,20})"
)
#: Quoted texts, escaped characters and comments in a line.
QUOTED: Final = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|(?:^|\s)#.*", re.DOTALL)
#: Python code in a heredoc that creates a job.
PYTHON: Final = re.compile(r"\s*(?:\w+=\S*\s+)*python[\d.]*\b")
MAKES: Final = re.compile(r"(Custom|Training|Tuning)Job\(|create_\w+_job\(|(custom|hp-tuning)-jobs")

CommandFiles = Callable[[str], "ImportedJob | None"]
"""Function that returns the job in a file that gcloud reads, or None."""


class Script:
    """Reads the lines of a script in order, and collects the jobs that its commands create.

    A variable has a value if the script assigns the variable once, outside of branches and loops.
    ``read`` returns the job in a file that gcloud reads. ``files`` gets the files of the script.
    """

    def __init__(
        self, label: str, read: CommandFiles, *, files: dict[str, str] | None = None
    ) -> None:
        self.label, self.files = label, files if files is not None else {}
        self.jobs = list[ImportedJob]()
        self.left_out = list[str]()
        """Reasons why a command is omitted, one sentence each."""
        self._read = read
        self._values: dict[str, str] = {}
        self._assigned = Counter[str]()
        self._depth = 0

    def visit(self, text: str, name: str, *, is_make: bool = False, first: int = 1) -> None:
        """Read a script that begins at line ``first``. ``name`` is the default name of a job."""
        lines = list(_lines(text, first))
        self._assigned = Counter(
            name for _, line, _ in lines for match in SETS.finditer(line)
            for name in (match[1] or match[2]).split()
        )  # fmt: skip
        for number, line, body in lines:
            place = f"{self.label}, line {number}"
            if is_make and (match := MAKE.fullmatch(line.rstrip())):
                if match[2] in ("", ":"):  # `?=` and `+=` depend on other values
                    self._assign(f'{match[1]}="{_of_make(match[3]).strip()}"')
                continue
            if is_make:
                line = _of_make(line.lstrip("\t@-")).replace("$$", "$")
            if body is not None:
                self._keep_file(line, body, place)
            self._depth += bool(OPENS.match(line)) - len(CLOSES.findall(line))
            if re.match(r"\s*(echo|printf)\b", line):
                self._echo(line, place)
                continue
            if self._depth <= 0:
                self._assign(line)
            if match := GCLOUD.search(line):
                self._command(line[match.start() :], line[: match.start()], place, name)

    def _command(self, command: str, before: str, place: str, name: str) -> None:
        try:
            flags = options_of(split(command, self._value_of)[0], place)
            job = job_of(flags, name, self._read)
        except CommandError as refused:
            self.left_out.append(f"{refused.message.rstrip('.')} ({place})")
            return
        if self._depth > 0:
            what = "the command is in a branch, loop or function, but it is imported exactly once"
            job.notes.append(Note(what, place))
        if held := ASSIGNMENT.match(before.strip()):
            what = (
                f"the command is stored in variable {held[1]}, whose later changes are not imported"
            )
            job.notes.append(Note(what, place))
        self.jobs.append(job)

    def _assign(self, line: str) -> None:
        words = split(line, self._value_of)[0]
        words = words[1:] if words[:1] in (["export"], ["readonly"]) else words
        matches = [match for word in words if (match := ASSIGNMENT.fullmatch(word))]
        for match in matches if len(matches) == len(words) and "=(" not in line else []:
            if self._assigned[match[1]] == 1:
                self._values[match[1]] = match[3][:MAX_LENGTH]

    def _keep_file(self, line: str, body: tuple[str, bool], place: str) -> None:
        text, is_literal = body
        files = split(line, self._value_of)[1]
        text = text if is_literal else _expanded(text, self._value_of)[:MAX_LENGTH]
        self._write([STDIN] if not files and GCLOUD.search(line) else files, text, line)
        if not files and PYTHON.match(line) and MAKES.search(text):
            self.left_out.append(f"Python code within the script is not imported ({place})")

    def _echo(self, line: str, place: str) -> None:
        words, files = split(line, self._value_of)
        self._write(files, " ".join(words[1:]) + "\n", line)
        if not files and GCLOUD.search(line):
            what = "a printed or piped gcloud command is not imported"
            self.left_out.append(f"{what} ({place})")

    def _write(self, files: list[str], text: str, line: str) -> None:
        is_more = any(">>" in part for part in QUOTED.split(line))
        for file in files:
            before = self.files.get(file, "") if is_more else ""
            self.files[file] = before[:MAX_LENGTH] + text

    def _value_of(self, text: str) -> str:
        words = re.findall(r"[A-Za-z]\w*", text) or ["value"]
        if text.startswith(("$(", "`")):
            return REQUEST_ID if words[0] == "date" else placeholder(words[-1])
        if text.startswith("$'"):
            return placeholder("text")
        if text in ("$@", "$*", "${@}", "${*}"):
            return placeholder("arguments")
        name = "".join(re.findall(r"\w+", text)[:1])
        is_plain = text.strip("${}%") == name and name in self._values
        unknown = placeholder(f"arg_{name}" if name.isdigit() else name)
        return self._values[name] if is_plain else unknown


def _of_make(line: str) -> str:
    return re.sub(r"\$\((\w+)\)", r"${\1}", line)


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


def split(line: str, value: Callable[[str], str] = str) -> tuple[list[str], list[str]]:
    """Return the words of the first command in a line, and the files that its output goes to."""
    words, files, word, is_word = list[str](), list[str](), "", False
    target = words
    for token in TOKEN.finditer(f"{line} "):
        kind = token.lastgroup
        if kind in ("space", "redirect", "end"):
            if is_word:
                target.append(word)
                target = words
            word, is_word = "", False
            if kind == "redirect" and "&" not in token[0]:
                target = files if ">" in token[0] else []
            if kind == "end":
                break
            continue
        is_word = True
        if kind == "variable":
            parts = value(token[0]).split()
            target += [word + part if n == 0 else part for n, part in enumerate(parts[:-1])]
            word = "".join(parts[-1:]) if len(parts) > 1 else word + "".join(parts)
            is_word = bool(word)
        elif kind == "quoted":
            word += _expanded(token["quoted"], value, '"')
        elif kind:
            word += token["open"] or token[kind].strip("\n")
        else:
            word += token[0]
    return words, files


def _expanded(text: str, value: Callable[[str], str], quotes: str = "") -> str:
    return re.sub(
        rf"\\(?P<escaped>[\\$`\n{quotes}])|{VARIABLE}",
        lambda match: match["escaped"].strip("\n") if match["escaped"] else value(match[0]),
        text,
    )


def options_of(words: list[str], place: str) -> dict[str, Any]:
    """Return the flags of a gcloud command with their values."""
    flags, left = list[tuple[str, str]](), words[1:]
    kind, unread = "", list[str]()
    while left:
        word = left.pop(0)
        word = "--quiet" if word == "-q" else word
        name, equals, value = word.removeprefix("--").partition("=")
        if word in KINDS:
            kind = word
        elif not word.startswith("--") or word == "--":
            unread += [] if word in ("alpha", "beta", "ai", "create") else [word]
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
    """Parse gcloud's list syntax: separated by commas, or by a delimiter between two carets."""
    if match := re.match(r"\^([^^]+)\^", value):
        return value[match.end() :].split(match[1])
    return value.split(",") if value else []


def _mapped(items: list[str]) -> dict[str, str]:
    return {key: item for key, _, item in (pair.partition("=") for pair in items)}


def job_of(options: dict[str, Any], name: str, read: CommandFiles) -> ImportedJob:
    """Return the job that gcloud would create from these flags and the file that they name."""
    flags, place = dict[str, str](options["flags"]), options["place"]
    pools = [value for flag, value in options["flags"] if flag == "worker-pool-spec"]
    lists = {flag: [item for key, value in options["flags"] if key == flag
                    for item in _listed(value)] for flag in LISTS}  # fmt: skip
    for flag in ("worker-pool-spec", *LISTS, *OF_CALL):
        flags.pop(flag, None)
    if not pools and "config" not in flags:
        raise CommandError(
            f"`{options['kind']} create` creates no job without --config or --worker-pool-spec."
        )
    display = flags.pop("display-name", "") or name
    job = _base(flags, bool(pools), display, place, read)
    job.name = key_of(display, name)
    if pools:
        uris = lists["python-package-uris"]
        job.spec["workerPoolSpecs"] = [_pool(pool, uris, job, place) for pool in pools]
    if pools or not job.in_snake_case:
        arguments = {name: lists[name] for name in ("args", "command") if lists[name]}
        for task in job.tasks("containerSpec"):
            task |= arguments
        arguments.pop("command", None)
        for task in job.tasks("pythonPackageSpec"):
            task |= arguments
    elif lists["args"] or lists["command"]:
        what = "--args and --command are not imported: gcloud ignores them if the --config file"
        job.remarks.append(f"{what} has names in snake case ({place})")
    for flag, field in SPEC_FIELDS.items():
        if flag in flags:
            value = flags.pop(flag)
            job.spec[field] = True if value == "true" else value
    job.labels |= _mapped(lists["labels"])
    job.encryption_key = flags.pop("kms-key", job.encryption_key)
    if options["kind"] == "hp-tuning-jobs":
        for flag, field in (("max-trial-count", "maxTrialCount"),
                            ("parallel-trial-count", "parallelTrialCount")):  # fmt: skip
            if flag in flags or field not in job.study:
                job.study[field] = _number(flags.pop(flag, "1"))
        if algorithm := flags.pop("algorithm", ""):
            value = ALGORITHMS.get(algorithm, algorithm.replace("-", "_").upper())
            job.study.setdefault("studySpec", {})["algorithm"] = value
        job.study["displayName"] = display
    job.region, job.project = flags.pop("region", job.region), flags.pop("project", "")
    job.remarks += [f"gcloud flag --{flag} is not imported ({place})" for flag in flags]
    if options["unread"]:
        job.remarks.append(f"`{' '.join(options['unread'])[:80]}` is not imported ({place})")
    return job


def _base(
    flags: dict[str, str], has_pools: bool, display: str, place: str, read: CommandFiles
) -> ImportedJob:
    file = flags.pop("config", None)
    job = None if file is None else read(file)
    if job is not None:
        return job
    job = from_message({"workerPoolSpecs": []}, display)
    if file is not None:
        what = f"the job file of --config, {file or 'a file'}, is not beside the source"
        if not has_pools:
            raise CommandError(f"{what}. Copy the file there, then import again.")
        job.remarks.append(f"{what} ({place})")
    return job


def _pool(value: str, uris: list[str], job: ImportedJob, place: str) -> Any:
    spec = _mapped(_listed(value))
    is_empty = not any(spec.values())
    machine: dict[str, Any] = {"machineType": spec.pop("machine-type", "<MACHINE_TYPE>")}
    accelerator, count = spec.pop("accelerator-type", ""), spec.pop("accelerator-count", "1")
    if accelerator:
        machine["acceleratorType"] = accelerator.upper().replace("-", "_")
        machine["acceleratorCount"] = _number(count)
    pool: dict[str, Any] = {
        "replicaCount": _number(spec.pop("replica-count", "1")), "machineSpec": machine
    }  # fmt: skip
    if path := spec.pop("local-package-path", ""):
        local = {key: spec.pop(key, "") for key in LOCAL_KEYS}
        what = f"gcloud builds an image from {path}, but `vt import` builds no image"
        job.remarks.append(f"{what} ({place}): use `vt images build`")
        spec["container-image-uri"] = local["output-image-uri"] or "<YOUR_IMAGE>"
    image, executor = spec.pop("container-image-uri", ""), spec.pop("executor-image-uri", "")
    module = spec.pop("python-module", "")
    if image:
        pool["containerSpec"] = {"imageUri": image}
    elif executor or module or uris:
        package = {"executorImageUri": executor, "packageUris": uris, "pythonModule": module}
        pool["pythonPackageSpec"] = package
    unread = [f"{key}={item}".rstrip("=") for key, item in spec.items()]
    if unread:
        job.remarks.append(f"{', '.join(unread)} of --worker-pool-spec is not imported ({place})")
    if is_empty:
        return value if unread else {}
    return pool


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() and len(value) < 10 else value
