"""A source -> the jobs in it: YAML, JSON, Python, a notebook, a script, a Makefile, a page.

Nothing is run. Everything is bounded: a source is another's file.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
import warnings
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Final

from localgcp.root_directory import RootDirectory
from vertex_training.customjob.rules.tuning.trials import COUNTS
from vertex_training.errors import CommandError, ConfigError
from vertex_training.located_yaml import document
from vertex_training_cli.importing import batch_jobs, batch_messages, sdk_calls
from vertex_training_cli.importing.command_lines import GCLOUD, Script
from vertex_training_cli.importing.imported import (
    POOLS,
    SPECS,
    ImportedJob,
    Note,
    as_written,
    from_message,
    key_of,
)
from vertex_training_cli.importing.values import MAX_LENGTH

MAX_SOURCE: Final = 4 * 1024 * 1024
#: What a job has in any form, and hardly anything else.
CUSTOM_JOB_FIELDS: Final = (*POOLS, *SPECS)
JOB_FIELDS: Final = (*CUSTOM_JOB_FIELDS, *batch_messages.FIELDS)
#: The line that begins a fenced block of a page: its mark, which also ends it, and its language.
FENCE: Final = re.compile(
    r"[ \t]*(?P<mark>```+|~~~+)[ \t]*(?:\{[a-z-]+\}[ \t]*)?(?P<language>[a-zA-Z0-9]*).*"
)
#: Code within a line of a page.
INLINE: Final = re.compile(r"(?<!`)`([^`]+)`")
WRITEFILE: Final = re.compile(r"%%writefile[ \t]+(-a[ \t]+)?([^\s]+)[ \t]*\n")
SHELL_CELL: Final = re.compile(r"%%(?:bash|sh|script\s+(?:ba|z)?sh)\b[^\n]*\n")
#: A line of a notebook for the shell, whose output a name may get; one that sets a variable.
SHELL_LINE: Final = re.compile(r"(\s*)((?:[\w.,\[\]() ]+=\s*)?)!(.*)", re.DOTALL)
SET_ENV: Final = re.compile(r"(\s*)%(?:set_)?env\s+(\w+)[= ](.*)")
#: What Python within a script has, if it makes a job.
MAKES: Final = re.compile(r"(Custom|Training|Tuning)Job\(|create_\w+_job\(|(custom|hp-tuning)-jobs"
                            r"|batch\W{1,5}jobs\W{1,5}submit")  # fmt: skip
#: What is said of code with the client of Google Batch.
BATCH_CLIENT: Final = (
    "calls of Google Batch's client are not read: import what `gcloud batch jobs describe NAME "
    "--format json` prints, or run the code by --run"
)
SCRIPTS: Final = (".sh", ".bash", ".zsh", ".mk", ".bat", ".cmd", ".ps1", ".envrc")
PAGES: Final = (".md", ".rst", ".txt", ".qmd", ".Rmd", ".markdown")


@dataclass(slots=True)
class SourceContents:
    """What was found in a source."""

    jobs: list[ImportedJob] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Files that a notebook or a script writes, by their path there."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    """Objects that the source's own code uploads, by ``BUCKET/NAME``."""
    remarks: list[str] = field(default_factory=list)


