"""Lines with ``gcloud ai custom-jobs create`` in scripts, Makefiles and pages -> imported jobs.

Nothing is run. What the flags mean is gcloud's command_lib/ai/custom_jobs/custom_jobs_util.py. A
variable that is set in a branch or loop is not known, unless it has a value before.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any, Final

from vertex_training_cli.importing.imported import (
    REQUEST_ID,
    ImportedJob,
    Note,
    from_message,
    key_of,
)
from vertex_training_cli.importing.values import MAX_LENGTH, Unknown

#: A call of gcloud's in a line for a shell.
GCLOUD: Final = re.compile(
    r"gcloud\s+(?:(?:alpha|beta)\s+)?ai\s+(custom-jobs|hp-tuning-jobs)\s+create\b"
)
ALGORITHMS: Final = {"random": "RANDOM_SEARCH", "grid": "GRID_SEARCH"}
#: Flags of gcloud without a value.
SWITCHES: Final = ("enable-web-access", "enable-dashboard-access", "async", "quiet", "verbosity")
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
#: An assignment behind something else in its line.
INSIDE: Final = re.compile(
    r"(?:[;&|)]|\b(?:then|do|else|export|local))\s*([A-Za-z_]\w*)(\+?)=([^\s;&|]*)"
)
#: `NAME ?= value` of a Makefile.
MAKE: Final = re.compile(r"(?:export\s+)?([A-Za-z_]\w*)\s*([:?+]?)=[ \t]*(.*)")
HEREDOC: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
FILE_OF_HEREDOC: Final = re.compile(r">\s*[\"']?([^\s\"'<>|]+)")
VARIABLE: Final = re.compile(
    r"\$\{(?P<braced>\w+)(?P<default>:?[-=][^{}]{0,500}(?:\{[^{}]{0,100}\}[^{}]{0,100}){0,9})?(?P<more>[^}]{0,200})\}"
    r"|\$(?P<name>[A-Za-z_]\w*|[0-9@*#])|%(?P<windows>[A-Za-z_]\w*)%|\$\((?P<command>(?:[^()]|\([^()]{0,300}\)){0,500})\)|`(?P<old>[^`]{0,500})`"
)
#: Where a block of a script begins and ends.
OPENS: Final = re.compile(r"\s*(if|for|while|until|case|select)\b")
CLOSES: Final = re.compile(r"(?:^|[;\s])(fi|done|esac)\b")
#: Characters for < and > of a placeholder, which a shell would read as redirections.
MARKS: Final = str.maketrans({"<": "\ue000", ">": "\ue001"})
UNMARK: Final = str.maketrans({"\ue000": "<", "\ue001": ">"})
PLACEHOLDER: Final = re.compile(r"<[A-Z0-9_]+>")


class Script:
    """Reads the lines of a script in their order, and collects the jobs that they make.

    ``read`` returns the job in a file that gcloud gets: one that the script writes into ``files``,
    or one beside it.
    """

    def __init__(
        self, label: str, read: Callable[[str], Any], *, files: dict[str, str] | None = None
    ) -> None:
        self.label, self.files = label, files if files is not None else {}
        self.jobs = list[ImportedJob]()
        self._read = read
        self._values: dict[str, str] = {}
        self._notes: dict[str, set[Note]] = {}
        self._depth = 0

    def visit(self, text: str, name: str, *, is_make: bool = False, first: int = 1) -> None:
        """Read a script from its line ``first`` on; ``name`` is for a nameless job."""
        for number, line, body in _lines(text, first):
            place = f"{self.label}, line {number}"
            if is_make and not line.startswith("\t") and (match := MAKE.fullmatch(line.rstrip())):
                self._of_make(match, place)
                continue
            if is_make:
                line = re.sub(r"\$\((\w+)\)", r"${\1}", line.lstrip("\t@-")).replace("$$", "$")
            if body is not None:
                self._keep_file(line, body)
            self._depth += bool(OPENS.match(line)) - len(CLOSES.findall(line))
            if match := ASSIGNMENT.fullmatch(line.strip()):
                self._assign(match[1], match[2], match[3], place)
            else:
                self._depth += 1  # behind something else, which may not hold
                for match in INSIDE.finditer(line):
                    self._assign(match[1], match[2], match[3], place)
                self._depth -= 1
            if found := GCLOUD.search(line):
                self._add(found[1], line[found.end() :], place, name)

    def _of_make(self, match: re.Match[str], place: str) -> None:
        name, how, value = match.groups()
        value = re.sub(r"\$\((\w+)\)", r"${\1}", value).strip()
        self._assign(name, "+" if how == "+" else "", f'"{value}"', place)
        if how == "?":
            self._say(name, Note(f"{value!r} is the default of {name}", place, True))

    def _say(self, name: str, note: Note) -> None:
        self._notes.setdefault(name, set()).add(note)

    def _assign(self, name: str, more: str, value: str, place: str) -> None:
        notes = set[Note]()
        if value.startswith("("):
            value = value.strip("()")
        words = _words(self._expanded(value, notes)) or [""]
        found = " ".join(words)
        if more:
            found = f"{self._values.get(name, '')} {found}".strip()
        if self._depth > 0 and self._values.get(name) != found:
            known = self._values.setdefault(name, str(Unknown(name)))
            what = f"{name} is {known!r} unless a branch or loop sets it"
            self._say(name, Note(what, place, known != str(Unknown(name))))
            return
        self._values[name] = found if len(found) < MAX_LENGTH else str(Unknown(name))
        if not more:
            self._notes[name] = set()
        for note in notes:
            self._say(name, note)

    def _keep_file(self, line: str, body: tuple[str, bool]) -> None:
        """The file that a heredoc writes."""
        if match := FILE_OF_HEREDOC.search(HEREDOC.sub("", line)):
            notes = set[Note]()
            text = body[0] if body[1] else self._expanded(body[0], notes)
            file = self._expanded(match[1], notes)
            self.files[file] = text
            self._notes[f"\0{file}"] = notes

    def _expanded(self, text: str, notes: set[Note]) -> str:
        """``text`` with the values of its variables."""

        def value(match: re.Match[str]) -> str:
            command = match["command"] if match["command"] is not None else match["old"]
            if command is not None:
                if re.match(r"\s*date\b", command):
                    return REQUEST_ID
                words = re.findall(r"[A-Za-z]\w*", command) or ["value"]
                return str(Unknown(words[-1]))
            name = match["braced"] or match["name"] or match["windows"]
            if match["default"] and name not in self._values:
                default = self._expanded(match["default"].lstrip(":-="), notes).strip("\"'")
                notes.add(Note(f"{default!r} is the default of {name}", self.label, True))
                return default
            if match["more"] and not re.fullmatch(r"\[[@*]\]|:\?.*", match["more"]):
                return str(Unknown(name))  # one of the shell's operators
            notes.update(self._notes.get(name, ()))
            name = {"@": "ARGUMENTS", "*": "ARGUMENTS"}.get(name, name)
            return self._values.get(name, str(Unknown(f"arg_{name}" if name.isdigit() else name)))

        return VARIABLE.sub(value, text)[:MAX_LENGTH]

    def _add(self, kind: str, rest: str, place: str, name: str) -> None:
        notes = set[Note]()
        options = options_of(kind, self._expanded(rest, notes), None, place)
        for file in [value for flag, value in options["flags"] if flag == "config"]:
            notes |= self._notes.get(f"\0{file}", set())
        job = job_of(options, name, self._read)
        if self._depth > 0:
            notes.add(Note("it is made in a branch or loop, which is read once", place))
        job.notes += sorted(notes)
        self.jobs.append(job)


def _lines(text: str, first: int) -> Iterator[tuple[int, str, tuple[str, bool] | None]]:
    """Each logical line with its number, and the text of the heredoc that it begins."""
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        start, line = index, lines[index]
        if line.lstrip("\t @-").startswith("#"):
            index += 1
            continue
        while index + 1 < len(lines) and (
            line.endswith("\\")
            or (line.endswith(("^", "`")) and lines[index + 1].lstrip().startswith("-"))
        ):
            index += 1
            line = f"{line[:-1]} {lines[index].strip()}"
        while len(line) < MAX_LENGTH and re.match(r"\s*[\w ]+\+?=\(", line) and ")" not in line:
            index += 1
            if index >= len(lines):
                break
            line = f"{line} {lines[index].partition(' #')[0].strip()}"
        index += 1
        body = None
        if heredoc := HEREDOC.search(line):
            end = next((i for i in range(index, len(lines)) if lines[i].strip() == heredoc[2]),
                       len(lines))  # fmt: skip
            body = ("\n".join(lines[index:end]) + "\n", bool(heredoc[1]))
            index = end + 1
        yield first + start, line, body


def _words(line: str) -> list[str]:
    """The words of a command up to its end."""
    marked = PLACEHOLDER.sub(lambda match: match[0].translate(MARKS), line)
    lexer = shlex.shlex(marked, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words = list[str]()
    try:
        for word in lexer:
            if re.fullmatch(r"[();<>|&]+", word):
                break
            words.append(word.translate(UNMARK))
    except ValueError:  # a quote without its end
        return [*words, *line.split()[len(words) :]]
    return words


def options_of(kind: str, rest: str, words: list[str] | None, place: str) -> dict[str, Any]:
    """Flags of a call of gcloud with their values."""
    flags, left = list[tuple[str, str]](), list(words if words is not None else _words(rest))
    unread = list[str]()
    while left:
        word = left.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or word == "--":
            unread.append(word)
        elif equals:
            flags.append((name, value))
        elif name in SWITCHES or not left or (left[0].startswith("--") and name != "args"):
            flags.append((name, "true"))
        else:
            flags.append((name, left.pop(0)))
    return {"kind": kind, "flags": flags, "place": place, "unread": unread}


def _listed(value: str) -> list[str]:
    """gcloud's list: by commas, or by what stands between two carets before it."""
    if match := re.match(r"\^([^^]+)\^", value):
        return value[match.end() :].split(match[1])
    return value.split(",") if value else []


