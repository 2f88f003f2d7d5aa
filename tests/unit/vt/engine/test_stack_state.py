"""Resources and jobs in the state file of the local backend."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training_cli.local import results
from vertex_training_cli.local.results import StackState


def home(folder: Path) -> Any:
    return SimpleNamespace(pulumi=folder)


def write(folder: Path, name: str, content: object) -> None:
    file = folder / ".pulumi" / "stacks" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize(
    "content",
    ["{", {}, {"checkpoint": {}}, {"checkpoint": {"latest": None}},
     {"checkpoint": {"latest": {"resources": None}}}],
)  # fmt: skip
def test_a_stack_without_a_state_has_nothing(tmp_path: Path, content: object) -> None:
    write(tmp_path, "demo/dev.json", content)
    for stack in ("dev", "other"):
        found = results.read_state(home(tmp_path), "demo", stack)
        assert found == StackState(found.counts, ())
        assert not found.counts
