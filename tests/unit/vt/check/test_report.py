"""Findings and their extent in the source line."""

from vertex_training.errors import Location, Problem
from vertex_training_cli.check.report import FileReport


def test_a_place_without_a_line_is_told_in_the_text():
    problem = Problem("has no Python files", location=Location("jobs/code"))
    report = FileReport.from_problems("Pulumi.dev.yaml", "", [problem])
    [finding] = report.findings
    assert (finding.line, finding.statement) == (1, "jobs/code: has no Python files")