def _mapped(value: str) -> dict[str, str]:
    return {key: item for key, _, item in (each.partition("=") for each in _listed(value))}


def job_of(options: dict[str, Any], name: str, read: Callable[[str], Any]) -> ImportedJob:
    """The job that gcloud makes of its flags, and of the file that it reads."""
    given, place = dict[str, str](), options["place"]
    for flag, value in options["flags"]:  # lists and mappings add up
        more = flag in LISTS and flag in given
        given[flag] = f"{given[flag]},{value}" if more else value
    pools = [value for flag, value in options["flags"] if flag == "worker-pool-spec"]
    display = given.get("display-name") or name
    is_search = options["kind"] == "hp-tuning-jobs"
    base = read(given["config"]) if "config" in given else None
    if base is None:
        base = from_message({"workerPoolSpecs": []}, display)
        if "config" in given:
            base.remarks.append(
                f"gcloud reads {given['config']}, which is not beside the source ({place})"
            )
    base.name = key_of(display, name)
    if pools:
        base.spec["workerPoolSpecs"] = [_pool(each, given, base, place) for each in pools]
    for flag, field in SPEC_FIELDS.items():
        if flag in given:
            base.spec[field] = True if given[flag] == "true" else given[flag]
    if "labels" in given:
        base.labels |= _mapped(given["labels"])
    base.encryption_key = given.get("kms-key", base.encryption_key)
    if is_search:
        for flag, field in (("max-trial-count", "maxTrialCount"),
                            ("parallel-trial-count", "parallelTrialCount")):  # fmt: skip
            if flag in given or field not in base.study:
                base.study[field] = _number(given.get(flag, "1"))
        if "algorithm" in given:
            algorithm = given["algorithm"].replace("-", "_").upper()
            base.study.setdefault("studySpec", {})["algorithm"] = ALGORITHMS.get(
                given["algorithm"], algorithm
            )
        base.study["displayName"] = display
    base.region = given.get("region", base.region)
    known = READ | SPEC_FIELDS.keys() | {"kms-key"}
    base.remarks += [
        f"gcloud's --{flag} is not read ({place})"
        for flag in dict.fromkeys(flag for flag, _ in options["flags"]) if flag not in known
    ]  # fmt: skip
    if not pools and ("args" in given or "command" in given):
        base.remarks.append(f"gcloud leaves out --args and --command beside --config ({place})")
    if options["unread"]:
        base.remarks.append(f"`{' '.join(options['unread'])[:80]}` is not read ({place})")
    return base


