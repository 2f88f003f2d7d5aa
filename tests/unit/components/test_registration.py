"""Components with their arguments, as a state has them or as they are refused, and files of jobs.

``tests/corpus/components.yaml`` has the arguments; ``RECORD=1`` writes the expected values again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

import vertex_training
from tests.unit.components.recorder import components_with_types, registered
from tests.unit.components.test_components import JOB, SPEC, refused
from tests.unit.infra.customjob.recorded import filled, line
from vertex_training import ArgumentsError, TrainingJob

FILE = Path(__file__).parents[2] / "corpus/components.yaml"
CORPUS: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def observe(name: str, args: Any) -> dict[str, Any]:
    """Return the inputs of the component in a preview, or the lines of its refusal."""
    found: dict[str, Any] = {}

    def declare() -> None:
        try:
            getattr(vertex_training, name)("it", args)
        except ArgumentsError as error:
            found["refused"] = str(error).splitlines()

    made = components_with_types(declare)
    if found:
        assert made == {}
        head, *found["refused"] = found["refused"]
        mistakes = len(found["refused"])
        count = "1 mistake" if mistakes == 1 else f"{mistakes} mistakes"
        assert head == f"{name} 'it': {count}; the component declared no resource."
        return found
    [(type_, inputs)] = made.values()
    assert (list(made), type_) == (["it"], f"vertex-training:index:{name}")
    return {"inputs": inputs}


@pytest.mark.parametrize("number", range(len(CORPUS["cases"])))
def test_a_component_is_registered_or_refused_as_recorded(number: int) -> None:
    entry = CORPUS["cases"][number]
    found = observe(*filled(entry["given"], CORPUS["names"]))
    if os.environ.get("RECORD"):
        entry.pop("inputs", None), entry.pop("refused", None)
        entry |= found
        names = [f"  {key}: {line(value)}" for key, value in CORPUS["names"].items()]
        cases = [
            "\n".join(f"  {key}: {line(value)}" for key, value in each.items())
            for each in CORPUS["cases"]
        ]
        head = FILE.read_text().partition("\n")[0]
        text = [head, "names:", *names, "cases:", *(f"-{each[1:]}" for each in cases), ""]
        FILE.write_text("\n".join(text), encoding="utf-8")
    expected = {key: entry[key] for key in ("inputs", "refused") if key in entry}
    assert found == filled(expected, CORPUS["names"])


def test_mistake_in_a_file_is_reported_at_its_line(folder: Path) -> None:
    wrong = json.dumps(SPEC["workerPoolSpecs"])
    (folder / "train.yaml").write_text(f"serviceAcount: x@y.z\nworkerPoolSpecs: {wrong}")
    args = {key: JOB[key] for key in JOB if key != "spec"} | {"file": "train.yaml"}
    found = refused(TrainingJob, args).splitlines()
    assert found[1:] == [
        "train.yaml:1:1: serviceAcount: CustomJobSpec has no field of this name. Hint: did you "
        "mean "
        "'serviceAccount'?"
    ]


def test_warnings_of_a_request_name_the_component_and_the_property(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_, **__: said.append(text))
    spot = {**SPEC, "scheduling": {"timeout": "600s", "strategy": "SPOT"}}
    registered(lambda: TrainingJob("it", {**JOB, "spec": spot}))
    assert said == [
        "TrainingJob 'it': spec: baseOutputDirectory is missing: a preempted job would lose its "
        "progress. Hint: set baseOutputDirectory, and resume from AIP_CHECKPOINT_DIR"
    ]
