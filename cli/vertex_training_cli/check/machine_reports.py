"""Write findings as JSON and as annotations of GitHub Actions, and list all rules."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, Final

from vertex_training.customjob import rules
from vertex_training.customjob.rules.registry import Rule
from vertex_training_cli.check.report import FileReport, LintFinding

#: Increased when a field changes its meaning or is removed; new fields may come at any time.
VERSION: Final = 1


def as_json(reports: Sequence[FileReport]) -> str:
    """Return all findings as a JSON document, with files in the order of the command line."""
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


def as_workflow_commands(reports: Sequence[FileReport]) -> Iterator[str]:
    """Yield a workflow command for each finding, which GitHub Actions shows as an annotation."""
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
    """Escape a text as ``command.ts`` of github.com/actions/toolkit does for workflow commands."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def all_rules() -> list[Rule]:
    """Return every rule by its id."""
    return sorted(rules.ALL, key=lambda rule: rule.id)


def link(source: str) -> str | None:
    """Return the address of a rule's source; None if the source is a file of a package.

    >>> link("docs.cloud.google.com/x")
    'https://docs.cloud.google.com/x'
    """
    first = source.split()[0].rstrip(",;") if source.split() else ""
    if first.startswith(("https://", "http://")):
        return first
    host = first.partition("/")[0]
    is_page = "/" in first and host.endswith((".com", ".org", ".dev", ".io"))
    return f"https://{first}" if is_page else None


def rules_as_text(rows: Sequence[Rule]) -> Iterator[str]:
    """Yield lines with id and level of each rule, and its documentation and source."""
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    for row in rows:
        yield f"{row.id} ({row.level})"
        yield from textwrap.wrap(
            row.summary, width, initial_indent="    ", subsequent_indent="    "
        )
        yield f"    {row.source}"
    yield f"{len(rows)} rules"


def rules_as_json(rows: Sequence[Rule]) -> str:
    """Return the rules for programs, as JSON."""
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
