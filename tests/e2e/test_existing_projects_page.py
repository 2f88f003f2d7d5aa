"""Tests the programs of docs/examples/existing-project, in their order, and the page's own test."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from tests.conftest import ROOT
from tests.e2e.inline_programs import REGION, InlinePrograms, resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PROJECT = "local-existing"
PAGE = (ROOT / "docs" / "examples" / "existing-project" / "README.md").read_text(encoding="utf-8")
#: Heading -> code below it.
CODE = dict(re.findall(r"^## ([^\n]*)\n[^#]*?```python\n(.*?)```", PAGE, re.M | re.S))
BUCKET, JOB = "gcp:storage/bucket:Bucket", "pulumi-python:dynamic/vertex:CustomJob"


class Program:
    """The code below some headings of the page, as one program."""

    def __init__(self) -> None:
        self.headings: tuple[str, ...] = ("The existing program",)

    def __call__(self) -> None:
        exec(compile("\n".join(CODE[each] for each in self.headings), "page", "exec"), {})


def ids_of(stack: automation.Stack) -> dict[str, str]:
    """Return ids of the model bucket and of the job."""
    states = [each for each in resources(stack).values() if each["type"] in (BUCKET, JOB)]
    return {
        each["type"]: each["id"]
        for each in states
        if "models" in each["urn"] or each["type"] == JOB
    }


def changes(stack: automation.Stack) -> dict[Any, int]:
    return dict(stack.up().summary.resource_changes or {})


def test_project_adopts_component_moves_bucket_and_leaves(programs: InlinePrograms) -> None:
    program = Program()
    stack = programs.stack(program)
    stack.set_config("gcp:project", automation.ConfigValue(PROJECT))
    stack.set_config("gcp:region", automation.ConfigValue(REGION))
    changes(stack)

    program.headings = ("The existing program", "Adopt one component")
    assert changes(stack)["create"] == 3  # the component, the one inside, and the job
    before = ids_of(stack)
    assert set(before) == {BUCKET, JOB}

    managed = CODE["The existing program"].replace("models = ", "# ")
    CODE["Without the bucket"] = managed
    CODE["The job, its records in the component's bucket"] = CODE["Adopt one component"].replace(
        "models.name", 'store.names["models"]'
    )
    rest = ("Move a resource into a component", "The job, its records in the component's bucket")
    program.headings = ("Without the bucket", *rest)
    moved = changes(stack)
    assert not {"delete", "replace"} & set(moved)
    assert ids_of(stack) == before

    program.headings = ("Without the bucket", "Move the resource back", "Adopt one component")
    left = changes(stack)
    assert "replace" not in left
    assert ids_of(stack) == before
    states = resources(stack).values()
    assert not [each for each in states if each["type"].endswith(":TrainingBuckets")]


def test_example_test_of_the_page_passes(tmp_path: Path) -> None:
    imports = "import pulumi\nfrom vertex_training import TrainingJob\n\n"
    (tmp_path / "test_page.py").write_text(imports + CODE["Tests with mocks"])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
