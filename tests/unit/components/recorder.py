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
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "acme", "dev", preview=preview)

    @pulumi.runtime.test
    def run() -> None:
        declare()

    run()
    return recorder.registered


def unknown() -> pulumi.Output[Any]:
    """What the service gives only once a resource was made."""

    async def of(value: Any) -> Any:
        return value

    return pulumi.Output(set(), of(None), of(False))
