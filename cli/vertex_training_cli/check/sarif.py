"""Findings for code scanning: SARIF 2.1.0 (docs.oasis-open.org/sarif/sarif/v2.1.0)."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final

from vertex_training_cli.check import listing
from vertex_training_cli.check.report import FileReport, LintFinding

#: Of SARIF 2.1.0.
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(reports: Sequence[FileReport]) -> str:
    """One run with the rules that were applied and all findings."""
    rows = listing.all_rules()
    index = {row.id: position for position, row in enumerate(rows)}
    driver = {"name": "vt check", "rules": [_rule(row) for row in rows]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(report.file)}} for report in reports],
        "results": [_result(finding, index) for report in reports for finding in report.findings],
    }
    document = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _rule(row: listing.Row) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": row.id,
        "shortDescription": {"text": row.summary},
        "help": {"text": f"{row.summary}\nSource: {row.source}"},
        "defaultConfiguration": {"level": row.level},
    }
    if uri := listing.link(row.source):
        rule["helpUri"] = uri
    return rule


def _result(finding: LintFinding, index: dict[str, int]) -> dict[str, Any]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endColumn": finding.end_column,
    }
    place = {"artifactLocation": {"uri": _uri(finding.file)}, "region": region}
    result: dict[str, Any] = {
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }
    if finding.rule:
        result["ruleId"] = finding.rule
    if finding.rule in index:
        result["ruleIndex"] = index[finding.rule]
    return result


def _uri(file: str) -> str:
    """A file's name as a relative URI reference, or a file URI."""
    path = PurePath(file)
    quoted = urllib.parse.quote(path.as_posix(), errors="surrogateescape")
    return f"file://{quoted}" if path.is_absolute() else quoted
