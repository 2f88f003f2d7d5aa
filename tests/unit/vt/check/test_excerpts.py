"""The line of the source that people read below a finding, and the mark below its value."""

import pytest

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import text_report
from vertex_training_cli.check.report import FileReport, LintFinding


def finding(line, column, end_column, *, rule="r", path=(), level="error"):
    problem = Problem("wrong", path=path, rule=rule, level=level)
    return LintFinding("x.yaml", line, column, end_column, problem)


def report(*levels):
    problems = [
        Problem(f"{number}", location=Location("x", 1, 1), level=level)
        for number, level in enumerate(levels)
    ]
    return FileReport.from_problems("x", "", problems)


@pytest.mark.parametrize(
    ("reports", "line"),
    [
        ([report()], "1 file, no mistakes."),
        ([report("error")], "1 file: 1 error."),
        ([report("error", "error"), report("warning")], "2 files: 2 errors, 1 warning."),
        ([report("warning", "warning")], "1 file: no errors, 2 warnings."),
        ([report("note", "note")], "1 file: no errors, 2 notes."),
        (
            [report(*["error"] * 100)],
            "1 file: 100 errors, and maybe more: checking a file ends after 100.",
        ),
    ],
)
def test_the_last_line_counts_each_level(reports, line):
    assert text_report.summary(reports) == line
