"""Findings as workflow commands of GitHub Actions, which become annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vertex_training_cli.check.report import FileReport


def as_workflow_commands(reports: Sequence[FileReport]) -> Iterator[str]:
    """One workflow command for each finding."""
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
