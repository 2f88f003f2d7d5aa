"""Write ``infra/vertex_training/components/sections.pyi``: sections of a stack file as typed dicts.

``python -m tools.generate.component_args`` writes the file. ``components/sections.py`` creates
the typed dicts from the models of ``vertex_training.settings`` at run time; type checkers and
editors read the stub.
"""

from __future__ import annotations

import datetime
import inspect
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from vertex_training.components import sections
from vertex_training.components.sections import FLAT, MODELS, docs_of, flat_base
from vertex_training.settings.section import Section

TARGET: Final = Path(__file__).parents[2] / "infra/vertex_training/components/sections.pyi"
HEAD: Final = '''\
"""The sections of a stack file as typed dicts, for the arguments of components.

Written by ``python -m tools.generate.component_args`` from ``vertex_training.settings``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from pulumi import Input

from vertex_training.settings.section import Section

FLAT: Final[Mapping[type[Section], tuple[str, frozenset[str]]]]
MODELS: Final[Mapping[str, type[Section]]]

def docs_of(section: type[Section]) -> dict[str, str]: ...
def flat_base(section: type[Section]) -> type[Section] | None: ...
'''


def generate() -> str:
    """Return the text of the generated file."""
    text = "\n\n".join([HEAD, *map(_typed_dict, MODELS)])
    ruff = Path(sys.executable).with_name("ruff")
    command = [ruff, "format", "-q", "--stdin-filename", TARGET.name, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _typed_dict(name: str) -> str:
    section, section_class = MODELS[name], getattr(sections, name)
    flat = flat_base(section)
    parent = FLAT[flat][0] if flat and FLAT[flat][0] != name else "TypedDict"
    inherited = getattr(sections, parent).__annotations__ if parent != "TypedDict" else {}
    summary, docs = inspect.cleandoc(section_class.__doc__ or ""), docs_of(section)
    lines = [f"class {name}({parent}):", textwrap.indent(f'"""{summary}"""\n', "    ")]
    for key, field in section.model_fields.items():
        if key not in section_class.__annotations__ or key in inherited:
            continue
        kind = f"Input[{type_of(field.annotation)}]"
        kind = kind if field.is_required() else f"NotRequired[{kind}]"
        lines.append(f"    {key}: {kind}")
        if text := docs.get(key):
            lines.append(textwrap.indent(f'"""{inspect.cleandoc(text)}"""', "    "))
    return "\n".join(lines)


def type_of(annotation: Any) -> str:
    """Return the type of an argument as source code. The model validates the argument's content."""
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


if __name__ == "__main__":
    TARGET.write_text(generate(), encoding="utf-8")