def read(path: Path) -> SourceContents:
    """The jobs in a file, by what kind of file it is.

    Raises:
        CommandError: it cannot be read, or nothing in it is a job.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SOURCE + 1)
    except OSError as failed:
        raise CommandError(f"{path}: {failed.strerror or failed}.") from None
    if len(data) > MAX_SOURCE:
        raise CommandError(f"{path} has more than {MAX_SOURCE:,} bytes.")
    text = data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")
    found = _Reader(path, key_of(path.stem)).read(text, data)
    if not found.jobs:
        hint = "; ".join(found.remarks) or (
            "an import looks for workerPoolSpecs, trialJobSpec and Batch's taskGroups in YAML or "
            "JSON, for `gcloud ai custom-jobs|hp-tuning-jobs create` and `gcloud batch jobs "
            "submit` in scripts, and for CustomJob(…), "
            "CustomTrainingJob(…), from_local_script(…) or HyperparameterTuningJob(…) in Python"
        )
        raise CommandError(f"{path}: there is no job in it.", hint)
    return found


class _Reader:
    """Reads one file."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name, self.found = path, name, SourceContents()

    def read(self, text: str, data: bytes) -> SourceContents:
        """What is found in the file."""
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
            self.found.remarks.append("Terraform is not read: `vt import --job ID` takes its job")
        else:
            self.found.jobs += map(self._counted, self.of_document(data))
        return self.found

    def of_document(self, data: bytes) -> list[ImportedJob]:
        """The job of YAML or JSON; its scalars stay as they are written."""
        try:
            parsed = document.read(data, str(self.path))
        except ConfigError as failed:
            raise CommandError(str(failed.problems[0])) from None
        if any(key in parsed.root.content for key in batch_messages.FIELDS):
            message = batch_messages.of_document(data, str(self.path))
            return [batch_jobs.imported(message, self.name)]
        if not any(key in parsed.root.content for key in CUSTOM_JOB_FIELDS):
            return []
        job = from_message(as_written(parsed.root), self.name)
        job.remarks += [str(problem) for problem in parsed.problems]
        return [job]

    def _counted(self, job: ImportedJob) -> ImportedJob:
        """A search with the counts that gcloud gives it by default."""
        for count in COUNTS:
            if job.study and count not in job.study:
                job.study[count] = 1
                what = f"{count} is 1, as gcloud's flag is by default"
                job.notes.append(Note(what, self.path.name, guessed=True))
        return job

    def data(self, file: str) -> bytes | None:
        """A file that the source writes or that lies beside it."""
        for name, text in self.found.files.items():
            if Path(name).name == Path(file).name:
                return text.encode()
        try:
            return RootDirectory(self.path.parent).read(file.removeprefix("./"))
        except OSError:
            return None

    def config(self, file: str) -> ImportedJob | None:
        """The job of a file that the source writes or that lies beside it."""
        data = self.data(file) or b"{}"
        try:
            for job in self.of_document(data):
                job.in_snake_case = bool(re.search(rb"worker_pool_specs|container_spec", data))
                return job
        except CommandError:
            pass
        return None

    def _script(self, label: str, text: str, first: int, *, is_make: bool = False) -> None:
        script = Script(label, self, files=self.found.files)
        script.visit(text, self.name, is_make=is_make, first=first)
        self.found.jobs += script.jobs
        self.found.remarks += script.left_out
        self._python([(label, code, line) for code, line in script.programs if MAKES.search(code)])

    def _python(self, parts: list[tuple[str, str, int]]) -> None:
        """Python code, part by part: its label, its text and the number of lines before it."""
        if any("batch_v1" in text for _, text, _ in parts):
            self.found.remarks.append(BATCH_CLIENT)
        trees = list[tuple[str, ast.Module]]()
        for label, text, before in parts:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", SyntaxWarning)  # of code that is another's
                    tree = ast.parse(textwrap.dedent(text))
                ast.increment_lineno(tree, before)
                trees.append((label, tree))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as failed:
                what = getattr(failed, "msg", None) or str(failed)
                where = f"{label}, line {before + (getattr(failed, 'lineno', None) or 1)}"
                self.found.remarks.append(f"a part is no Python that can be read: {what} ({where})")
        try:
            jobs, left_out = sdk_calls.jobs_in(trees, self.name, self)
        except RecursionError:
            self.found.remarks.append("the code is nested too deeply to be read")
        else:
            self.found.jobs += jobs
            self.found.remarks += left_out

    def _notebook(self, text: str) -> None:
        try:
            cells = json.loads(text).get("cells", [])
            sources = [
                (number, "".join(cell.get("source", "")))
                for number, cell in enumerate(cells, 1)
                if isinstance(cell, dict) and cell.get("cell_type") == "code"
            ]
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise CommandError(
                f"{self.path}: this is no notebook: its JSON cannot be read."
            ) from None
        code = list[tuple[str, str, int]]()
        for number, source in sources:
            label = f"{self.path.name}, cell {number}"
            if match := WRITEFILE.match(source):
                before = self.found.files.get(match[2], "") if match[1] else ""
                self.found.files[match[2]] = before[:MAX_LENGTH] + source[match.end() :]
            elif match := SHELL_CELL.match(source):
                self._script(label, source[match.end() :], 2)
            elif re.match(r"\s*%%(?!time|capture|prun)", source) is None:
                code.append((label, _without_magic(source), 0))
        self._python(code)

    def _page(self, text: str) -> None:
        """The jobs in the blocks of code of a page. Blocks of Python build on one another."""
        python, left_out = list[tuple[str, str, int]](), list[str]()
        for line, language, code in _blocks(text):
            if language in ("python", "py") or (not language and "import " in code):
                if _reads(code):
                    python.append((self.path.name, code, line - 1))
                    continue
            elif GCLOUD.search(code):
                self._script(self.path.name, code, line)
                continue
            elif language in ("yaml", "yml", "json", "") and any(key in code for key in JOB_FIELDS):
                try:
                    self.found.jobs += map(self._counted, self.of_document(code.encode()))
                    continue
                except CommandError as failed:
                    self.found.remarks.append(f"line {line}: {failed.message}")
            left_out.append(str(line))
        self._python(python)
        if left_out and self.found.jobs:
            self.found.remarks.append(f"blocks without a job: at lines {', '.join(left_out)}")


