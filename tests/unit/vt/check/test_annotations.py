"""Workflow commands: what would end a property is escaped in it."""

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import machine_reports
from vertex_training_cli.check.report import FileReport


def test_commas_and_colons_of_a_file_name_do_not_end_the_property():
    problem = Problem("is wrong", location=Location("jobs/a,b:c.yaml", 1, 1), rule="no-such-rule")
    [line] = machine_reports.as_workflow_commands(
        [FileReport.from_problems("jobs/a,b:c.yaml", "x: 0\n", [problem])]
    )
    assert line.startswith("::error file=jobs/a%2Cb%3Ac.yaml,line=1,")
    assert line.endswith("::is wrong.")
