"""Serves the policies to the engine with Pulumi's policy SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pulumi_policy import (  # pyright: ignore[reportMissingImports] - lives in .venv/policy only
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    Severity,
)
from pulumi_policy.proxy import UnknownValueError  # pyright: ignore[reportMissingImports]

from vertex_training.guardrails.policy import UNKNOWN, Policy, Resource, load
from vertex_training.plugin_callers import guard_servers

#: Name of the pack in reports.
NAME: Final = "training-guardrails"

#: Type of a setting's default -> JSON Schema.
SCHEMAS: Final[Mapping[type, dict[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "number"},
    list: {"type": "array", "items": {"type": "string"}},
    dict: {"type": "object", "additionalProperties": {"type": "string"}},
}


def serve() -> None:
    """Serve all policies until the engine ends this process. By default they are mandatory."""
    guard_servers()
    PolicyPack(
        NAME,
        enforcement_level=EnforcementLevel.MANDATORY,
        policies=[to_sdk_policy(policy) for policy in load()],
    )


def to_sdk_policy(policy: Policy) -> ResourceValidationPolicy:
    """Convert a policy to the SDK's class. Its settings become configuration."""
    schema = {key: SCHEMAS[type(default)] for key, default in policy.settings.items()}
    return ResourceValidationPolicy(
        name=policy.id,
        description=policy.what,
        validate=_validate(policy),
        config_schema=PolicyConfigSchema(properties=schema),
        severity=Severity(policy.severity),
        tags=list(policy.standards),
        remediation_steps=policy.why,
        url=policy.url,
    )


def _validate(policy: Policy) -> Callable[[ResourceValidationArgs, Callable[[str], None]], None]:
    def validate(args: ResourceValidationArgs, report: Callable[[str], None]) -> None:
        for violation in policy.violations(to_resource(args), args.get_config()):
            report(violation)

    return validate


def to_resource(args: ResourceValidationArgs) -> Resource:
    """Convert the engine's view of a resource. Values not yet known become ``UNKNOWN``.

    The stack's name is part of the URN: ``urn:pulumi:STACK::PROJECT::TYPE::NAME``.
    """
    return Resource(
        type=args.resource_type,
        name=args.name,
        props=to_plain(args.props),
        stack=args.urn.split(":", 3)[2],
        protect=args.opts.protect,
    )


def to_plain(value: Any) -> Any:
    """Convert inputs from the SDK's proxies, which raise errors on access to unknown values."""
    if isinstance(value, Mapping):
        return {key: _item(value, key) for key in value}
    if hasattr(value, "__len__") and not isinstance(value, str | bytes):
        return [_item(value, index) for index in range(len(value))]
    return value


def _item(container: Any, key: Any) -> Any:
    try:
        return to_plain(container[key])
    except UnknownValueError:
        return UNKNOWN
