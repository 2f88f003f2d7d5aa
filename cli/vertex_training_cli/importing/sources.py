"""Read jobs from untrusted sources, without running code: documents, code, scripts and pages."""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
import warnings
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
from vertex_training_cli.importing.command_lines import GCLOUD, Script
from vertex_training_cli.importing.imported import (
    EXPRESSION,
    MAX_LENGTH,
    OPEN,
    POOLS,
    SPECS,
    ImportedJob,
    Note,
    as_written,
    batch_remark,
    from_message,
    key_of,
    region_of,
    with_placeholders,
)

MAX_SOURCE: Final = 4 * 1024 * 1024
#: Fields that only jobs have.
JOB_FIELDS: Final = (*POOLS, *SPECS)
#: Text of a Batch job in a message, a gcloud command or Python code.
BATCH_JOB: Final = re.compile(
    r"\btask_?[gG]roups[\\\"']{0,2}\s*:"
    r"|\bbatch(?:\s+-\S{1,300}(?:\s+\w\S{0,300})?){0,5}\W{1,5}jobs\W{1,5}submit\b"
    r"|\bBatchService(?:Async)?Client\(|\bCloudBatchSubmitJobOperator\("
)
#: Keys in the message of a workflow that are no fields of a job.
PLACES: Final = ("location", "region", "project", "parent")
#: First line of a fenced code block of a page, with its language and the mark that ends the block.
FENCE: Final = re.compile(
    r"[ \t]*(?P<mark>```+|~~~+)[ \t]*(?:\{[a-z-]+\}[ \t]*)?(?P<language>[a-zA-Z0-9]*).*"
)
#: Code within a line of a page.
INLINE: Final = re.compile(r"(?<!`)`([^`]+)`")
#: Name of a file in the lines above a code block of a page, and the number of searched lines.
FILE_NAME: Final = re.compile(r"[\w-]{1,80}\.(?:ya?ml|json)\b")
LINES_ABOVE: Final = 12
WRITEFILE: Final = re.compile(r"%%writefile[ \t]+(-a[ \t]+)?([^\s]+)[ \t]*\n")
SHELL_CELL: Final = re.compile(r"%%(?:bash|sh|script\s+(?:ba|z)?sh)\b[^\n]*\n")
#: A shell line of a notebook, with the name that its output is assigned to, if any.
SHELL_LINE: Final = re.compile(r"(\s*)((?:[\w.,\[\]() ]+=\s*)?)!(.*)", re.DOTALL)
UNPARSABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
SCRIPTS: Final = (".sh", ".bash", ".zsh", ".mk", ".bat", ".cmd", ".ps1", ".envrc")
PAGES: Final = (".md", ".rst", ".txt", ".qmd", ".Rmd", ".markdown")
DOCUMENTS: Final = (".yaml", ".yml", ".json")


@dataclass(slots=True)
class SourceContents:
    """Jobs and files of a source."""

    jobs: list[ImportedJob] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Content of files that a notebook or a script writes, by path."""
    remarks: list[str] = field(default_factory=list)


def read(path: Path) -> SourceContents:
    """Return the jobs in a file. The suffix and the content determine the kind of file."""
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
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SOURCE + 1)
    except OSError as failed:
        raise CommandError(f"{path}: {failed.strerror or failed}.") from None
    if len(data) > MAX_SOURCE:
        raise CommandError(f"{path} has more than {MAX_SOURCE:,} bytes.")
    return data


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a source: a cell of a notebook, a block of a page, or the whole file."""

    kind: str
    """Kind: ``python``, ``shell``, ``document``, ``file``, or empty."""
    text: str
    label: str
    line: int = 1
    """Number of the part's first line in the labelled file or cell."""
    names: frozenset[str] = frozenset()
    """Names of files with the part's text as content."""
    is_added: bool = False
    """True if the text is appended to the file."""


