"""What a program with components registers, under Pulumi's mocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pulumi

from tests.unit.infra.recorder import Recorder

PROJECT = {"project": "local-training", "region": "us-central1"}
NUMBERED = {**PROJECT, "project_number": "971240389164"}


def registered(
    declare: Callable[[], Any], *, preview: bool = False
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name -> type and inputs of what ``declare`` registers."""
    return _record(Recorder(), declare, preview).registered


def components(declare: Callable[[], Any]) -> dict[str, dict[str, Any]]:
    """Name -> inputs of the components that ``declare`` registers in a preview."""
    return {name: inputs for name, (_, inputs) in components_with_types(declare).items()}


def components_with_types(declare: Callable[[], Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """The same, with the type of each."""
    return _record(_Components(), declare, True).registered


class _Components(Recorder):
    """Remembers our components alone; what is in one may have its name."""

    def new_resource(self, args: Any) -> Any:
        before = dict(self.registered)
        found = super().new_resource(args)
        if not args.typ.startswith("vertex-training:"):
            self.registered = before
        return found


def _record(recorder: Any, declare: Callable[[], Any], preview: bool) -> Any:
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "acme", "dev", preview=preview)

    @pulumi.runtime.test
    def run() -> None:
        declare()

    run()
    return recorder


def unknown() -> pulumi.Output[Any]:
    """What the service gives only once a resource was made."""

    async def of(value: Any) -> Any:
        return value

    return pulumi.Output(set(), of(None), of(False))
