"""Compute the outputs of a resource in a preview and after a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from localgcp.gcp.check import DEFAULTS
from localgcp.gcp.codec import UNKNOWN, Secret, has_secret, has_unknown, plain
from localgcp.gcp.schema import Property, TypeSchema

ATTRIBUTION: Final = {"goog-pulumi-provisioned": "true"}
LABEL_OUTPUTS: Final = ("effectiveLabels", "pulumiLabels")


@dataclass(frozen=True)
class Settings:
    """The provider's configuration (``gcp:project``, ``gcp:region``, …)."""

    project: str = ""
    region: str = ""
    zone: str = ""
    default_labels: Mapping[str, str] = field(default_factory=dict)
    attribution: bool = True

    def labels(self, own: Any) -> Any:
        """Return all labels of a resource with the labels ``own``; UNKNOWN if one is unknown."""
        if has_unknown(own):
            return UNKNOWN
        return {
            **(ATTRIBUTION if self.attribution else {}),
            **self.default_labels,
            **(plain(own) or {}),
        }


def preview(
    type_: TypeSchema, inputs: Mapping[str, Any], settings: Settings, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the outputs of a planned resource; ``known`` has predicted outputs."""
    result: dict[str, Any] = {}
    for name, prop in type_.properties.items():
        if inputs.get(name) is not None:
            result[name] = _fill(prop, inputs[name], None, planning=True)
            continue
        value = known.get(name, _foretold(type_, prop, inputs, settings))
        if value is not None:
            result[name] = value
    return _marked(type_, inputs, result)


def updated(
    type_: TypeSchema,
    inputs: Mapping[str, Any],
    olds: Mapping[str, Any],
    settings: Settings,
    computed: Mapping[str, Any],
    *,
    planning: bool,
) -> dict[str, Any]:
    """Return the outputs after a change of a resource with the outputs ``olds`` (empty if new)."""
    result: dict[str, Any] = {}
    for name, prop in type_.properties.items():
        if name in computed:
            result[name] = computed[name]
        elif inputs.get(name) is not None:
            result[name] = _fill(prop, inputs[name], plain(olds.get(name)), planning=planning)
        elif name in LABEL_OUTPUTS:
            result[name] = settings.labels(inputs.get("labels"))
        elif prop.computed and name in olds:
            result[name] = plain(olds[name])
        elif prop.default is not None:
            result[name] = prop.default
        else:
            result[name] = prop.zero()
    return _marked(type_, inputs, result)


def _foretold(
    type_: TypeSchema, prop: Property, inputs: Mapping[str, Any], settings: Settings
) -> Any:
    # None means that the official plugin omits the unset property from the preview.
    if prop.name in LABEL_OUTPUTS:
        return settings.labels(inputs.get("labels"))
    if prop.computed:
        if prop.name == "project" and prop.optional and not type_.traits.project_later:
            return settings.project or UNKNOWN
        if prop.name == "deletionPolicy" and not type_.traits.deletion_policy_later:
            return "DELETE"
        return UNKNOWN
    if prop.default is not None:
        return prop.default
    if prop.type in ("list<object>", "set<object>"):
        return []
    return None


def _fill(prop: Property, value: Any, old: Any, *, planning: bool) -> Any:
    value = plain(value)
    if prop.is_object and isinstance(value, dict):
        return _fill_object(prop, value, old, planning=planning)
    if prop.type.endswith("<object>") and isinstance(value, list):
        olds = old if isinstance(old, list) else []
        filled = [
            _fill_object(prop, item, olds[i] if i < len(olds) else None, planning=planning)
            if isinstance(item, dict)
            else item
            for i, item in enumerate(value)
        ]
        if prop.is_set and not planning and all(isinstance(f, dict) and "id" in f for f in filled):
            # The cloud returns a set in a stable order, which differs from the program's order.
            filled.sort(key=lambda item: item["id"])
        return filled
    return value


def _fill_object(prop: Property, value: dict[str, Any], old: Any, *, planning: bool) -> Any:
    olds = old if isinstance(old, dict) else {}
    result = {k: v for k, v in value.items() if k != DEFAULTS and k not in prop.children}
    for name, child in prop.children.items():
        if value.get(name) is not None:
            result[name] = _fill(child, value[name], olds.get(name), planning=planning)
        elif child.computed and name in olds:
            result[name] = olds[name]
        elif child.default is not None:
            result[name] = child.default
        elif not planning:
            result[name] = child.zero()
        elif child.computed:
            result[name] = UNKNOWN
    return result


def _marked(
    type_: TypeSchema, inputs: Mapping[str, Any], outputs: dict[str, Any]
) -> dict[str, Any]:
    return {
        name: Secret(value)
        if type_.properties[name].sensitive or has_secret(inputs.get(name))
        else value
        for name, value in outputs.items()
    }
