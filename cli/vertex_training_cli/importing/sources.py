"""Finds jobs in a source: YAML, JSON, Python, a notebook, a script, a Makefile, a page.

Nothing is run. Everything is bounded: a source is another's file.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from localgcp.system.root_directory import RootDirectory
from vertex_training.customjob.rules.trials import COUNTS
from vertex_training.errors import CommandError, ConfigError
from vertex_training.located_yaml import document
from vertex_training_cli.importing import client_calls
from vertex_training_cli.importing.command_lines import GCLOUD, PLACEHOLDER, Script
from vertex_training_cli.importing.imported import (
    EXPRESSION,
    MAX_LENGTH,
    POOLS,
    SPECS,
    ImportedJob,
    Note,
    as_written,
    batch_remark,
    from_message,
    key_of,
    with_placeholders,
)

MAX_SOURCE: Final = 4 * 1024 * 1024
#: Fields that only a job has, in all its forms.
JOB_FIELDS: Final = (*POOLS, *SPECS)
#: Text of a Batch job: in a message, a gcloud command, or Python code.
BATCH_JOB: Final = re.compile(
    r"\btask_?[gG]roups[\\\"']{0,2}\s*:"
    r"|\bbatch(?:\s+-\S{1,300}(?:\s+\w\S{0,300})?){0,5}\W{1,5}jobs\W{1,5}submit\b"
    r"|\bBatchService(?:Async)?Client\(|\bCloudBatchSubmitJobOperator\("
)
#: Keys that a workflow's message has in addition to the fields of a job.
PLACES: Final = ("location", "region", "project", "parent")
#: First line of a fenced code block of a page, with its mark (which also ends the block) and its
#: language.
FENCE: Final = re.compile(
    r"[ \t]*(?P<mark>```+|~~~+)[ \t]*(?:\{[a-z-]+\}[ \t]*)?(?P<language>[a-zA-Z0-9]*).*"
)
#: Code within a line of a page.
INLINE: Final = re.compile(r"(?<!`)`([^`]+)`")
#: Name of a file in a page, and the number of lines above a code block in which the name is
#: searched for.
FILE_NAME: Final = re.compile(r"[\w-]{1,80}\.(?:ya?ml|json)\b")
LINES_ABOVE: Final = 12
WRITEFILE: Final = re.compile(r"%%writefile[ \t]+(-a[ \t]+)?([^\s]+)[ \t]*\n")
SHELL_CELL: Final = re.compile(r"%%(?:bash|sh|script\s+(?:ba|z)?sh)\b[^\n]*\n")
#: A shell line of a notebook, with the name that its output is assigned to, if any.
SHELL_LINE: Final = re.compile(r"(\s*)((?:[\w.,\[\]() ]+=\s*)?)!(.*)", re.DOTALL)
#: Text in Python code that indicates a call which creates a job.
MAKES: Final = re.compile(r"(Custom|Training|Tuning)Job\(|create_\w+_job\(|(custom|hp-tuning)-jobs")
SCRIPTS: Final = (".sh", ".bash", ".zsh", ".mk", ".bat", ".cmd", ".ps1", ".envrc")
PAGES: Final = (".md", ".rst", ".txt", ".qmd", ".Rmd", ".markdown")


@dataclass(slots=True)
class SourceContents:
    """Jobs, files and uploads of a source."""

    jobs: list[ImportedJob] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Files that a notebook or a script writes, by their path."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    """Objects that the source's code uploads, by ``BUCKET/NAME``."""
    remarks: list[str] = field(default_factory=list)


def read(path: Path) -> SourceContents:
    """Return the jobs in a file, read by the kind of the file.

    Raises:
        CommandError: it cannot be read, or nothing in it is a job.
    """
    data = _text_of(path)
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    contents = _Reader(path, key_of(path.stem)).read(text, data)
    if not contents.jobs:
        hint = "; ".join(contents.remarks) or (
            "`vt import` finds workerPoolSpecs and trialJobSpec in YAML or JSON, `gcloud ai "
            "custom-jobs|hp-tuning-jobs create` in scripts, and CustomJob(…), "
            "CustomTrainingJob(…) or from_local_script(…) in Python. `vt import --run COMMAND` "
            "records the requests of a command"
        )
        raise CommandError(f"{path} contains no job.", hint)
    return contents