def _is_script(suffix: str, text: str) -> bool:
    return suffix not in (".yaml", ".yml", ".json") and bool(GCLOUD.search(text))


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Each block of code of a page: its first line, its language and its text."""
    lines = text.split("\n")
    outside = list(enumerate(lines, 1))
    fences = list(_fences(lines))
    for first, end, language in fences:
        yield first + 1, language, _dedented(lines[first:end])
        outside[first - 1 : end + 1] = [(0, "")] * (end + 2 - first)
    for number, line in outside:
        spans = (span[1] for span in INLINE.finditer(line))
        yield from ((number, "sh", span) for span in spans if GCLOUD.search(span))
    for is_code, block in [] if fences else groupby(outside, lambda each: _is_indented(each[1])):
        found = list(block)
        if is_code and any(line.strip() for _, line in found):
            yield found[0][0], "", _dedented([line for _, line in found])


def _fences(lines: list[str]) -> Iterator[tuple[int, int, str]]:
    """The index behind each line that begins a fenced block, that of its end, and its language."""
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
    """A cell of Python, where lines for the shell are calls; each line keeps its number."""
    lines, found = source.split("\n"), list[str]()
    index = 0
    while index < len(lines):
        line, more = lines[index], 0
        if shell := SHELL_LINE.fullmatch(line):
            command = [shell[3]]
            while command[-1].endswith("\\") and index + more + 1 < len(lines):
                more += 1
                command[-1:] = [command[-1][:-1], lines[index + more].strip()]
            line = f"{shell[1]}{shell[2]}__shell__({' '.join(command).lstrip('!')!r})"
        elif variable := SET_ENV.fullmatch(line):
            line = f"{variable[1]}os.environ[{variable[2]!r}] = {variable[3].strip()!r}"
        elif line.lstrip().startswith("%"):
            line = f"{line[: len(line) - len(line.lstrip())]}pass"
        found += [line, *[""] * more]
        index += 1 + more
    return "\n".join(found)


def _reads(code: str) -> bool:
    """Whether it parses: pages have parts of code in their blocks as well."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
