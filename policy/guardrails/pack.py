"""The policies as Pulumi's SDK for policies serves them to the engine."""

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
from pulumi_policy.proxy import (  # pyright: ignore[reportMissingImports]
    UnknownValueError,
)

from guardrails.policy import UNKNOWN, Policy, Resource, load

NAME: Final = "training-guardrails"

#: JSON Schema of a setting, by the type of its default.
SCHEMAS: Final[Mapping[type, dict[str, Any]]] = {
    bool: {"type": "boolean"},
    int: {"type": "number"},
    list: {"type": "array", "items": {"type": "string"}},
    dict: {"type": "object", "additionalProperties": {"type": "string"}},
}


def serve() -> None:
    """Serve all policies, mandatory unless the engine was given other levels; does not return."""
    PolicyPack(
        NAME,
        enforcement_level=EnforcementLevel.MANDATORY,
        policies=[served(policy) for policy in load()],
    )


def served(policy: Policy) -> ResourceValidationPolicy:
    """One policy, with its settings as its configuration."""
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
        for violation in policy.violations(resource(args), args.get_config()):
            report(violation)

    return validate


def resource(args: ResourceValidationArgs) -> Resource:
    """What the engine says of a resource, with unknown values in place.

    The stack is read off the URN: ``urn:pulumi:STACK::PROJECT::TYPE::NAME``.
    """
    return Resource(
        type=args.resource_type,
        name=args.name,
        props=plain(args.props),
        stack=args.urn.split(":", 3)[2],
        protect=args.opts.protect,
    )


def plain(value: Any) -> Any:
    """Inputs without the SDK's proxies, which raise where a preview does not know a value."""
    if isinstance(value, Mapping):
        return {key: _item(value, key) for key in value}
    if hasattr(value, "__len__") and not isinstance(value, str | bytes):
        return [_item(value, index) for index in range(len(value))]
    return value


def _item(container: Any, key: Any) -> Any:
    try:
        return plain(container[key])
    except UnknownValueError:
        return UNKNOWN
