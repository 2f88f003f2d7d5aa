"""The schema of the package ``gcp`` for the resource types of this stand-in.

Programs in Python and TypeScript have the official SDK. The host of YAML programs has no SDK: it
asks the plugin for the properties of each resource type
(https://www.pulumi.com/docs/iac/guides/building-extending/packages/schema/).
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from typing import Any, Final

from localgcp.gcp.schema import Property, find, tokens

_SCALARS = {"string": "string", "bool": "boolean", "int": "integer", "number": "number"}
_TEXT = {"type": "string"}
#: Inputs of an explicit provider by type (pulumi_gcp.Provider, 9.35.0 and 10.2.0), without
#: addresses of single services, which are outside of the local cloud.
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
    """Return the schema of all resource types and their nested types, as JSON values."""
    types: dict[str, Any] = {}
    resources: dict[str, Any] = {}
    for token in tokens():
        schema_type = find(token)
        assert schema_type is not None  # it is one of the tokens
        inputs = {
            name: property_ for name, property_ in schema_type.properties.items() if property_.input
        }
        resources[token] = {
            "inputProperties": _properties(token, inputs, types),
            # Pulumi names what has no name; the official schema does not require it either.
            "requiredInputs": sorted(
                name
                for name, property_ in inputs.items()
                if property_.required and not property_.auto_name
            ),
            "properties": _properties(token, schema_type.properties, types),
            "required": sorted(
                name for name, property_ in schema_type.properties.items() if property_.required
            ),
        }
    return {
        "name": "gcp",
        "version": version,
        "config": {"variables": {property_: _TEXT for property_ in ("project", "region")}},
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
    return {name: _type_of(token, property_, types) for name, property_ in properties.items()}


def _type_of(token: str, property_: Property, types: dict[str, Any]) -> dict[str, Any]:
    """Return the type of one property; adds nested objects to ``types``."""
    outer, _, inner = property_.type.removesuffix(">").partition("<")
    if outer == "map":
        return {"type": "object", "additionalProperties": {"type": _SCALARS[inner]}}
    if outer == "asset":
        return {"$ref": "pulumi.json#/Asset"}
    one = inner or outer
    item = _object(token, property_, types) if one == "object" else {"type": _SCALARS[one]}
    return {"type": "array", "items": item} if property_.is_collection else item


def _object(token: str, property_: Property, types: dict[str, Any]) -> dict[str, Any]:
    if property_.open and not property_.children:
        return {"$ref": "pulumi.json#/Any"}
    module, _, name = token.rpartition(":")
    path = f"{name}{property_.name[0].upper()}{property_.name[1:]}"
    # As the official package names them: gcp:storage/BucketCors:BucketCors.
    nested = f"{module.partition('/')[0]}/{path}:{path}"
    types[nested] = {
        "type": "object",
        "properties": _properties(nested, property_.children, types),
        "required": sorted(key for key, child in property_.children.items() if child.required),
    }
    return {"$ref": f"#/types/{nested}"}


#: Version of the official plugin whose behavior was measured.
MEASURED: Final = "9.35.0"
#: Major versions whose SDK sends the plugin the same inputs (decision 75).
_SERVED: Final = ("9.", "10.")


def version() -> str:
    """Return the version of the installed SDK, which the engine compares with the plugin's.

    A program in another language, or with an SDK that it does not serve, is told of the one that it
    was measured by.
    """
    try:
        installed = importlib.metadata.version("pulumi-gcp")
    except importlib.metadata.PackageNotFoundError:
        return MEASURED
    return installed if installed.startswith(_SERVED) else MEASURED
