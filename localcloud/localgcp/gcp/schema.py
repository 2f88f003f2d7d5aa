"""Property trees of the resource types, from ``schema.json``, which was measured at the plugin."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final


@dataclass
class Property:
    """One property: Pulumi name, Terraform name (messages use it), flags, nested properties."""

    name: str
    tf: str
    type: str
    required: bool = False
    optional: bool = False
    computed: bool = False
    force_new: bool = False
    sensitive: bool = False
    auto_name: bool = False
    default: Any = None
    values: tuple[str, ...] = ()
    exactly_one_of: tuple[str, ...] = ()
    conflicts_with: tuple[str, ...] = ()
    has_unset: bool = False
    unset: Any = None
    # Deeper fields than schema.json lists exist: they pass unchecked.
    open: bool = False
    children: dict[str, Property] = field(default_factory=dict)

    @property
    def is_collection(self) -> bool:
        """Return whether the property is a list or a set."""
        return self.type.startswith(("list<", "set<"))

    @property
    def is_set(self) -> bool:
        """Return whether the property is a set, without order."""
        return self.type.startswith("set<")

    @property
    def is_object(self) -> bool:
        """Return whether the property is one nested object."""
        return self.type == "object"

    @property
    def input(self) -> bool:
        """Return whether a program can set the property."""
        return self.required or self.optional

    def zero(self) -> Any:
        """Return the plugin's value for an unset property."""
        if self.has_unset:
            return json.loads(json.dumps(self.unset))
        if self.is_collection:
            return []
        if self.type.startswith("map"):
            return {}
        return {"string": "", "bool": False, "int": 0, "number": 0}.get(self.type)


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The plugin's rules for one type that the schema lacks, from measurements."""

    longest_name: int = 63
    """Maximum length of an automatic name; the default is Compute Engine's maximum."""
    name_as_given: bool = False
    """True if automatic names keep upper case."""
    project_later: bool = False
    """True if ``project``, which the plugin fills in, is unknown until the resource exists."""
    deletion_policy_later: bool = False
    """True if ``deletionPolicy`` is unknown until the resource exists."""
    ignored_case: Collection[str] = ()
    """Properties whose values are compared without case."""
    new_when_changed: Collection[str] = ()
    """Blocks that the plugin stores as a set: any change inside recreates the whole block, so
    numbers and booleans that had their zero value are reported as deleted."""
    left_to_hook: Collection[str] = ()
    """Inputs with the location of content; ``ResourceType.changed`` compares the content."""
    updated_in_place: Collection[str] = ()
    """Fields that are updated although other changes of their block replace the resource."""
    rules: Mapping[str, Callable[[Any], str | None]] = field(default_factory=dict)
    """Property (dotted path without indices) -> check, which returns an error or None."""


_NO_TRAITS: Final = Traits()


@dataclass(frozen=True)
class TypeSchema:
    """The schema of a resource type, its id format, and measured traits of the official plugin."""

    token: str
    properties: Mapping[str, Property]
    id_format: str | None
    import_ids: tuple[str, ...]
    delete_before_replace: bool
    meta: str | None
    traits: Traits = _NO_TRAITS

    def by_tf(self, tf: str) -> Property:
        """Return the top-level property with this Terraform name."""
        return next(p for p in self.properties.values() if p.tf == tf)


def find(token: str) -> TypeSchema | None:
    """Return the resource type, or None if the stand-in does not support it."""
    raw = _document()["types"].get(token)
    return _build(token) if raw else None


def tokens() -> list[str]:
    """Return all resource types."""
    return list(_document()["types"])


def documented() -> list[str]:
    """Return resource types whose schema follows the documentation instead of a measurement."""
    return list(_document()["documented"])


@cache
def _document() -> dict[str, Any]:
    return json.loads(files("localgcp.gcp").joinpath("schema.json").read_text(encoding="utf-8"))


@cache
def _build(token: str) -> TypeSchema:
    raw = _document()["types"][token]
    roots: dict[str, Property] = {}
    by_path: dict[str, Property] = {}
    for row in raw["properties"]:
        path = row["name"].replace("[]", "")
        parent_path, _, name = path.rpartition(".")
        if row.get("more"):
            by_path[parent_path].open = True
            continue
        by_path[path] = _property(name, row)
        siblings = by_path[parent_path].children if parent_path else roots
        siblings[name] = by_path[path]
    return TypeSchema(
        token=token,
        properties=roots,
        id_format=raw.get("idFormat"),
        import_ids=tuple(raw.get("importIds", ())),
        delete_before_replace=raw["deleteBeforeReplace"],
        meta=raw["meta"],
    )


def _property(name: str, row: dict[str, Any]) -> Property:
    return Property(
        name=name,
        tf=row["tf"],
        type=row["type"],
        required=row.get("required", False),
        optional=row.get("optional", False),
        computed=row.get("computed", False),
        force_new=row.get("forceNew", False),
        sensitive=row.get("sensitive", False),
        auto_name=row.get("autoName", False),
        default=row.get("pulumiDefault", row.get("default")),
        values=tuple(row.get("values", ())),
        exactly_one_of=tuple(row.get("exactlyOneOf", ())),
        conflicts_with=tuple(row.get("conflictsWith", ())),
        has_unset="unset" in row,
        unset=row.get("unset"),
    )