class _Reader:
    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name, self.result = path, name, SourceContents()
        self._is_make = path.suffix == ".mk" or path.name.lower() in ("makefile", "gnumakefile")
        self._is_partly_read = False
        self._configs = set[str]()
        """Names of job files that gcloud commands read."""

    def read(self, text: str, data: bytes) -> SourceContents:
        remarks = self.result.remarks
        lines = [n for n, line in enumerate(text.split("\n"), 1) if BATCH_JOB.search(line)]
        if places := ", ".join(f"{self.path.name}:{line}" for line in lines):
            remarks.append(batch_remark(places))
        suffix = self.path.suffix
        if suffix == ".tf":
            remarks.append(
                "Terraform files are not imported: import the existing job by `vt import --job ID`"
            )
        elif suffix == ".ipynb":
            self._read_parts(list(_cells(text, self.path)))
        elif suffix in PAGES:
            self._read_parts(list(_blocks(text, self.path.name)))
        elif suffix == ".py":
            self._python([Part("python", text, self.path.name)])
        elif (
            self._is_make
            or suffix in SCRIPTS
            or text.startswith("#!")
            or (suffix not in DOCUMENTS and any(_is_command(line) for line in text.splitlines()))
        ):
            self._script(Part("shell", text, self.path.name))
        else:
            self.result.jobs += self.of_document(data)
            for line, command in _commands(self._parsed(data).root):
                part = Part("shell", with_placeholders(command), self.path.name, line)
                self._script(part)
        if self._is_partly_read:
            remarks.append(
                f"the code computes some values: `vt import --run {self._run()}` records them"
            )
        return self.result

    def _run(self) -> str:
        if self.path.suffix in (*PAGES, *DOCUMENTS):
            return "COMMAND"
        program = {".py": "python ", ".ipynb": ""}.get(
            self.path.suffix, "make -f " if self._is_make else "bash "
        )
        return shlex.quote(f"{program}{shlex.quote(str(self.path))}")

    def _read_parts(self, parts: list[Part]) -> None:
        for part in parts:
            for name in part.names:
                before = self.result.files.get(name, "") if part.is_added else ""
                self.result.files[name] = before[:MAX_LENGTH] + part.text
        for part in parts:
            if part.kind == "shell":
                self._script(part)
        self._python([part for part in parts if part.kind == "python"])
        left_out = [part.line for part in parts if not part.kind]
        for part in parts:
            if part.kind == "document" and not part.names & self._configs:
                try:
                    self.result.jobs += self.of_document(part.text.encode())
                except CommandError as failed:
                    self.result.remarks.append(f"line {part.line}: {failed.message}")
                    left_out.append(part.line)
        if left_out and self.result.jobs:
            lines = ", ".join(map(str, sorted(left_out)))
            self.result.remarks.append(f"code blocks without a job are at lines {lines}")

    def of_document(self, data: bytes, *, is_config: bool = False) -> list[ImportedJob]:
        """Return the jobs in YAML or JSON. Numbers and booleans stay as written.

        Missing trial counts get the default of gcloud's flags unless ``is_config`` is set.
        """
        parsed = self._parsed(data)
        jobs = [self._of_message(*message) for message in _messages(as_written(parsed.root))]
        for job in jobs[:1]:
            job.remarks += map(str, parsed.problems)
        for job in [] if is_config else jobs:
            for count in COUNTS if job.study else ():
                if count not in job.study:
                    job.study[count] = 1
                    what = f"{count} is set to 1, the default of gcloud's flag"
                    job.notes.append(Note(what, self.path.name))
        return jobs

    def _parsed(self, data: bytes) -> document.Document:
        try:
            return document.read(data, str(self.path))
        except ConfigError as failed:
            raise CommandError(str(failed.problems[0])) from None

    def _of_message(self, message: dict[str, Any], around: tuple[Any, ...]) -> ImportedJob:
        if not around:
            return from_message(message, self.name)
        message = with_placeholders(message, EXPRESSION)
        job = from_message({k: v for k, v in message.items() if k not in PLACES}, self.name)
        for holder in (message, *reversed(around)):
            where = region_of(holder.get("parent"))
            region = str(holder.get("region") or holder.get("location") or where)
            if region and not job.region:
                job.region = with_placeholders(region, EXPRESSION)
        return job

    def config(self, file: str) -> ImportedJob | None:
        """Return the job of a file that the source writes or that is beside the source."""
        name = Path(file).name
        self._configs.add(name)
        text = next((t for f, t in self.result.files.items() if Path(f).name == name), None)
        try:
            data = text.encode() if text is not None else RootDirectory(self.path.parent).read(
                file.removeprefix("./"))  # fmt: skip
            jobs = self.of_document(data or b"{}", is_config=True)
        except (OSError, CommandError):
            return None
        for job in jobs[:1]:
            job.in_snake_case = bool(re.search(rb"worker_pool_specs|container_spec", data or b""))
        return next(iter(jobs), None)

    def _script(self, part: Part) -> None:
        script = Script(part.label, self.config, files=self.result.files)
        script.visit(part.text, self.name, is_make=self._is_make, first=part.line)
        self.result.jobs += script.jobs
        self.result.remarks += script.left_out
        self._is_partly_read |= bool(script.left_out) or any(
            job.notes or OPEN.search(str([job.spec, job.labels, job.remarks]))
            for job in script.jobs
        )

    def _python(self, parts: list[Part]) -> None:
        trees = list[tuple[str, ast.Module]]()
        for part in parts:
            try:
                tree = _tree(textwrap.dedent(part.text))
                ast.increment_lineno(tree, part.line - 1)
                trees.append((part.label, tree))
            except UNPARSABLE as failed:
                what = getattr(failed, "msg", None) or str(failed)
                line = part.line - 1 + (getattr(failed, "lineno", None) or 1)
                self.result.remarks.append(
                    f"cannot parse a part of the Python code: {what} ({part.label}, line {line})"
                )
        try:
            jobs, left_out = client_calls.jobs_in(trees, self.name, self.config)
        except RecursionError:
            self.result.remarks.append("the Python code is nested too deeply")
        else:
            self.result.jobs += jobs
            self.result.remarks += left_out
            self._is_partly_read |= bool(left_out) or any(job.notes for job in jobs)