def _text_of(path: Path) -> bytes:
    """Return the content of a source. Raises CommandError."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SOURCE + 1)
    except OSError as failed:
        raise CommandError(f"{path}: {failed.strerror or failed}.") from None
    if len(data) > MAX_SOURCE:
        raise CommandError(f"{path} has more than {MAX_SOURCE:,} bytes.")
    return data


class _Reader:
    """Reads one file."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name, self.result = path, name, SourceContents()
        self._is_partly_read = False
        self._configs = set[str]()
        """Names of files that commands read as their job."""

    def read(self, text: str, data: bytes) -> SourceContents:
        """Return the contents of the file."""
        lines = [n for n, line in enumerate(text.split("\n"), 1) if BATCH_JOB.search(line)]
        if places := ", ".join(f"{self.path.name}:{line}" for line in lines):
            self.result.remarks.append(batch_remark(places))
        suffix = self.path.suffix
        is_make = suffix == ".mk" or self.path.name.lower() in ("makefile", "gnumakefile")
        if suffix == ".ipynb":
            self._notebook(text)
        elif suffix == ".py":
            self._python([(self.path.name, text, 0)])
        elif suffix in PAGES:
            self._page(text)
        elif is_make or suffix in SCRIPTS or text.startswith("#!") or _is_script(suffix, text):
            self._script(self.path.name, text, 1, is_make=is_make)
        elif suffix == ".tf":
            self.result.remarks.append(
                "Terraform files are not imported: import the existing job by `vt import --job ID`"
            )
        else:
            self._document(data)
        if self._is_partly_read:
            self.result.remarks.append(self._way_on(is_make=is_make))
        return self.result

    def _way_on(self, *, is_make: bool) -> str:
        """Return a hint on `vt import --run`, which records values that the code computes."""
        program = {".py": "python ", ".ipynb": ""}.get(
            self.path.suffix, "make -f " if is_make else "bash "
        )
        if self.path.suffix in (*PAGES, ".yaml", ".yml", ".json", ".tf"):
            return "some values are computed: `vt import --run COMMAND` records them"
        command = shlex.quote(f"{program}{shlex.quote(str(self.path))}")
        return f"some values are computed: `vt import --run {command}` records them"

    def of_document(self, data: bytes) -> list[ImportedJob]:
        """Return the jobs in YAML or JSON, at any depth. Numbers and booleans stay as written."""
        parsed = self._parsed(data)
        jobs = [self._of_message(*message) for message in _messages(as_written(parsed.root))]
        for job in jobs[:1]:
            job.remarks += map(str, parsed.problems)
        return jobs

    def _parsed(self, data: bytes) -> document.Document:
        try:
            return document.read(data, str(self.path))
        except ConfigError as failed:
            raise CommandError(str(failed.problems[0])) from None

    def _of_message(self, message: dict[str, Any], around: tuple[Any, ...]) -> ImportedJob:
        """Return the job of a message; ``around`` has the mappings that contain it."""
        if not around:
            return from_message(message, self.name)
        message = with_placeholders(message, EXPRESSION)
        job = from_message({k: v for k, v in message.items() if k not in PLACES}, self.name)
        for holder in (message, *reversed(around)):
            where = re.search(r"/locations/([^/]+)", str(holder.get("parent")))
            region = str(
                holder.get("region") or holder.get("location") or (where[1] if where else "")
            )
            if region and not job.region:
                job.region = with_placeholders(region, EXPRESSION)
        return job

    def _document(self, data: bytes) -> None:
        """Add the jobs of a document, and of commands in it, as CI files have."""
        self.result.jobs += map(self._counted, self.of_document(data))
        for line, text in _commands(self._parsed(data).root):
            self._script(self.path.name, with_placeholders(text), line)

    def _counted(self, job: ImportedJob) -> ImportedJob:
        """Return the job; missing trial counts of a tuning job get gcloud's defaults."""
        for count in COUNTS:
            if job.study and count not in job.study:
                job.study[count] = 1
                what = f"{count} is set to 1, the default of gcloud's flag"
                job.notes.append(Note(what, self.path.name))
        return job

    def config(self, file: str) -> ImportedJob | None:
        """Return the job of a file that the source writes or that is beside the source."""
        name = Path(file).name
        self._configs.add(name)
        text = next((t for f, t in self.result.files.items() if Path(f).name == name), None)
        try:
            data = text.encode() if text is not None else RootDirectory(self.path.parent).read(
                file.removeprefix("./"))  # fmt: skip
            jobs = self.of_document(data or b"{}")
        except (OSError, CommandError):
            return None
        for job in jobs[:1]:
            job.in_snake_case = bool(re.search(rb"worker_pool_specs|container_spec", data or b""))
        return next(iter(jobs), None)

    def _script(self, label: str, text: str, first: int, *, is_make: bool = False) -> None:
        script = Script(label, self.config, files=self.result.files)
        script.visit(text, self.name, is_make=is_make, first=first)
        self.result.jobs += script.jobs
        self.result.remarks += script.left_out
        self._is_partly_read |= bool(script.left_out) or any(
            job.notes or PLACEHOLDER.search(str([job.spec, job.labels, job.remarks]))
            for job in script.jobs
        )
        self._python([(label, code, line) for code, line in script.programs if MAKES.search(code)])

    def _python(self, parts: list[tuple[str, str, int]]) -> None:
        """Read parts of Python code: each with its label, text and number of lines before it."""
        trees = list[tuple[str, ast.Module]]()
        for label, text, before in parts:
            try:
                tree = _tree(textwrap.dedent(text))
                ast.increment_lineno(tree, before)
                trees.append((label, tree))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as failed:
                what = getattr(failed, "msg", None) or str(failed)
                where = f"{label}, line {before + (getattr(failed, 'lineno', None) or 1)}"
                self.result.remarks.append(
                    f"cannot parse a part of the Python code: {what} ({where})"
                )
        try:
            jobs, left_out = client_calls.jobs_in(trees, self.name, self.config)
        except RecursionError:
            self.result.remarks.append("the code is nested too deeply")
        else:
            self.result.jobs += jobs
            self.result.remarks += left_out
            self._is_partly_read |= bool(left_out) or any(job.notes for job in jobs)

    def _notebook(self, text: str) -> None:
        sources = _cells(text, self.path)
        code = list[tuple[str, str, int]]()
        for number, source in sources:
            label = f"{self.path.name}, cell {number}"
            if match := WRITEFILE.match(source):
                before = self.result.files.get(match[2], "") if match[1] else ""
                self.result.files[match[2]] = before[:MAX_LENGTH] + source[match.end() :]
            elif match := SHELL_CELL.match(source):
                self._script(label, source[match.end() :], 2)
            elif re.match(r"\s*%%(?!time|capture|prun)", source) is None:
                code.append((label, _without_magic(source), 0))
        self._python(code)

    def _page(self, text: str) -> None:
        """Read the jobs in the code blocks of a page.

        Blocks of Python build on one another. A block whose text above names a file is that file
        for the commands of the page.
        """
        python, left_out = list[tuple[str, str, int]](), list[str]()
        lines, blocks = text.split("\n"), list(_blocks(text))
        named = {line: _names_above(lines, line, code) for line, language, code in blocks
                 if _may_be_document(language, code)}  # fmt: skip
        self.result.files |= {
            file: code for line, _, code in blocks for file in named.get(line, ())
        }
        documents = list[tuple[set[str], list[ImportedJob]]]()
        for line, language, code in blocks:
            if language in ("python", "py") or (not language and "import " in code):
                if _reads(code):
                    python.append((self.path.name, code, line - 1))
                    continue
            elif GCLOUD.search(code):
                self._script(self.path.name, code, line)
                continue
            elif line in named:
                try:
                    jobs = [self._counted(job) for job in self.of_document(code.encode())]
                    documents.append((named[line], jobs))
                    self.result.jobs += jobs
                    continue
                except CommandError as failed:
                    self.result.remarks.append(f"line {line}: {failed.message}")
            left_out.append(str(line))
        self._python(python)
        of_commands = [job for names, jobs in documents if names & self._configs for job in jobs]
        self.result.jobs = [job for job in self.result.jobs
                           if not any(job is other for other in of_commands)]  # fmt: skip
        if left_out and self.result.jobs:
            self.result.remarks.append(f"code blocks without a job: at lines {', '.join(left_out)}")


