"""Previews of the engine in ``tests/corpus/drift/previews.yaml`` become the recorded reports.

A case has the exit code of ``pulumi preview --refresh`` and its steps; the report ends
before the list of what was not compared. ``RECORD=1`` (and ``-n 0``)
writes reports again: read the difference before you commit it.
"""

import json
import os
from pathlib import Path

import pytest
import yaml

from vertex_training_cli.drift import findings

FILE = Path(__file__).parents[3] / "corpus" / "drift" / "previews.yaml"
CASES = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def dump(cases):
    for name, case in cases.items():
        yield f"{json.dumps(name)}:\n  code: {case['code']}\n  steps:"
        yield from (f"  - {json.dumps(step)}" for step in case["steps"])
        yield "  report: |"
        yield from (f"    {line}".rstrip() for line in case["report"].splitlines())


@pytest.mark.parametrize("name", CASES)
def test_preview_becomes_the_recorded_report(name):
    case = CASES[name]
    drift = findings.read("dev", case["code"], json.dumps(case), "")
    text = findings.markdown(drift).partition("\n<details>")[0]
    if os.environ.get("RECORD"):
        case["report"] = text
        FILE.write_text("\n".join(dump(CASES)) + "\n", encoding="utf-8")
    assert text == case["report"]
