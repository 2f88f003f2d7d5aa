"""The corpus of stacks: what is reported, set and registered for a stack file and its checkout.

``RECORD=1`` writes the expected values again. Read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.fixture_project import ROOT
from tests.unit.infra.stack_corpus import FOLDER, dump, observe
from vertex_training.stack_rules.jobs import DEPLOYMENT_MINUTES

FILES: Final = ("rules.yaml", "files.yaml", "resources.yaml")
ENTRIES: Final[dict[str, list[dict[str, Any]]]] = {
    name: yaml.safe_load((FOLDER / name).read_text("utf-8")) for name in FILES
}


@pytest.mark.parametrize(
    ("file", "number"),
    [(file, number) for file, entries in ENTRIES.items() for number in range(len(entries))],
)
def test_stack_is_reported_and_registered_as_recorded(
    file: str, number: int, tmp_path: Path
) -> None:
    entry = ENTRIES[file][number]
    root = tmp_path / "checkout"
    root.mkdir()
    found = observe(entry, root)
    if os.environ.get("RECORD"):
        entry["expected"] = found
        (FOLDER / file).write_text(dump(ENTRIES[file]), encoding="utf-8")
    assert found == entry["expected"]


def test_deadlines_are_compared_with_the_workflows_that_deploy() -> None:
    own = ROOT / ".github/workflows/deploy.yml"
    template = ROOT / "cli/vertex_training_cli/init/templates/workflow_deploy.yml.j2"
    for workflow in (own, template):
        minutes = re.findall(r"timeout-minutes: (\d+)", workflow.read_text("utf-8"))
        assert str(DEPLOYMENT_MINUTES) in minutes
