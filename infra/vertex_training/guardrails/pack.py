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

#: JSON Schemas of settings, by the type of the setting's default.
SCHEMAS: Final[Mapping[type, dict[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "number"},
    list: {"type": "array", "items": {"type": "string"}},
    dict: {"type": "object", "additionalProperties": {"type": "string"}},
}


def serve() -> None:
    """Serve all policies until the engine ends this process. The default level is mandatory."""
    guard_servers()
    PolicyPack(
        NAME,
        enforcement_level=EnforcementLevel.MANDATORY,
        policies=[to_sdk_policy(policy) for policy in load()],
    )


def to_sdk_policy(policy: Policy) -> ResourceValidationPolicy:
    """Convert a policy to the SDK's class. The policy's settings become configuration."""
    schema = {key: SCHEMAS[type(default)] for key, default in policy.settings.items()}
    return ResourceValidationPolicy(
        name=policy.id,
        description=policy.what,
        validate=lambda args, report: _report_violations(policy, args, report),
        config_schema=PolicyConfigSchema(properties=schema),
        severity=Severity(policy.severity),
        tags=list(policy.standards),
        remediation_steps=policy.why,
        url=policy.url,
    )


def _report_violations(
    policy: Policy, args: ResourceValidationArgs, report: Callable[[str], None]
) -> None:
    for violation in policy.violations(to_resource(args), args.get_config()):
        report(violation)


def to_resource(args: ResourceValidationArgs) -> Resource:
    """Convert a resource of the SDK. Unknown values become ``UNKNOWN``."""
    return Resource(
        type=args.resource_type,
        name=args.name,
        props=to_plain(args.props),
        stack=args.urn.split(":", 3)[2],  # urn:pulumi:STACK::PROJECT::TYPE::NAME
        protect=args.opts.protect,
    )


def to_plain(value: Any) -> Any:
    """Convert the SDK's proxies, which raise errors for unknown values, to plain inputs."""
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
