"""Findings for programs: one JSON document, or GitHub's workflow commands."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from vt.check.report import Finding, Report

#: Raised when a field changes its meaning or goes away; new fields may come at any time.
VERSION = 1


def as_json(reports: Sequence[Report]) -> str:
    """All findings as one JSON document, files in the order they were given."""
    document = {
        "version": VERSION,
        "errors": sum(report.count("error") for report in reports),
        "warnings": sum(report.count("warning") for report in reports),
        "files": [
            {"file": report.file, "findings": [_row(finding) for finding in report.findings]}
            for report in reports
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _row(finding: Finding) -> dict[str, str | int]:
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


def github(reports: Sequence[Report]) -> Iterator[str]:
    """One workflow command a finding: they become annotations in the pull request's files."""
    for report in reports:
        for finding in report.findings:
            place = {
                "file": finding.file,
                "line": str(finding.line),
                "col": str(finding.column),
                "endColumn": str(finding.end_column),
                "title": finding.rule,
            }
            told = ",".join(f"{key}={_property(value)}" for key, value in place.items() if value)
            yield f"::{finding.level} {told}::{_data(finding.message)}"


def _data(text: str) -> str:
    """Escaped as github.com/actions/toolkit packages/core/src/command.ts does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
