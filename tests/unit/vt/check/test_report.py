"""Findings and their extent in the source line."""

import dataclasses

import pytest

from vertex_training.errors import Location, Problem
from vertex_training_cli.check.report import FileReport, end_of_value


@pytest.mark.parametrize(
    ("line", "column", "marked"),
    [
        ("replicaCount: 0", 15, "0"),
        ("replicaCount: 0  # none", 15, "0"),
        ("replicaCount: 0", 1, "replicaCount"),
        ('timeout: "24h" # a day', 10, '"24h"'),
        ("args: ['it''s', b]", 8, "'it''s'"),
        ('displayName: "a: b"', 14, '"a: b"'),
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
    one = Problem("late", location=Location("a.yaml", 3, 1), rule="x")
    two = Problem("early", location=Location("a.yaml", 1, 7), rule="y")
    warning = dataclasses.replace(two, level="warning")
    report = FileReport.from_problems("a.yaml", "k: v\n\nlate: 1\n", [one, two, one, warning])
    assert [(f.line, f.level, f.statement) for f in report.findings] == [
        (1, "error", "early"),
        (1, "warning", "early"),
        (3, "error", "late"),
    ]
    assert (report.count("error"), report.count("warning")) == (2, 1)


def test_a_place_without_a_line_is_told_in_the_text():
    problem = Problem("has no Python files", location=Location("jobs/code"))
    report = FileReport.from_problems("Pulumi.dev.yaml", "", [problem])
    [finding] = report.findings
    assert (finding.line, finding.statement) == (1, "jobs/code: has no Python files")


def test_a_place_in_the_stack_file_that_is_not_there_keeps_its_path():
    path, location = ("vertex-training:projectNumber",), Location("Pulumi.dev.yaml")
    problem = Problem("missing", path=path, location=location)
    [finding] = FileReport.from_problems("Pulumi.dev.yaml", "", [problem]).findings
    assert finding.message == "vertex-training:projectNumber: missing."


def test_a_file_name_may_hold_colons():
    [finding] = FileReport.from_problems(
        "a:1:2.yaml", "x", [Problem("wrong", location=Location("a:1:2.yaml", 1, 1))]
    ).findings
    assert (finding.file, finding.line, finding.column) == ("a:1:2.yaml", 1, 1)


def test_what_looks_like_a_secret_is_in_no_finding_and_no_source_in_a_log():
    url = "https://u:hunter2pass@h/x"
    problem = Problem("wrong", url, f"not {url}", location=Location("a.yaml", 1, 4))
    report = FileReport.from_problems("a.yaml", f"k: {url}\n", [problem])
    [finding] = report.findings
    assert finding.message == "wrong (got https://u:[secret]@h/x). Hint: not https://u:[secret]@h/x"
    assert report.source == (f"k: {url}", "")
    assert "hunter2" not in repr(report)


@pytest.mark.parametrize(
    ("line", "column", "place"),
    [(1, 1, (1, 1, 2)), (2, 3, (2, 3, 4)), (3, 1, (3, 1, 2)), (4, 5, (4, 5, 6)), (0, 0, (1, 1, 2))],
)
def test_a_place_beyond_the_source_is_one_character(line, column, place):
    location = Location("a.yaml", line, column)
    report = FileReport.from_problems("a.yaml", "k\n  v\n", [Problem("w", location=location)])
    [finding] = report.findings
    assert (finding.line, finding.column, finding.end_column) == place


@pytest.mark.parametrize(
    ("line", "column", "end"), [("a: b: c", 1, 2), ("  a:b: c", 3, 6), ("gs://a: b: c", 1, 7)]
)
def test_a_key_ends_at_the_first_colon_before_a_space(line, column, end):
    assert end_of_value(line, column) == end
