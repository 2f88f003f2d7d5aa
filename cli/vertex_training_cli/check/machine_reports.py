"""Findings for programs: JSON, SARIF (docs.oasis-open.org/sarif/sarif/v2.1.0), GitHub Actions.

Also the list of all rules, for people and for programs.
"""

from __future__ import annotations

import json
import shutil
import textwrap
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Final

from vertex_training.customjob import rules
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


#: Of SARIF 2.1.0.
SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def as_sarif(reports: Sequence[FileReport]) -> str:
    """One run with the rules that were applied and all findings."""
    rows = all_rules()
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


def _rule(row: RuleSummary) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": row.id,
        "shortDescription": {"text": row.summary},
        "help": {"text": f"{row.summary}\nSource: {row.source}"},
        "defaultConfiguration": {"level": row.level},
    }
    if uri := link(row.source):
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


def as_workflow_commands(reports: Sequence[FileReport]) -> Iterator[str]:
    """One workflow command of GitHub Actions for each finding; they become annotations."""
    for report in reports:
        for finding in report.findings:
            place = {
                "file": finding.file,
                "line": str(finding.line),
                "col": str(finding.column),
                "endColumn": str(finding.end_column),
                "title": finding.rule,
            }
            properties = ",".join(
                f"{key}={_property(value)}" for key, value in place.items() if value
            )
            command = {"note": "notice"}.get(finding.level, finding.level)
            yield f"::{command} {properties}::{_data(finding.message)}"


def _data(text: str) -> str:
    """Escaped as github.com/actions/toolkit packages/core/src/command.ts does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """One rule, as it is shown."""

    id: str
    level: str
    summary: str
    source: str


def all_rules() -> list[RuleSummary]:
    """Every rule by its id."""
    found = [RuleSummary(r.id, r.level, r.summary, r.source) for r in rules.ALL]
    return sorted(found, key=lambda row: row.id)


def link(source: str) -> str | None:
    """Address of a rule's source if it is a page; None if it is a file of a package.

    >>> link("docs.cloud.google.com/x")
    'https://docs.cloud.google.com/x'
    """
    first = source.split()[0].rstrip(",;") if source.split() else ""
    if first.startswith(("https://", "http://")):
        return first
    host = first.partition("/")[0]
    is_page = "/" in first and host.endswith((".com", ".org", ".dev", ".io"))
    return f"https://{first}" if is_page else None


def rules_as_text(rows: Sequence[RuleSummary]) -> Iterator[str]:
    """For people: the id and level, then the documentation and source below."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    for row in rows:
        yield f"{row.id} ({row.level})"
        yield from textwrap.wrap(
            row.summary, width, initial_indent="    ", subsequent_indent="    "
        )
        yield f"    {row.source}"
    yield f"{len(rows)} rules"


def rules_as_json(rows: Sequence[RuleSummary]) -> str:
    """For programs."""
    table: list[dict[str, Any]] = [
        {
            "id": row.id,
            "level": row.level,
            "summary": row.summary,
            "source": row.source,
            "link": link(row.source),
        }
        for row in rows
    ]
    return json.dumps({"rules": table}, indent=2, ensure_ascii=False)