def _cells(text: str, path: Path) -> list[tuple[int, str]]:
    """Return the code cells of a notebook with their numbers. Raises CommandError."""
    try:
        return [
            (number, "".join(cell.get("source", "")))
            for number, cell in enumerate(json.loads(text).get("cells", []), 1)
            if isinstance(cell, dict) and cell.get("cell_type") == "code"
        ]
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise CommandError(f"{path} is not a notebook: its JSON cannot be parsed.") from None


#: First lines of a notebook as a program. Its shell lines can use the names of the code.
NOTEBOOK: Final = """\
import os, re, subprocess, sys
os.chdir({folder!r}); sys.path[0] = {folder!r}
def __shell__(line):
    known = lambda match: str(globals().get(match[1] or match[2], match[0]))
    line = re.sub(r"(?<!\\{{)\\{{(\\w+)\\}}|\\$(\\w+)", known, line)
    done = subprocess.run(line, shell=True, stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="", flush=True)
    return done.stdout.splitlines()
"""


def program_of(path: Path) -> str:
    """Return a notebook as a Python program, including cells for files and the shell.

    Raises:
        CommandError: it cannot be read.
    """
    parts = [NOTEBOOK.format(folder=str(path.resolve().parent))]
    for number, source in _cells(_text_of(path).decode("utf-8-sig", errors="replace"), path):
        parts.append(f"# cell {number}\n")
        if match := WRITEFILE.match(source):
            mode = "a" if match[1] else "w"
            parts.append(f"open({match[2]!r}, {mode!r}).write({source[match.end() :]!r})\n")
        elif match := SHELL_CELL.match(source):
            parts.append(f"__shell__({source[match.end() :]!r})\n")
        elif re.match(r"\s*%%(?!time|capture|prun)", source) is None:
            parts.append(f"{_without_magic(source)}\n")
    return "".join(parts)


