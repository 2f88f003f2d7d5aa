"""Answers of Google's services, by address, become the recorded answers of a preflight.

A case of ``tests/corpus/preflight/documents.yaml`` names the part that asks, documents by their
addresses (all others are not there), the resources and sections of the stack, and permissions that
the caller lacks.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.vt.preflight.answer_rows import Cases
from tests.unit.vt.preflight.documents import context
from vertex_training_cli.declared import DeclaredResource
from vertex_training_cli.preflight import command

CASES = Cases("documents.yaml")


@pytest.mark.parametrize("name", CASES.by_name)
def test_documents_become_the_recorded_answers(tmp_path: Path, name: str) -> None:
    case = CASES.by_name[name]
    (tmp_path / "Pulumi.prod.yaml").write_text("config: {}\n")
    options: dict[str, Any] = dict(case.get("options", {}))
    resources = [DeclaredResource(*row) for row in case.get("resources", ())]
    made = options.pop("made", [])
    options["made"] = made if made is None else [resources[index] for index in made]
    requests = {key: SimpleNamespace(**value) for key, value in case.get("requests", {}).items()}
    options |= {"requests": requests, "root": tmp_path}
    part = command.PARTS[case["part"]]
    CASES.check(name, part(context(case.get("documents"), *resources, **options)))
