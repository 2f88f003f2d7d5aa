"""A source -> the jobs in it: YAML, JSON, Python, a notebook, a page of documentation.

Nothing is run. Everything is bounded: a source is another's file.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from vertex_training.errors import CommandError, ConfigError
from vertex_training.located_yaml import document
from vertex_training_cli.importing import sdk_calls
from vertex_training_cli.importing.imported import ImportedJob, from_message, key_of

MAX_SOURCE: Final = 4 * 1024 * 1024
#: What a job has in any form, and hardly anything else.
JOB_FIELDS: Final = (
    *("workerPoolSpecs", "worker_pool_specs", "jobSpec", "job_spec"),
    *("trialJobSpec", "trial_job_spec"),
)
#: A fenced block of a page: its language, and its text.
FENCE: Final = re.compile(
    r"^[ \t]*(?P<mark>```+|~~~+)[ \t]*(?:\{[a-z-]+\}[ \t]*)?(?P<language>[a-zA-Z0-9]*)[^\n]*\n"
    r"(?P<text>.*?)^[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
WRITEFILE: Final = re.compile(r"%%writefile[ \t]+(?:-a[ \t]+)?([^\s]+)[ \t]*\n")


@dataclass(slots=True)
class Source:
    """What was found in a source."""

    jobs: list[ImportedJob] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    """Files that a notebook writes, by their path there."""
    uploads: dict[str, bytes] = field(default_factory=dict)
    """Objects that the source's own code uploads, by ``BUCKET/NAME``."""
    remarks: list[str] = field(default_factory=list)


def read(path: Path) -> Source:
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
    text = data.decode("utf-8-sig", errors="replace")
    name = key_of(path.stem)
    if path.suffix == ".ipynb":
        found = _of_notebook(text, path, name)
    elif path.suffix == ".py":
        found = _of_python([text], name)
    elif path.suffix in (".md", ".rst", ".txt", ".qmd", ".Rmd"):
        found = _of_page(text, path, name)
    else:
        found = _of_document(data, path, name)
    if not found.jobs:
        hint = "; ".join(found.remarks) or (
            "an import looks for workerPoolSpecs, CustomJob(…), CustomTrainingJob(…) or "
            "from_local_script(…)"
        )
        raise CommandError(f"{path}: there is no job in it.", hint)
    return found


def _of_document(data: bytes, path: Path, name: str) -> Source:
    try:
        parsed = document.read(data, str(path))
    except ConfigError as failed:
        raise CommandError(str(failed.problems[0])) from None
    content = yaml.safe_load(data)  # bounded by the parser before it
    if not any(key in parsed.root.content for key in JOB_FIELDS):
        return Source()
    return Source([from_message(_texts(content), name)])


def _texts(value: Any) -> Any:
    """Plain YAML: a date is the text that it was written as."""
    return json.loads(json.dumps(value, default=str))


def _of_python(texts: list[str], name: str) -> Source:
    trees, found = list[ast.Module](), Source()
    for text in texts:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # of code that is another's
                trees.append(ast.parse(textwrap.dedent(text)))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as failed:
            found.remarks.append(f"a part is no Python that can be read: {failed}")
    try:
        found.jobs = sdk_calls.jobs_in(trees, name)
    except RecursionError:
        found.remarks.append("the code is nested too deeply to be read")
    return found


def _of_notebook(text: str, path: Path, name: str) -> Source:
    try:
        cells = json.loads(text).get("cells", [])
        sources = [
            "".join(cell.get("source", ""))
            for cell in cells
            if isinstance(cell, dict) and cell.get("cell_type") == "code"
        ]
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise CommandError(f"{path}: this is no notebook: its JSON cannot be read.") from None
    code, files = list[str](), dict[str, str]()
    for source in sources:
        if match := WRITEFILE.match(source):
            files[match[1]] = source[match.end() :]
        elif not source.lstrip().startswith("%%"):
            # Lines for the shell and for the notebook itself are no Python.
            lines = source.splitlines()
            code.append("\n".join(x for x in lines if not x.lstrip().startswith(("%", "!"))))
    found = _of_python(code, name)
    found.files = files
    return found


def _of_page(text: str, path: Path, name: str) -> Source:
    """The jobs in the blocks of code of a page. Blocks of Python build on one another."""
    blocks = list(FENCE.finditer(text))
    if not blocks:
        return _of_document(text.encode(), path, name)
    python, found = list[str](), Source()
    for block in blocks:
        code = textwrap.dedent(block["text"])
        language = block["language"].lower()
        if language in ("python", "py") or (not language and "import " in code):
            python.append(code)
        elif language in ("yaml", "yml", "json") and any(key in code for key in JOB_FIELDS):
            try:
                found.jobs += _of_document(code.encode(), Path(name), name).jobs
            except CommandError as failed:
                found.remarks.append(failed.message)
    of_code = _of_python([code for code in python if _reads(code)], name)
    return Source(of_code.jobs + found.jobs, remarks=found.remarks)


def _reads(code: str) -> bool:
    """Whether it parses: pages have parts of code in their blocks as well."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