def _may_be_document(language: str, code: str) -> bool:
    return language in ("yaml", "yml", "json", "") and any(key in code for key in JOB_FIELDS)


def _names_above(lines: list[str], first: int, code: str) -> set[str]:
    """Return YAML and JSON file names in the text above a block or in the block's first line."""
    above = [lines[first - 2], code.partition("\n")[0]]
    for line in reversed(lines[max(0, first - LINES_ABOVE) : max(0, first - 2)]):
        if FENCE.fullmatch(line):
            break
        above.append(line)
    return set(FILE_NAME.findall("\n".join(above)))


def _is_script(suffix: str, text: str) -> bool:
    """Return True if a file of an unknown kind has a command line that creates a job."""
    lines = text.splitlines() if suffix not in (".yaml", ".yml", ".json") else ()
    return any(GCLOUD.match(line.lstrip(" \t$@-")) for line in lines)


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each code block of a page: first line, language and text."""
    lines = text.split("\n")
    outside = list(enumerate(lines, 1))
    fences = list(_fences(lines))
    for first, end, language in fences:
        yield first + 1, language, _dedented(lines[first:end])
        outside[first - 1 : end + 1] = [(0, "")] * (end + 2 - first)
    for number, line in outside:
        spans = (span[1] for span in INLINE.finditer(line))
        yield from ((number, "sh", span) for span in spans if GCLOUD.search(span))
    for is_code, block in [] if fences else groupby(outside, lambda pair: _is_indented(pair[1])):
        numbered = list(block)
        if is_code and any(line.strip() for _, line in numbered):
            yield numbered[0][0], "", _dedented([line for _, line in numbered])


def _fences(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield start index, end index and language of each fenced block."""
    ends = defaultdict[str, list[int]](list)
    for index, line in enumerate(lines):
        ends[line.strip(" \t")].append(index)
    index = 0
    while index < len(lines):
        begin = FENCE.fullmatch(lines[index])
        index += 1
        closing = ends[begin["mark"]] if begin else []
        if begin and (at := bisect_left(closing, index)) < len(closing):
            yield index, closing[at], begin["language"].lower()
            index = closing[at] + 1


