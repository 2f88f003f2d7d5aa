"""Each fault of ``tests/corpus/preflight/faults.yaml`` changes the recorded answers alone.

A case is a stack, faults in the words of ``vt local fault add``, the ids of resources in the
state, and the answers that differ from those of the same stack without a fault.
"""

from __future__ import annotations

import pytest

from tests.unit.vt.images.stand_in import Registry
from tests.unit.vt.preflight.answer_rows import Cases
from tests.unit.vt.preflight.conftest import Rehearse

CASES = Cases("faults.yaml")


@pytest.mark.parametrize("name", CASES.by_name)
def test_a_fault_changes_its_own_answers_alone(
    rehearse: Rehearse, images: Registry, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES.by_name[name]
    rehearsal = rehearse(case["stack"])
    rehearsal.made = frozenset(case.get("made", ()))
    rehearsal.as_ci = case.get("as_ci", False)
    for fault in case.get("faults", ()):
        rehearsal.add_fault(fault)
    if case.get("registry") == "empty":
        monkeypatch.setattr(images, "manifests", {})
    CASES.check(name, rehearsal.answers())
