"""What people read."""

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import text_report
from vertex_training_cli.check.report import FileReport


def at(line, column, what, *more, **fields):
    return Problem(what, *more, location=Location("jobs/x.yaml", line, column), **fields)


def shown(source, *problems, color=False):
    report = FileReport.from_problems("jobs/x.yaml", source, problems)
    return list(text_report.lines([report], color=color))


def test_a_combining_character_takes_no_column():
    [_, source, caret, _] = shown("e\N{COMBINING ACUTE ACCENT}: 1\n", at(1, 5, "wrong"))
    assert caret.index("^") == source.rindex("1") - 1
