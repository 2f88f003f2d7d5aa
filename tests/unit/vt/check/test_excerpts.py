"""The line of the source that people read below a finding, and the mark below its value."""

import pytest

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import text_report
from vertex_training_cli.check.report import FileReport, LintFinding
from vertex_training_cli.check.text_report import TerminalStyle

PLAIN = TerminalStyle(color=False)


def finding(line, column, end_column, *, rule="r", path=(), level="error"):
    problem = Problem("wrong", path=path, rule=rule, level=level)
    return LintFinding("x.yaml", line, column, end_column, problem)


def excerpt(source, *place, **more):
    return list(text_report.excerpt(finding(*place, **more), source, PLAIN))


@pytest.mark.parametrize(
    ("rule", "path", "shown"),
    [
        ("replica-count", ("a",), True),
        ("secret-in-env", ("a",), False),
        ("secret-", ("a",), False),
        ("no-secret-", ("a",), True),
        ("r", ("workerPoolSpecs", 0, "containerSpec", "env", 0, "value"), False),
        ("r", ("environment",), True),
    ],
)
def test_a_line_that_may_hold_a_secret_is_not_quoted(rule, path, shown):
    assert bool(excerpt(["a: 1"], 1, 4, 5, rule=rule, path=path)) == shown


@pytest.mark.parametrize(
    ("line", "shown"), [(0, False), (1, True), (2, True), (3, False), (4, False)]
)
def test_a_line_that_is_blank_or_not_there_is_not_quoted(line, shown):
    assert bool(excerpt(["a: 1", "b: 2", "  "], line, 1, 2)) == shown


@pytest.mark.parametrize(
    ("line", "columns", "quoted", "mark"),
    [
        ("a: 1", (4, 5), "a: 1", "   ^"),
        ("abc: xyz", (6, 9), "abc: xyz", "     ^^^"),
        ("abc: xyz", (6, 6), "abc: xyz", "     ^"),
        ("x" * 100, (61, 62), "x" * 100, " " * 60 + "^"),
        ("x" * 100, (1, 101), "x" * 100, "^" * 100),
        # a line of more than 100 characters begins 50 before the value, or with the line
        ("a: " + "x" * 98, (1, 2), "a: " + "x" * 97 + "…", "^"),
        ("a" * 50 + "b" * 52, (51, 52), "a" * 50 + "b" * 50 + "…", " " * 50 + "^"),
        ("a" * 51 + "b" * 52, (52, 53), "…" + "a" * 50 + "b" * 50 + "…", " " * 51 + "^"),
        ("a" * 51 + "b" * 50, (52, 53), "…" + "a" * 50 + "b" * 50, " " * 51 + "^"),
        # a mark is as wide as what is shown of a value, or as 100 characters
        ("a" * 10 + "b" * 200, (11, 211), "a" * 10 + "b" * 90 + "…", " " * 10 + "^" * 90),
        ("\u540d" * 60, (1, 61), "\u540d" * 60, "^" * 100),
    ],
)  # fmt: skip
def test_a_mark_stands_below_the_value_in_what_is_shown(line, columns, quoted, mark):
    assert excerpt([line], 1, *columns) == [f"     1 | {quoted}", f"         {mark}"]


def test_a_secret_that_began_before_what_is_shown_is_masked_there():
    token = "hf_" + "a1B2" * 9
    [line, _] = excerpt([f"{'x' * 60} {token} {'y' * 80}"], 1, 90, 91)
    assert "a1B2" not in line
    [line, _] = excerpt([f"{'x' * 120} {token} {'y' * 80}"], 1, 91, 92)
    assert "a1B2" not in line  # nor one that ends behind it
    [line, _] = excerpt([f"{'x' * 30} {token[:8]}"], 1, 32, 33)
    assert line == f"     1 | {'x' * 30} {token[:8]}"


@pytest.mark.parametrize(
    ("level", "color"), [("error", "\x1b[31m"), ("warning", "\x1b[33m"), ("note", "\x1b[36m")]
)
def test_each_level_has_its_colour(level, color):
    problem = Problem("wrong", location=Location("x.yaml", 1, 4), rule="r", level=level)
    report = FileReport.from_problems("x.yaml", "a: 1\n", [problem])
    marked = "" if level == "error" else f"{color}{level}:\x1b[0m "
    count = {"error": "1 error", "warning": "no errors, 1 warning", "note": "no errors, 1 note"}
    assert list(text_report.lines([report], color=True)) == [
        f"\x1b[1mx.yaml:1:4:\x1b[0m {marked}wrong. \x1b[2m[r]\x1b[0m",
        "\x1b[2m     1 | \x1b[0ma: 1",
        f"            {color}^\x1b[0m",
        f"\x1b[1m1 file: {count[level]}.\x1b[0m",
    ]


def test_a_finding_without_a_rule_ends_with_its_text():
    assert text_report.headline(finding(3, 7, 8, rule=""), PLAIN) == "x.yaml:3:7: wrong."


def test_nothing_is_coloured_where_there_is_no_text():
    assert TerminalStyle(color=True)("", "\x1b[1m") == ""
    assert TerminalStyle(color=True)("a", "\x1b[1m", "\x1b[2m") == "\x1b[1m\x1b[2ma\x1b[0m"


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
        ([report("note", "error")], "1 file: 1 error, 1 note."),
        ([report(*["error"] * 99), report("note")], "2 files: 99 errors, 1 note."),
        (
            [report(*["error"] * 100)],
            "1 file: 100 errors, and maybe more: checking a file ends after 100.",
        ),
    ],
)
def test_the_last_line_counts_each_level(reports, line):
    assert text_report.summary(reports) == line
