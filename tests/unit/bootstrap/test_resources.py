"""Environments: the problems of a file, and the resources and outputs of a right one.

``tests/corpus/bootstrap.yaml`` has changes of the environment ``prod`` of the fixture project. The
first entry has no change; resources of others are the difference from it. ``RECORD=1`` writes the
expected values again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

import pulumi
import pytest
import yaml

from tests.unit.bootstrap.recorder import registered
from tests.unit.infra.stack_corpus import differences, dump, lines, readable
from vertex_training.errors import ConfigError
from vertex_training.foundation import program

FILE: Final = Path(__file__).parents[2] / "corpus" / "bootstrap.yaml"
ENTRIES: Final[list[dict[str, Any]]] = yaml.safe_load(FILE.read_text("utf-8"))


def observe(given: dict[str, Any]) -> dict[str, Any]:
    exported: dict[str, Any] = {}

    def export(name: str, value: Any) -> None:
        pulumi.Output.from_input(value).apply(lambda known: exported.update({name: known}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulumi, "export", export)
        try:
            resources = registered("prod", **given)
        except ConfigError as refused:
            return {"problems": lines(refused.problems)}
    return json.loads(json.dumps({"registered": readable(resources), "outputs": exported}))


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return observe({})


@pytest.mark.parametrize("number", range(len(ENTRIES)))
def test_environment_is_refused_or_registered_as_recorded(
    number: int, plain: dict[str, Any]
) -> None:
    entry = ENTRIES[number]
    found = observe(entry["given"])
    if number and "problems" not in found:
        found = differences(plain, found)
    if os.environ.get("RECORD"):
        entry["expected"] = found
        FILE.write_text(dump(ENTRIES), encoding="utf-8")
    assert found == entry["expected"]


def test_encrypted_values_are_refused_and_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "gcp:project": "acme-ml-prod",
        "gcp:region": "us-central1",
        "vertex-training-bootstrap:projectNumber": "hunter2",  # would be shown: it has no number
        "vertex-training-bootstrap:labels": '{"Team": "hunter2"}',
        "vertex-training-bootstrap:rotationDays": "0",
    }
    (tmp_path / "Pulumi.prod.yaml").write_text(
        "config:\n  vertex-training-bootstrap:labels:\n    Team: x\n"
    )
    ended: list[str] = []
    monkeypatch.setattr(pulumi, "get_stack", lambda: "prod")
    monkeypatch.setattr(program.engine, "end_with_message", ended.append)
    pulumi.runtime.set_all_config(values, [*values][2:4])
    try:
        program.run(tmp_path / "__main__.py")
    finally:
        pulumi.runtime.set_all_config({}, [])
    [report] = ended
    assert report.count("is encrypted") == 2
    assert "pulumi config rm vertex-training-bootstrap:projectNumber" in report
    assert "Pulumi.prod.yaml:2:3" in report
    assert "hunter2" not in report