def _cells(text: str, path: Path) -> Iterator[Part]:
    try:
        sources = [
            (number, "".join(cell.get("source", "")))
            for number, cell in enumerate(json.loads(text).get("cells", []), 1)
            if isinstance(cell, dict) and cell.get("cell_type") == "code"
        ]
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise CommandError(f"{path} is not a notebook: the file is not valid JSON.") from None
    for number, source in sources:
        label = f"{path.name}, cell {number}"
        if match := WRITEFILE.match(source):
            names = frozenset({match[2]})
            yield Part("file", source[match.end() :], label, 1, names, bool(match[1]))
        elif match := SHELL_CELL.match(source):
            yield Part("shell", source[match.end() :], label, 2)
        elif re.match(r"\s*%%(?!time|capture|prun)", source) is None:
            yield Part("python", _without_magic(source), label)


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
    """Return a notebook as a Python program, including its cells for files and the shell."""
    lines = [NOTEBOOK.format(folder=str(path.resolve().parent))]
    for part in _cells(_text_of(path).decode("utf-8-sig", errors="replace"), path):
        code = {"python": part.text, "shell": f"__shell__({part.text!r})"}.get(part.kind, "")
        for name in part.names:
            mode = "a" if part.is_added else "w"
            code = f"open({name!r}, {mode!r}).write({part.text!r})"
        lines.append(f"# {part.label}\n{code}\n")
    return "".join(lines)


def _is_command(line: str) -> bool:
    return GCLOUD.match(line.lstrip(" \t$@-")) is not None


def _blocks(text: str, label: str) -> Iterator[Part]:
    """Yield each code block of a page. A block may be a file that the text above names."""
    lines = [*text.split("\n")]
    outside, mark, first, language, above = list[str](), "", 0, "", list[str]()
    for number, line in enumerate([*lines, ""], 1):
        begin = FENCE.fullmatch(line)
        if mark and (line.strip(" \t") == mark or number > len(lines)):
            block = _dedented(lines[first : number - 1])
            yield _of_page(language, block, label, first + 1, above[-LINES_ABOVE:])
            mark, above = "", []
        elif begin and not mark:
            mark, first, language = begin["mark"], number, begin["language"].lower()
        elif not mark:
            above.append(line)
        outside.append("" if mark else line)
        spans = [] if mark else [span[1] for span in INLINE.finditer(line)]
        yield from (Part("shell", span, label, number) for span in spans if GCLOUD.search(span))
    if outside[:-1] != lines:
        return
    is_indented = re.compile(r" {4}|\t|[ \t]*\Z").match
    for is_code, block in groupby(enumerate(lines, 1), lambda pair: bool(is_indented(pair[1]))):
        numbered = list(block)
        if is_code and any(line.strip() for _, line in numbered):
            code = _dedented([line for _, line in numbered])
            yield _of_page("", code, label, numbered[0][0], lines[: numbered[0][0] - 1][-1:])


def _of_page(language: str, code: str, label: str, line: int, above: list[str]) -> Part:
    if language in ("python", "py") or (not language and "import " in code):
        return Part("python" if _reads(code) else "", code, label, line)
    if GCLOUD.search(code):
        return Part("shell", code, label, line)
    if language in ("yaml", "yml", "json", "") and any(key in code for key in JOB_FIELDS):
        names = FILE_NAME.findall("\n".join([*above, code.partition("\n")[0]]))
        return Part("document", code, label, line, frozenset(names))
    return Part("", code, label, line)


def _dedented(lines: list[str]) -> str:
    return textwrap.dedent("\n".join([*lines, ""]))


def _without_magic(source: str) -> str:
    """Return a Python cell with its shell lines as calls of ``__shell__``."""
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.parse(code)
        except SyntaxError:
            if not re.search(r"(?m)^\s*[!%]", code):
                raise
            return ast.parse(_without_magic(code))


def _messages(value: Any, around: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each job message with the mappings that contain the message."""
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
    """Yield shell commands in a document: texts, and arguments of a gcloud entrypoint."""
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
    try:
        _tree(code)
    except UNPARSABLE:
        return False
    return True
