"""Two models and two endpoints beside each other: who waits for whom, and what the stack says."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest
from pulumi.runtime.mocks import MockMonitor

from tests.unit.infra.recorder import Recorder
from tests.unit.infra.stacks import BASE
from vertex_training.components.scope import TOP
from vertex_training.components.serving import Serving, make_serving, serving_outputs
from vertex_training.stack import Stack, from_raw

JOB: Final = """\
serviceAccount: given-1@acme-ml-prod.iam.gserviceaccount.com
scheduling: {timeout: 3600s}
baseOutputDirectory: {outputUriPrefix: "gs://acme-theirs/${job.name}"}
workerPoolSpecs:
- machineSpec: {machineType: n1-standard-8}
  containerSpec: {imageUri: "python:3.11"}
"""


class Program:
    """What ``make_serving`` registers for a stack, and what comes of it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root, self.recorder = root, Recorder()
        self.waits: dict[str, set[str]] = {}
        self.parents: dict[str, str] = {}
        self.ignored: dict[str, list[str]] = {}
        self.outputs: dict[str, Any] = {}
        self.made: list[Serving] = []
        register = MockMonitor.RegisterResource

        def record(monitor: MockMonitor, request: Any) -> Any:
            self.waits[request.name] = {urn.rpartition("::")[2] for urn in request.dependencies}
            self.parents[request.name] = request.parent.rpartition("::")[2]
            self.ignored[request.name] = list(request.ignoreChanges)
            return register(monitor, request)

        patch.setattr(MockMonitor, "RegisterResource", record)

    def stack(self, **sections: Any) -> Stack:
        (self.root / "t.yaml").write_text(JOB)
        return from_raw(BASE | sections, self.root)

    def __call__(self, stack: Stack) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        pulumi.runtime.set_mocks(self.recorder, "training", "prod", preview=False)

        @pulumi.runtime.test
        def run() -> pulumi.Output[Any]:
            first = pulumi.ComponentResource("test:first:First", "first")
            inside = pulumi.ResourceOptions(parent=first)
            pulumi.CustomResource("test:first:Inner", "inner", opts=inside)
            self.made = make_serving(TOP, stack, "acme-control", [first])
            found = serving_outputs(stack, self.made)
            return pulumi.Output.from_input(found).apply(self.outputs.update)

        run()

    def inputs(self, name: str) -> Any:
        return self.recorder.registered[name][1]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    return Program(tmp_path, monkeypatch)
