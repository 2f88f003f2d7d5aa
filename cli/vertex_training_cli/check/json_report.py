"""Findings as JSON, for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from vertex_training_cli.check.report import FileReport, LintFinding

#: Raised when a field changes its meaning or goes away; new fields may come at any time.
VERSION: Final = 1


def as_json(reports: Sequence[FileReport]) -> str:
    """All findings as one JSON document, files in the order they were given."""
    document = {
        "version": VERSION,
        "errors": sum(report.count("error") for report in reports),
        "warnings": sum(report.count("warning") for report in reports),
        "notes": sum(report.count("note") for report in reports),
        "files": [
            {"file": report.file, "findings": [_row(finding) for finding in report.findings]}
            for report in reports
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _row(finding: LintFinding) -> dict[str, str | int]:
    return {
        "rule": finding.rule,
        "level": finding.level,
        "line": finding.line,
        "column": finding.column,
        "endColumn": finding.end_column,
        "what": finding.statement,
        "got": finding.problem.value,
        "hint": finding.problem.hint,
        "message": finding.message,
    }
