"""What the program registers today for a change, without an engine, beside what was recorded.

A recorded plan is stale if the program would register another resource, or another input, than
the engine was given when the plan was recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pulumi

from tests.golden.changes import LARGE_JOB, LARGE_STACK, Change, edited
from tests.unit.infra.recorder import Recorder
from vertex_training import program, stack
from vertex_training_cli.engine.plan import Plan, Step

#: What the resource plugin adds to the inputs that it is given: type of resource -> inputs.
FILLED_IN: Final[Mapping[str, frozenset[str]]] = {
    "Repository": frozenset({"mode"}),
    "Network": frozenset({"networkFirewallPolicyEnforcementOrder"}),
    "Firewall": frozenset({"priority"}),
    "Subnetwork": frozenset({"logConfig"}),
}
#: Inputs that the engine takes away before a plan shows them.
INTERNAL: Final = frozenset({"__provider"})


def of_change(change: Change, folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Inputs of all resources by name, as the program registers them with the change."""
    return {name: inputs for name, (_, inputs) in with_types(change, folder).items()}


def with_types(
    change: Change, folder: Path, stack_file: str = LARGE_STACK, job: str = LARGE_JOB
) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """Type and inputs of all resources by name, of a stack with the change."""
    (folder / "jobs").mkdir()
    check = edited(job, change.job if change.all_jobs else ())
    for path, text in (
        ("Pulumi.local.yaml", edited(stack_file, change.stack)),
        ("jobs/train.yaml", edited(job, change.job)),
        ("jobs/check.yaml", check),
    ):
        (folder / path).write_text(text)
    recorder = Recorder()
    asyncio.set_event_loop(asyncio.new_event_loop())
    pulumi.runtime.set_mocks(recorder, "vertex-training", "local")

    @pulumi.runtime.test
    def run() -> None:
        program.deploy(stack.load(folder, "local"))

    run()
    return recorder.registered


def differences(plan: Plan, registered: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Where a recorded plan has something else than what the program registers."""
    steps = {step.urn.rpartition("::")[2]: step for step in plan.steps if step.new is not None}
    steps.pop(f"vertex-training-{plan.stack}", None)
    names = {name for name in registered if name != f"vertex-training-{plan.stack}"}
    # A preview that failed ends where it failed: what it has must be right all the same.
    missing = names - set(steps) if plan.succeeded else set()
    gone = set(steps) - names
    told = [f"{name}: not in the plan" for name in sorted(missing)]
    told += [f"{name}: no longer registered" for name in sorted(gone)]
    for name in sorted(names & set(steps)):
        told += _inputs(steps[name], registered[name], names)
    return told


def _inputs(step: Step, registered: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    name, recorded = step.name, step.new.inputs if step.new else {}
    filled_in = FILLED_IN.get(step.type.rpartition(":")[2], frozenset())
    for key in sorted({*recorded, *registered} - INTERNAL - filled_in):
        same = recorded.get(key) == registered.get(key)
        if not same and not _is_of_mocks(registered.get(key), names):
            yield f"{name}.{key}: {recorded.get(key)!r} in the plan, {registered.get(key)!r} now"


def _is_of_mocks(value: Any, names: set[str]) -> bool:
    """Whether it is an id that a mock gave, or a list of such."""
    if isinstance(value, list):
        return bool(value) and all(_is_of_mocks(each, names) for each in value)
    return isinstance(value, str) and value.removesuffix("-id") in names and value.endswith("-id")
