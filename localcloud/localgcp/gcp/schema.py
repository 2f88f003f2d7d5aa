"""Property trees of the resource types (``schema.json``), and Pulumi's package schema."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final


@dataclass
class Property:
    """One property with its Pulumi name, its Terraform name and its nested properties."""

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
    values: Sequence[str] = ()
    exactly_one_of: Sequence[str] = ()
    conflicts_with: Sequence[str] = ()
    has_unset: bool = False
    unset: Any = None
    # True if the property has nested fields that schema.json does not list.
    open: bool = False
    children: dict[str, Property] = field(default_factory=dict)

    @property
    def is_collection(self) -> bool:
        """Return whether the property is a list or a set."""
        return self.type.startswith(("list<", "set<"))

    @property
    def is_set(self) -> bool:
        """Return whether the property is a set."""
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
        """Return the official plugin's value for an unset property."""
        if self.has_unset:
            return json.loads(json.dumps(self.unset))
        if self.is_collection:
            return []
        if self.type.startswith("map"):
            return {}
        return {"string": "", "bool": False, "int": 0, "number": 0}.get(self.type)


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Measured behavior of the official plugin for one type, which the schema does not describe."""

    longest_name: int = 63
    """Maximum length of an automatic name; the default is Compute Engine's maximum."""
    name_as_given: bool = False
    """True if automatic names keep upper case."""
    project_later: bool = False
    """True if ``project`` is unknown until the resource exists."""
    deletion_policy_later: bool = False
    """True if ``deletionPolicy`` is unknown until the resource exists."""
    ignored_case: Collection[str] = ()
    """Properties whose values are compared without case."""
    new_when_changed: Collection[str] = ()
    """Blocks that the plugin stores as sets. Any change inside recreates the whole block, so the
    plugin reports numbers and booleans with zero values as deleted.
    """
    left_to_hook: Collection[str] = ()
    """Inputs that ``ResourceType.changed`` compares instead of the generic comparison."""
    updated_in_place: Collection[str] = ()
    """Fields whose changes update the resource although other changes of the block replace it."""
    rules: Mapping[str, Callable[[Any], str | None]] = field(default_factory=dict)
    """Dotted path of a property without indices -> check that returns an error or None."""


@dataclass(frozen=True)
class TypeSchema:
    """The schema of one resource type."""

    token: str
    properties: Mapping[str, Property]
    id_format: str | None
    import_ids: tuple[str, ...]
    delete_before_replace: bool
    meta: str | None
    traits: Traits = field(default_factory=Traits)

    def by_tf(self, tf: str) -> Property:
        """Return the top-level property with this Terraform name."""
        return next(p for p in self.properties.values() if p.tf == tf)


def find(token: str) -> TypeSchema | None:
    """Return the schema of a resource type; None if the plugin does not support the type."""
    return _build(token) if token in _document()["types"] else None


def tokens() -> list[str]:
    """Return the tokens of all resource types."""
    return list(_document()["types"])


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
    other = ("name", "minItems", "maxItems")
    fields = {
        re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key): value
        for key, value in row.items()
        if key not in other
    }
    return Property(name, has_unset="unset" in row, **fields)


_SCALARS = {"string": "string", "bool": "boolean", "int": "integer", "number": "number"}
_TEXT = {"type": "string"}
#: Inputs of pulumi_gcp.Provider (9.35.0 and 10.2.0) by type, without the addresses of services.
_OF_PROVIDER = (
    (
        _TEXT,
        "accessToken billingProject credentials deletionPolicy googlePartnerName "
        "impersonateServiceAccount pollInterval project pulumiAttributionLabelAdditionStrategy "
        "region requestReason requestTimeout universeDomain zone",
    ),
    (
        {"type": "boolean"},
        "addPulumiAttributionLabel disableGooglePartnerName preferGlobalEndpoints "
        "preferRegionalEndpoints userProjectOverride",
    ),
    ({"type": "array", "items": _TEXT}, "impersonateServiceAccountDelegates scopes"),
    ({"type": "object", "additionalProperties": _TEXT}, "defaultLabels"),
)


def package_schema(version: str) -> dict[str, Any]:
    """Return Pulumi's package schema of all resource types, which the YAML host requests.

    https://www.pulumi.com/docs/iac/guides/building-extending/packages/schema/
    """
    types: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for token in tokens():
        properties = _build(token).properties
        inputs = {name: prop for name, prop in properties.items() if prop.input}
        resources[token] = {
            "inputProperties": _properties(token, inputs, types),
            # Names that Pulumi generates are not required, as in the official schema.
            "requiredInputs": sorted(
                name for name, prop in inputs.items() if prop.required and not prop.auto_name
            ),
            "properties": _properties(token, properties, types),
            "required": sorted(name for name, prop in properties.items() if prop.required),
        }
    return {
        "name": "gcp",
        "version": version,
        "config": {"variables": {"project": _TEXT, "region": _TEXT}},
        "provider": {
            "inputProperties": {
                name: type_ for type_, names in _OF_PROVIDER for name in names.split()
            },
        },
        "types": types,
        "resources": resources,
    }


def _properties(
    token: str, properties: Mapping[str, Property], types: dict[str, Any]
) -> dict[str, Any]:
    return {name: _type_of(token, prop, types) for name, prop in properties.items()}


def _type_of(token: str, prop: Property, types: dict[str, Any]) -> dict[str, Any]:
    outer, _, inner = prop.type.removesuffix(">").partition("<")
    if outer == "map":
        return {"type": "object", "additionalProperties": {"type": _SCALARS[inner]}}
    if outer == "asset":
        return {"$ref": "pulumi.json#/Asset"}
    one = inner or outer
    item = _object(token, prop, types) if one == "object" else {"type": _SCALARS[one]}
    return {"type": "array", "items": item} if prop.is_collection else item


def _object(token: str, prop: Property, types: dict[str, Any]) -> dict[str, Any]:
    if prop.open and not prop.children:
        return {"$ref": "pulumi.json#/Any"}
    module, _, name = token.rpartition(":")
    path = f"{name}{prop.name[0].upper()}{prop.name[1:]}"
    # The official package names nested types so: gcp:storage/BucketCors:BucketCors.
    nested = f"{module.partition('/')[0]}/{path}:{path}"
    types[nested] = {
        "type": "object",
        "properties": _properties(nested, prop.children, types),
        "required": sorted(key for key, child in prop.children.items() if child.required),
    }
    return {"$ref": f"#/types/{nested}"}


#: Version of the official plugin whose behavior was measured.
MEASURED: Final = "9.35.0"


def version() -> str:
    """Return the version of the installed SDK if supported (decision 75), or else ``MEASURED``."""
    try:
        installed = importlib.metadata.version("pulumi-gcp")
    except importlib.metadata.PackageNotFoundError:
        return MEASURED
    return installed if installed.startswith(("9.", "10.")) else MEASURED