def _pool(value: str, given: dict[str, str], job: ImportedJob, place: str) -> dict[str, Any]:
    spec = _mapped(value)
    if not any(spec.values()):
        return {}
    machine: dict[str, Any] = {"machineType": spec.get("machine-type", "<MACHINE_TYPE>")}
    if accelerator := spec.get("accelerator-type"):
        machine["acceleratorType"] = accelerator.upper().replace("-", "_")
        machine["acceleratorCount"] = _number(spec.get("accelerator-count", "1"))
    pool: dict[str, Any] = {
        "replicaCount": _number(spec.get("replica-count", "1")), "machineSpec": machine
    }  # fmt: skip
    arguments, command = _listed(given.get("args", "")), _listed(given.get("command", ""))
    more = {"args": arguments} if arguments else {}
    if "local-package-path" in spec:
        image = spec.get("output-image-uri", "<YOUR_IMAGE>")
        what = f"gcloud builds an image of {spec['local-package-path']}, an import does not"
        job.remarks.append(f"{what} ({place}): `vt new image` makes one")
        spec["container-image-uri"] = image
        local = ("local-package-path", "output-image-uri", "executor-image-uri", "script",
                 "python-module", "requirements", "extra-packages", "extra-dirs")  # fmt: skip
        spec = {key: item for key, item in spec.items() if key not in local}
    if "container-image-uri" in spec:
        more |= {"command": command} if command else {}
        pool["containerSpec"] = {"imageUri": spec["container-image-uri"], **more}
    elif "executor-image-uri" in spec or "python-module" in spec:
        pool["pythonPackageSpec"] = {
            "executorImageUri": spec.get("executor-image-uri", ""),
            "packageUris": _listed(given.get("python-package-uris", "")),
            "pythonModule": spec.get("python-module", ""),
            **more,
        }
    unread = [f"{key}={item}" for key, item in spec.items() if key not in POOL_KEYS]
    if unread:
        job.remarks.append(f"{', '.join(unread)} of --worker-pool-spec is not read ({place})")
    return pool


def _number(value: str) -> int | str:
    return int(value) if value.isdecimal() and len(value) < 10 else value
