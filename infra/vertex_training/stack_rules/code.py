"""Code of packages and images that talks to BigQuery in nobody's project. Reads files, runs none.

In a job the default project is Google's own, whose name ends in ``-tp``: the account may do nothing
there (https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/174).
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from vertex_training.customjob.request.job_file import JobRequest
from vertex_training.errors import Location, Problem
from vertex_training.plan import packages
from vertex_training.settings.model import Settings

#: Variable that the clients take a project from.
PROJECT: Final = "GOOGLE_CLOUD_PROJECT"
#: What is called -> argument with the project, and its position.
CALLS: Final = {
    "google.cloud.bigquery.Client": ("project", 0),
    "pandas_gbq.read_gbq": ("project_id", 1),
    "pandas_gbq.to_gbq": ("project_id", 2),
    "pandas.read_gbq": ("project_id", 1),
}
#: A larger file is no code that somebody wrote.
MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DefaultProject:
    """A call without a project."""

    line: int
    call: str
    argument: str


def warnings(
    settings: Settings, root: pathlib.Path, requests: Mapping[str, JobRequest]
) -> Iterator[Problem]:
    """Calls in the stack's code, unless every job has a variable that names the project."""
    if requests and all(f'"{PROJECT}"' in request.body for request in requests.values()):
        return
    for name in sorted(_files(settings, root)):
        path = root / name
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            continue
        for found in default_projects(path.read_bytes()):
            what = f"{found.call} without {found.argument}: in a job that is a project of Google's"
            hint = f"{found.argument}=…, or the variable {PROJECT} in the job file"
            yield Problem(what, hint=hint, location=Location(name, found.line), level="warning")


def _files(settings: Settings, root: pathlib.Path) -> set[str]:
    """Files of Python in packages and in contexts of images, below the checkout."""
    folders = [image.context for image in settings.images.values() if image.context]
    places: Iterable[str] = (*folders, *(each.path for each in settings.packages.values()))
    found = (name for each in places for name in packages.sources(root / each, each))
    return {name for name in found if name.endswith(".py")}


def default_projects(code: bytes) -> list[DefaultProject]:
    """Calls that take the default project. Nothing of what is no Python.

    >>> default_projects(b"from google.cloud import bigquery as bq\\nbq.Client()")
    [DefaultProject(line=2, call='bigquery.Client()', argument='project')]
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    names = _imported(tree)
    found: list[DefaultProject] = []
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        full = _full_name(call.func, names)
        if full in CALLS and not _has(call, *CALLS[full]):
            argument, _ = CALLS[full]
            shown = ".".join(full.split(".")[-2:])
            found.append(DefaultProject(call.lineno, f"{shown}()", argument))
    return sorted(found, key=lambda each: each.line)


def _has(call: ast.Call, argument: str, position: int) -> bool:
    """Whether a call gives the argument, or may give it by ``*`` or ``**``."""
    given = (isinstance(each, ast.Starred) for each in call.args)
    named = (each.arg is None or each.arg == argument for each in call.keywords)
    return len(call.args) > position or any(given) or any(named)


def _imported(tree: ast.AST) -> dict[str, str]:
    """Name in the file -> what it stands for, as imports anywhere in it say."""
    found: dict[str, str] = {}
    for each in ast.walk(tree):
        if isinstance(each, ast.Import):
            for name in each.names:
                top = name.name.partition(".")[0]
                found[name.asname or top] = name.name if name.asname else top
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            found |= {n.asname or n.name: f"{each.module}.{n.name}" for n in each.names}
    return found


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """``a.b.c`` of an expression that is one and begins with what was imported; else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    imported = names.get(node.id) if isinstance(node, ast.Name) else None
    return ".".join([imported, *reversed(parts)]) if imported else None
