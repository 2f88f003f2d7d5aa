"""Converts requests and answers of the plugin protocol: settings, names, refreshes, diffs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pulumi.runtime.proto import provider_pb2

from localgcp.gcp import diff
from localgcp.gcp.codec import Secret, plain
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import TypeSchema

_KINDS: Final = {
    ("add", False): provider_pb2.PropertyDiff.ADD,
    ("add", True): provider_pb2.PropertyDiff.ADD_REPLACE,
    ("delete", False): provider_pb2.PropertyDiff.DELETE,
    ("delete", True): provider_pb2.PropertyDiff.DELETE_REPLACE,
    ("update", False): provider_pb2.PropertyDiff.UPDATE,
    ("update", True): provider_pb2.PropertyDiff.UPDATE_REPLACE,
}
_META: Final = "__meta"


def settings(given: dict[str, Any], environment: Mapping[str, str]) -> Settings:
    """Return settings from the provider's configuration, else from the environment."""
    labels = given.get("defaultLabels") or {}
    attribution = given.get("addPulumiAttributionLabel", True)
    return Settings(
        project=given.get("project") or environment.get("GOOGLE_PROJECT", ""),
        region=given.get("region") or environment.get("GOOGLE_REGION", ""),
        zone=given.get("zone") or environment.get("GOOGLE_ZONE", ""),
        default_labels=json.loads(labels) if isinstance(labels, str) else labels,
        attribution=str(attribution).lower() != "false",
    )


def resource_name(request: Any) -> str:
    """Return the resource's name in the program."""
    return request.name or request.urn.split("::")[3]


def ignore_changes(paths: Any, news: dict[str, Any], olds: dict[str, Any]) -> None:
    """Restore the old inputs of the properties whose changes the program ignores."""
    for path in paths:
        top = path.replace("[", ".").partition(".")[0]
        if top in olds:
            news[top] = olds[top]
        else:
            news.pop(top, None)


def with_meta(type_: TypeSchema, outputs: dict[str, Any]) -> dict[str, Any]:
    """Return the outputs with Terraform's metadata, which the plugin adds to each state."""
    return {**outputs, _META: type_.meta} if type_.meta else outputs


def mark_secrets(type_: TypeSchema, outputs: dict[str, Any]) -> dict[str, Any]:
    """Mark secrets in outputs from the store, which has no markers."""
    return {
        name: Secret(plain(value))
        if name in type_.properties and type_.properties[name].sensitive
        else value
        for name, value in outputs.items()
    }


def is_placeholder(value: Any) -> bool:
    """Return whether the stored value is only a placeholder for an asset or a secret."""
    return isinstance(value, dict) and "asset" in value


def known_asset(value: Any, before: Any) -> Any:
    """Return the stored value, or the engine's value if the stored value is a placeholder."""
    return before if is_placeholder(value) else value


def drifted(
    type_: TypeSchema,
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    settings: Settings,
) -> dict[str, Any]:
    """Return the inputs, with current values where the cloud changed them."""
    result = dict(inputs)
    for change in diff.changes(type_, inputs, outputs, settings, lambda _news, _olds: []):
        prop = type_.properties.get(change.top)
        if prop and prop.input and change.top in inputs and change.top != "source":
            result[change.top] = outputs.get(change.top)
    return result


def diff_response(type_: TypeSchema, news: dict[str, Any], found: list[diff.Change]) -> Any:
    """Return the response to the engine's Diff call."""
    if not found:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
    replaces = sorted({change.top for change in found if change.replace})
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and diff.delete_first(type_, news),
        diffs=sorted({change.top for change in found}),
        detailedDiff={
            c.path: provider_pb2.PropertyDiff(kind=_KINDS[c.kind, c.replace]) for c in found
        },
        hasDetailedDiff=True,
    )
