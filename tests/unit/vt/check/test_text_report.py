"""What people read."""

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import text_report
from vertex_training_cli.check.report import FileReport


def at(line, column, what, *more, **fields):
    return Problem(what, *more, location=Location("jobs/x.yaml", line, column), **fields)


def shown(source, *problems, color=False):
    report = FileReport.from_problems("jobs/x.yaml", source, problems)
    return list(text_report.lines([report], color=color))


def test_a_finding_is_one_line_then_the_source_and_a_caret():
    problem = at(
        2, 17, "must be at least 1", "0", "skip it", path=("replicaCount",), rule="replica-count"
    )
    assert shown("pools:\n  replicaCount: 0\n", problem) == [
        "jobs/x.yaml:2:17: replicaCount: must be at least 1 (got 0). Hint: skip it [replica-count]",
        "     2 |   replicaCount: 0",
        "                         ^",
        "1 file: 1 error.",
    ]


def test_a_warning_says_that_it_is_one():
    told = shown("a: 1\n", at(1, 1, "is old", rule="image-age", level="warning"))
    assert told[0] == "jobs/x.yaml:1:1: warning: is old. [image-age]"
    assert told[-1] == "1 file: no errors, 1 warning."


def test_a_caret_stands_below_its_value_after_wide_characters_and_tabs():
    told = shown('名前: {\ta: 1, b: "é"}\n', at(1, 16, "wrong"))
    source, caret = told[1:3]
    cells = [text_report.cells(char) for char in source]
    column = source.index('"é"')
    assert len(caret) - len(caret.lstrip()) == sum(cells[:column])
    assert caret.count("^") == 3


def test_a_long_line_is_cut_around_the_value():
    source = "a: " + "x" * 5000 + " bad, " + "y" * 5000
    told = shown(source, at(1, 5005, "wrong"))
    assert "bad" in told[1]
    assert told[1].count("…") == 2
    assert len(told[1]) < 130
    assert told[1][len(told[2]) - 3 : len(told[2])] == "bad"


def test_nothing_a_terminal_would_act_upon_is_printed():
    evil = "\x1b]0;owned\x07\x1b[2J"
    told = shown(f"a: {evil}\n", at(1, 4, "wrong", evil))
    assert "\x1b" not in "".join(told)
    assert "\x07" not in "".join(told)


def test_colours_only_surround_the_text():
    problem = at(1, 1, "wrong", rule="r")
    coloured = "\n".join(shown("a: 1\n", problem, color=True))
    for code in (
        text_report.RED,
        text_report.YELLOW,
        text_report.BOLD,
        text_report.DIM,
        text_report.RESET,
    ):
        coloured = coloured.replace(code, "")
    assert coloured.splitlines() == shown("a: 1\n", problem)


def test_a_place_outside_of_the_file_has_no_excerpt():
    assert len(shown("", at(1, 1, "a job file is a mapping"))) == 2
    assert shown("a: 1\nb: 2\n", at(2, 1, "of the last line"))[1] == "     2 | b: 2"
    assert len(shown("a: 1\nb: 2\n", at(3, 1, "behind the last line"))) == 2


def test_the_summary_counts():
    assert text_report.summary([FileReport("a"), FileReport("b")]) == "2 files, no mistakes."


def test_a_wide_character_takes_two_columns_before_the_caret_and_above_it():
    number = "     1 | "
    [_, source, caret, _] = shown("名: 前\n", at(1, 4, "wrong"))
    assert source == f"{number}名: 前"
    assert caret == " " * (len(number) + 4) + "^^"


def test_a_combining_character_takes_no_column():
    [_, source, caret, _] = shown("e\N{COMBINING ACUTE ACCENT}: 1\n", at(1, 5, "wrong"))
    assert caret.index("^") == source.rindex("1") - 1
