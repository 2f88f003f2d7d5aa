"""Programs with components as functions, run by Pulumi's Automation API on a local cloud."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from tests.conftest import ROOT, Checkout

REGION = "us-central1"
#: A request that needs nothing but an account.
SPEC: dict[str, Any] = {
    "workerPoolSpecs": [
        {
            "machineSpec": {"machineType": "n1-standard-4"},
            "replicaCount": 1,
            "containerSpec": {"imageUri": "python:3.11", "command": ["sleep", "600"]},
        }
    ],
    "scheduling": {"timeout": "900s"},
}


@dataclass(frozen=True)
class InlinePrograms:
    """A folder with a local cloud; this process has the environment of its shell."""

    checkout: Checkout

    def stack(
        self, program: Callable[[], Any], name: str = "dev", project: str = "acme"
    ) -> automation.Stack:
        """Return a stack of the program in a Pulumi project of its own."""
        return automation.create_or_select_stack(
            stack_name=name,
            project_name=project,
            program=program,
            opts=automation.LocalWorkspaceOptions(work_dir=str(self._folder(project))),
        )

    def _folder(self, project: str) -> Path:
        folder = self.checkout.path / project
        folder.mkdir(exist_ok=True)
        return folder


@contextmanager
def running(folder: Path) -> Iterator[InlinePrograms]:
    """Yield a running local cloud in the folder, for this process and its engines."""
    (folder / ".venv").symlink_to(ROOT / ".venv")
    checkout = Checkout(folder, folder / ".vt-local")
    checkout.run("vt", "local", "start")
    try:
        with pytest.MonkeyPatch.context() as patch:
            printed = checkout.shell("env -0").stdout
            for name, _, value in (line.partition("=") for line in printed.split("\0") if line):
                patch.setitem(os.environ, name, value)
            patch.chdir(folder)
            yield InlinePrograms(checkout)
    finally:
        checkout.run("vt", "local", "down", "--clean")


def resources(stack: automation.Stack) -> Mapping[str, dict[str, Any]]:
    """Return the resources in the state, by URN."""
    return {each["urn"]: each for each in stack.export_stack().deployment["resources"]}
