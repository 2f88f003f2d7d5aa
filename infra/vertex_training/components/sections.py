"""Typed dicts of the sections of a stack file, for arguments of components.

Type checkers and editors read ``sections.pyi``, which ``python -m tools.generate.component_args``
writes. Annotations are objects, since Pulumi's component provider host reads them.
"""

import ast
import datetime
import functools
import inspect
import itertools
import textwrap
import types
from collections.abc import Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    TypedDict,
    Union,
    get_args,
    get_origin,
)

from pulumi import Input

from vertex_training.settings.model import JobOptions, Settings
from vertex_training.settings.network import Reservation
from vertex_training.settings.reader import section_in
from vertex_training.settings.section import Section

#: Keys of a stack file that only ``vt`` reads, or that are separate arguments of components.
LEFT_OUT: Final = frozenset(
    {"project", "region", "project_number"}
    | {"stack", "include", "overrides", "drift", "policy_levels"}
)
#: Section whose fields are arguments of a component -> name of the typed dict, excluded fields.
FLAT: Final[dict[type[Section], tuple[str, frozenset[str]]]] = {
    Reservation: ("ReservationFields", frozenset({"formerly", "project"})),
    JobOptions: ("JobFields", frozenset({"formerly"})),
    Settings: ("EnvironmentFields", LEFT_OUT),
}
#: Typed dict -> its section. Inner sections come before outer sections.
MODELS: Final[dict[str, type[Section]]] = {}


@functools.cache
def docs_of(section: type[Section]) -> dict[str, str]:
    """Return the docstrings of fields by name, including those of base classes."""
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


def flat_base(section: type[Section]) -> type[Section] | None:
    """Return the base class of ``section`` whose fields are arguments of a component, or None."""
    return next((cls for cls in section.__mro__ if cls in FLAT), None)


def _declare(section: type[Section]) -> None:
    name, flat = f"{section.__name__}Args", flat_base(section)
    if section is Section or name in MODELS:
        return
    for field in section.model_fields.values():
        _declare(section_in(field.annotation)[0])
    base = _declare_flat(flat) if flat else TypedDict
    inherited = getattr(base, "__annotations__", {})
    own = {key for key in section.model_fields if key not in inherited}
    _add(name, base, section, own, inspect.cleandoc(section.__doc__ or ""))


def _declare_flat(section: type[Section]) -> Any:
    name, left_out = FLAT[section]
    own = section.model_fields.keys() - left_out
    summary = f"Arguments from the fields of ``{section.__name__}``."
    return _add(name, TypedDict, section, own, summary)


def _add(name: str, base: Any, section: type[Section], own: Any, summary: str) -> Any:
    annotations = {}
    for key, field in section.model_fields.items():
        if key in own:
            kind: Any = Input[_type_of(field.annotation)]
            annotations[key] = kind if field.is_required() else NotRequired[kind]
    content = {"__annotations__": annotations, "__module__": __name__, "__doc__": summary}
    MODELS[name] = section
    globals()[name] = typed_dict = types.new_class(
        name, (base,), {}, lambda names: names.update(content)
    )
    return typed_dict


def _type_of(annotation: Any) -> Any:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_of(inner[0])
    if origin is Literal:
        return annotation if isinstance(inner[0], str) else type(inner[0])
    if origin in (Union, types.UnionType):
        return _type_of(next(part for part in inner if part is not types.NoneType))
    if origin is list:
        return Sequence[Input[_type_of(inner[0])]]
    if origin is dict:
        return Mapping[str, Input[_type_of(inner[1])]]
    if annotation is datetime.datetime or "Datetime" in getattr(annotation, "__name__", ""):
        return str
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return globals()[f"{annotation.__name__}Args"]
    return annotation


for _name, _field in Settings.model_fields.items():
    if _name not in LEFT_OUT:
        _declare(section_in(_field.annotation)[0])
_declare_flat(Settings)