def _is_indented(line: str) -> bool:
    return line.startswith(("    ", "\t")) or not line.strip(" \t")


def _dedented(lines: list[str]) -> str:
    return textwrap.dedent("\n".join([*lines, ""]))


def _without_magic(source: str) -> str:
    """Return a Python cell with shell lines as calls. Each line keeps its number."""
    lines, kept = source.split("\n"), list[str]()
    index = 0
    while index < len(lines):
        line, more = lines[index], 0
        if shell := SHELL_LINE.fullmatch(line):
            command = [shell[3]]
            while command[-1].endswith("\\") and index + more + 1 < len(lines):
                more += 1
                command[-1:] = [command[-1][:-1], lines[index + more].strip()]
            line = f"{shell[1]}{shell[2]}__shell__({' '.join(command).lstrip('!')!r})"
        elif line.lstrip().startswith("%"):
            line = f"{line[: len(line) - len(line.lstrip())]}pass"
        kept += [line, *[""] * more]
        index += 1 + more
    return "\n".join(kept)


def _tree(code: str) -> ast.Module:
    """Parse code as Python, else as a notebook cell, which exports may contain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of code that is another's
        try:
            return ast.parse(code)
        except SyntaxError:
            if not re.search(r"(?m)^\s*[!%]", code):
                raise
            return ast.parse(_without_magic(code))


def _messages(value: Any, around: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each job message, and the mappings that contain it."""
    if isinstance(value, dict):
        inner = [value.get(key) for key in SPECS]
        is_job = any(key in value for key in POOLS) or any(
            isinstance(entry, dict) and any(key in entry for key in POOLS) for entry in inner
        )
        if is_job or (not around and any(key in value for key in SPECS)):
            yield value, around
            return
        around = (*around, value)
    items = value.values() if isinstance(value, dict) else value
    for item in items if isinstance(value, dict | list) else ():
        yield from _messages(item, around)


def _commands(value: document.Value) -> Iterator[tuple[int, str]]:
    """Yield shell lines in a document: its texts, and the arguments of an entrypoint."""
    content = value.content
    if isinstance(content, dict):
        entrypoint, args = content.get("entrypoint"), content.get("args")
        if entrypoint and args and isinstance(args.content, list):
            words = [str(cell.content) for cell in args.content]
            if str(entrypoint.content).endswith("gcloud"):
                yield args.line, f"gcloud {shlex.join(words)}".replace("'", '"')
    elif isinstance(content, str) and GCLOUD.search(content):
        yield value.line + ("\n" in content), content
    items = content.values() if isinstance(content, dict) else content
    for item in items if isinstance(items, Iterable) and not isinstance(items, str) else ():
        yield from _commands(item)


def _reads(code: str) -> bool:
    """Return True if a text can be parsed: blocks of pages also contain incomplete code."""
    try:
        _tree(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
