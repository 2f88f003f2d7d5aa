"""Write ``infra/vertex_training/components/sections.py``: sections of a stack file as typed dicts.

    .venv/bin/python -m tools.generate.component_args          rewrite the file
    .venv/bin/python -m tools.generate.component_args --check  exit 1 if it is not up to date

The models of ``infra/vertex_training/settings`` are the one place that says what a section may
have. Type checkers, editors and Pulumi's component provider host read typed dicts, and docstrings
from their source, so these are a file and not made at run time. A test runs ``--check``.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import itertools
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from tools.generate import generated
from vertex_training.settings.model import JobOptions, Settings
from vertex_training.settings.network import Reservation
from vertex_training.settings.section import Section

TARGET: Final = Path(__file__).parents[2] / "infra/vertex_training/components/sections.py"
#: Parts of a stack file that only ``vt`` and its reviews read, or that a component has apart.
LEFT_OUT: Final = frozenset(
    (
        *("stack", "include", "overrides", "project", "region", "project_number"),
        *("drift", "policy_levels"),
    )
)
#: Sections with fields that are a component's arguments: their typed dict, fields that are not.
FLAT: Final[dict[type[Section], tuple[str, frozenset[str]]]] = {
    Reservation: ("ReservationFields", frozenset({"formerly", "project"})),
    JobOptions: ("JobFields", frozenset({"formerly"})),
    Settings: ("EnvironmentFields", LEFT_OUT),
}
HEAD: Final = '''\
"""The sections of a stack file as typed dicts, for the arguments of components.

Written by ``python -m tools.generate.component_args`` from ``vertex_training.settings``.
Annotations are objects and no strings: Pulumi's component provider host reads them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from pulumi import Input
'''


def generate() -> str:
    """The file's text."""
    found: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        if name not in LEFT_OUT:
            for section in sections_in(field.annotation):
                _write(section, found)
    _write_flat(Settings, found)
    return _formatted("\n\n".join([HEAD, *found.values()]))


def sections_in(annotation: Any) -> list[type[Section]]:
    """The sections that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [section for part in get_args(annotation) for section in sections_in(part)]


def _write(section: type[Section], found: dict[str, str]) -> None:
    """The section and those in it, the inner ones first."""
    for field in section.model_fields.values():
        for inner in sections_in(field.annotation):
            _write(inner, found)
    name = f"{section.__name__}Args"
    if name in found:
        return
    flat = next((cls for cls in section.__mro__ if cls in FLAT), None)
    base = _write_flat(flat, found) if flat else {}
    own = {key: field for key, field in section.model_fields.items() if key not in base}
    summary = inspect.cleandoc(section.__doc__ or "")
    parent = FLAT[flat][0] if flat else "TypedDict"
    found[name] = _typed_dict(name, parent, summary, own, docs_of(section))


def _write_flat(section: type[Section], found: dict[str, str]) -> dict[str, Any]:
    """The fields of the section that are a component's arguments."""
    name, left_out = FLAT[section]
    fields = {key: f for key, f in section.model_fields.items() if key not in left_out}
    summary = f"Arguments that are fields of ``{section.__name__}``."
    found[name] = _typed_dict(name, "TypedDict", summary, fields, docs_of(section))
    return fields


def _typed_dict(name: str, parent: str, summary: str, fields: Any, docs: dict[str, str]) -> str:
    lines = [f"class {name}({parent}):", textwrap.indent(f'"""{summary}"""\n', "    ")]
    for key, field in fields.items():
        kind = f"Input[{type_of(field.annotation)}]"
        kind = kind if field.is_required() else f"NotRequired[{kind}]"
        lines.append(f"    {key}: {kind}")
        if text := docs.get(key):
            lines.append(textwrap.indent(f'"""{inspect.cleandoc(text)}"""', "    "))
    return "\n".join(lines)


def type_of(annotation: Any) -> str:
    """The type of an argument, as source; what it may hold is the model's to check."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of(inner[0])
    if origin is Literal:
        return f"Literal{list(inner)}" if isinstance(inner[0], str) else type(inner[0]).__name__
    if origin in (Union, types.UnionType):
        return type_of(next(part for part in inner if part is not types.NoneType))
    if origin is list:
        return f"Sequence[Input[{type_of(inner[0])}]]"
    if origin is dict:
        return f"Mapping[str, Input[{type_of(inner[1])}]]"
    if annotation is datetime.datetime or "Datetime" in getattr(annotation, "__name__", ""):
        return "str"
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return f"{annotation.__name__}Args"
    return annotation.__name__


def docs_of(section: type[Section]) -> dict[str, str]:
    """Docstrings of fields, which stand below them in the source; those of a base class as well."""
    docs: dict[str, str] = {}
    for cls in reversed(section.__mro__):
        if not (issubclass(cls, Section) and cls is not Section):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        body = tree.body if isinstance(tree, ast.ClassDef) else []
        for field, text in itertools.pairwise(body):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    docs[name] = words
    return docs


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    return subprocess.run(
        [ruff, "format", "-q", "--stdin-filename", TARGET.name, "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


if __name__ == "__main__":
    sys.exit(generated.main(TARGET, generate, "tools.generate.component_args"))
