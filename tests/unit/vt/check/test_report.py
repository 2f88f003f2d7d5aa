"""Findings and their extent in the source line."""

import pytest

from infra.errors import Problem
from vt.check.report import Report, end_of_value


@pytest.mark.parametrize(
    ("line", "column", "marked"),
    [
        ("replicaCount: 0", 15, "0"),
        ("replicaCount: 0  # none", 15, "0"),
        ("replicaCount: 0", 1, "replicaCount"),
        ('timeout: "24h" # a day', 10, '"24h"'),
        ("args: ['it''s', b]", 8, "'it''s'"),
        ("args: [one, two]", 8, "one"),
        ("machineSpec: {machineType: x-1, gpu: 2}", 33, "gpu"),
        ("imageUri: gcr.io/a/b:latest", 11, "gcr.io/a/b:latest"),
        ("uri: ${buckets.data}/x", 6, "${buckets.data}/x"),
        ("uri: {a: ${buckets.data}}", 10, "${buckets.data}"),
        ("pools: []", 8, "["),
        ("x", 9, " "),
    ],
)
def test_a_value_ends_where_yaml_ends_it(line, column, marked):
    assert end_of_value(line, column) == column + len(marked)
    assert line[column - 1 :].startswith(marked) or marked == " "


def test_findings_stand_in_the_order_of_the_file_and_once():
    one = Problem("a.yaml:3:1", "late", rule="x")
    two = Problem("a.yaml:1:7", "early", rule="y")
    report = Report.of("a.yaml", "k: v\n\nlate: 1\n", [one, two, one], [two])
    assert [(f.line, f.level, f.what) for f in report.findings] == [
        (1, "error", "early"),
        (1, "warning", "early"),
        (3, "error", "late"),
    ]
    assert (report.count("error"), report.count("warning")) == (2, 1)


def test_a_place_without_a_line_is_told_in_the_text():
    report = Report.of("Pulumi.dev.yaml", "", [Problem("jobs/code", "has no Python files")])
    [finding] = report.findings
    assert (finding.line, finding.what) == (1, "jobs/code: has no Python files")


def test_a_place_in_the_stack_file_that_is_not_there_keeps_its_path():
    where = "Pulumi.dev.yaml: vertex-training:projectNumber"
    [finding] = Report.of("Pulumi.dev.yaml", "", [Problem(where, "missing")]).findings
    assert finding.message == "vertex-training:projectNumber: missing."


def test_a_file_name_may_hold_colons():
    [finding] = Report.of("a:1:2.yaml", "x", [Problem("a:1:2.yaml:1:1", "wrong")]).findings
    assert (finding.file, finding.line, finding.column) == ("a:1:2.yaml", 1, 1)
