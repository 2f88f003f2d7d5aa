"""Whole documents for programs: JSON, SARIF and workflow commands with every key that is read."""

import json

import pytest

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import listing, machine_reports
from vertex_training_cli.check.listing import RuleSummary
from vertex_training_cli.check.report import FileReport

RULES = [
    RuleSummary("a-rule", "error", "Is right. " + "Long words " * 9 + "end.", "docs.x.org/a, b"),
    RuleSummary("b-rule", "warning", "Is new.", "a-package 1.0"),
]


@pytest.fixture
def rules(monkeypatch):
    monkeypatch.setattr(listing, "all_rules", lambda: RULES)


def reports(file="jobs/x.yaml"):
    at = [Location(file, line, 4) for line in (1, 2, 3)]
    problems = [
        Problem("is ä", "0", "mend it", ("a", 0), at[0], "b-rule"),
        Problem("is old", location=at[1], level="warning"),
        Problem("is odd", location=at[2], rule="gone", level="note"),
    ]
    return [FileReport.from_problems(file, "a: 0\nb: 12\nc: x\n", problems)]


FINDINGS = [
    {"rule": "b-rule", "level": "error", "line": 1, "column": 4, "endColumn": 5,
     "what": "a[0]: is ä", "got": "0", "hint": "mend it",
     "message": "a[0]: is ä (got 0). Hint: mend it"},
    {"rule": "", "level": "warning", "line": 2, "column": 4, "endColumn": 6, "what": "is old",
     "got": "", "hint": "", "message": "is old."},
    {"rule": "gone", "level": "note", "line": 3, "column": 4, "endColumn": 5, "what": "is odd",
     "got": "", "hint": "", "message": "is odd."},
]  # fmt: skip


def result(finding, **more):
    region = {
        "startLine": finding["line"],
        "startColumn": finding["column"],
        "endColumn": finding["endColumn"],
    }
    place = {"artifactLocation": {"uri": "jobs/x.yaml"}, "region": region}
    return {
        "level": finding["level"],
        "message": {"text": finding["message"]},
        "locations": [{"physicalLocation": place}],
        **more,
    }


def test_sarif_has_one_run_with_rules_files_and_results(rules):
    summary = RULES[0].summary
    expected = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "vt check", "rules": [
                {"id": "a-rule", "shortDescription": {"text": summary},
                 "help": {"text": f"{summary}\nSource: docs.x.org/a, b"},
                 "defaultConfiguration": {"level": "error"}, "helpUri": "https://docs.x.org/a"},
                {"id": "b-rule", "shortDescription": {"text": "Is new."},
                 "help": {"text": "Is new.\nSource: a-package 1.0"},
                 "defaultConfiguration": {"level": "warning"}},
            ]}},
            "columnKind": "unicodeCodePoints",
            "artifacts": [{"location": {"uri": "jobs/x.yaml"}}],
            "results": [
                result(FINDINGS[0], ruleId="b-rule", ruleIndex=1),
                result(FINDINGS[1]),
                result(FINDINGS[2], ruleId="gone"),
            ],
        }],
    }  # fmt: skip
    told = machine_reports.as_sarif(reports())
    assert told == json.dumps(expected, indent=2, ensure_ascii=False)
