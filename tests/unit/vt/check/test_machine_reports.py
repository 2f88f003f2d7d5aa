"""Whole documents for programs: JSON, SARIF and workflow commands with every key that is read."""

import json

import pytest

from vertex_training.errors import Location, Problem
from vertex_training_cli.check import listing, machine_reports
from vertex_training_cli.check.listing import RuleSummary
from vertex_training_cli.check.report import FileReport

RULES = [
    RuleSummary("a-rule", "error", "Is right. " + "Long words " * 9 + "end.", "docs.x.org/a, b"),
    RuleSummary("b-rule", "warning", "Is new.", "a-package 1.0"),
]


@pytest.fixture
def rules(monkeypatch):
    monkeypatch.setattr(listing, "all_rules", lambda: RULES)


def reports(file="jobs/x.yaml"):
    at = [Location(file, line, 4) for line in (1, 2, 3)]
    problems = [
        Problem("is ä", "0", "mend it", ("a", 0), at[0], "b-rule"),
        Problem("is old", location=at[1], level="warning"),
        Problem("is odd", location=at[2], rule="gone", level="note"),
    ]
    return [FileReport.from_problems(file, "a: 0\nb: 12\nc: x\n", problems)]


FINDINGS = [
    {"rule": "b-rule", "level": "error", "line": 1, "column": 4, "endColumn": 5,
     "what": "a[0]: is ä", "got": "0", "hint": "mend it",
     "message": "a[0]: is ä (got 0). Hint: mend it"},
    {"rule": "", "level": "warning", "line": 2, "column": 4, "endColumn": 6, "what": "is old",
     "got": "", "hint": "", "message": "is old."},
    {"rule": "gone", "level": "note", "line": 3, "column": 4, "endColumn": 5, "what": "is odd",
     "got": "", "hint": "", "message": "is odd."},
]  # fmt: skip


def test_json_is_a_document_that_people_can_read_too():
    expected = {
        "version": 1, "errors": 1, "warnings": 1, "notes": 1,
        "files": [{"file": "jobs/x.yaml", "findings": FINDINGS}],
    }  # fmt: skip
    told = machine_reports.as_json(reports())
    assert told == json.dumps(expected, indent=2, ensure_ascii=False)


def result(finding, **more):
    region = {
        "startLine": finding["line"],
        "startColumn": finding["column"],
        "endColumn": finding["endColumn"],
    }
    place = {"artifactLocation": {"uri": "jobs/x.yaml"}, "region": region}
    return {
        "level": finding["level"],
        "message": {"text": finding["message"]},
        "locations": [{"physicalLocation": place}],
        **more,
    }


def test_sarif_has_one_run_with_rules_files_and_results(rules):
    summary = RULES[0].summary
    expected = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "vt check", "rules": [
                {"id": "a-rule", "shortDescription": {"text": summary},
                 "help": {"text": f"{summary}\nSource: docs.x.org/a, b"},
                 "defaultConfiguration": {"level": "error"}, "helpUri": "https://docs.x.org/a"},
                {"id": "b-rule", "shortDescription": {"text": "Is new."},
                 "help": {"text": "Is new.\nSource: a-package 1.0"},
                 "defaultConfiguration": {"level": "warning"}},
            ]}},
            "columnKind": "unicodeCodePoints",
            "artifacts": [{"location": {"uri": "jobs/x.yaml"}}],
            "results": [
                result(FINDINGS[0], ruleId="b-rule", ruleIndex=1),
                result(FINDINGS[1]),
                result(FINDINGS[2], ruleId="gone"),
            ],
        }],
    }  # fmt: skip
    told = machine_reports.as_sarif(reports())
    assert told == json.dumps(expected, indent=2, ensure_ascii=False)


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("a b/ü.yaml", "a%20b/%C3%BC.yaml"),
        ("/srv/a b.yaml", "file:///srv/a%20b.yaml"),
        ("\udcff.yaml", "%FF.yaml"),
    ],
)
def test_a_file_is_an_address_in_sarif(rules, file, uri):
    [run] = json.loads(machine_reports.as_sarif([FileReport(file)]))["runs"]
    assert run["artifacts"] == [{"location": {"uri": uri}}]


def test_each_level_is_a_workflow_command_and_no_rule_no_title():
    assert list(machine_reports.as_workflow_commands(reports())) == [
        "::error file=jobs/x.yaml,line=1,col=4,endColumn=5,title=b-rule"
        "::a[0]: is ä (got 0). Hint: mend it",
        "::warning file=jobs/x.yaml,line=2,col=4,endColumn=6::is old.",
        "::notice file=jobs/x.yaml,line=3,col=4,endColumn=5,title=gone::is odd.",
    ]


def test_ends_of_lines_and_percent_signs_are_escaped_in_text_and_properties():
    problem = Problem("1\r\n2%", location=Location("a%\r\n:,b", 1, 1))
    [told] = machine_reports.as_workflow_commands(
        [FileReport.from_problems("a%\r\n:,b", "", [problem])]
    )
    assert told == "::error file=a%25%0D%0A%3A%2Cb,line=1,col=1,endColumn=2::1%0D%0A2%25."


def test_rules_are_listed_for_programs():
    text = listing.as_json(RULES)
    assert text.startswith('{\n  "rules": [\n    {\n')
    assert json.loads(text) == {
        "rules": [
            {"id": "a-rule", "level": "error", "summary": RULES[0].summary,
             "source": "docs.x.org/a, b", "link": "https://docs.x.org/a"},
            {"id": "b-rule", "level": "warning", "summary": "Is new.", "source": "a-package 1.0",
             "link": None},
        ]
    }  # fmt: skip
    assert listing.as_json([]) == '{\n  "rules": []\n}'
    named = [RuleSummary("a", "note", "ä", "b")]
    assert '"summary": "ä"' in listing.as_json(named)


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("100", 100), ("140", 100)])
def test_rules_are_listed_for_people_as_wide_as_the_terminal(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    lines = list(listing.as_text(RULES))
    assert lines[0] == "a-rule (error)"
    assert lines[-4:] == ["b-rule (warning)", "    Is new.", "    a-package 1.0", "2 rules"]
    end = lines.index("    docs.x.org/a, b")
    wrapped = lines[1:end]
    assert " ".join(line.strip() for line in wrapped) == RULES[0].summary
    assert all(line.startswith("    ") and line[4] != " " for line in wrapped)
    assert width - 11 <= len(wrapped[0]) <= width


def test_rules_are_in_the_order_of_their_ids():
    ids = [row.id for row in listing.all_rules()]
    assert ids == sorted(ids)
    assert len(ids) > 50


@pytest.mark.parametrize(
    ("source", "link"),
    [
        ("https://a.b/c; d", "https://a.b/c"),
        ("http://a.b/c, d", "http://a.b/c"),
        ("a.com/b", "https://a.com/b"),
        ("a.dev/b c", "https://a.dev/b"),
        ("a.io/b", "https://a.io/b"),
        ("a.org/b/c", "https://a.org/b/c"),
        ("a.com", None),
        ("a.net/b", None),
        ("", None),
        ("  ", None),
    ],
)
def test_the_first_word_of_a_source_is_a_link_if_it_is_a_page(source, link):
    assert listing.link(source) == link


def test_the_extent_of_a_finding_and_its_order():
    at = Location("x.yaml", 1, 4)
    problems = [
        Problem("b", location=at, rule="b"),
        Problem("a", location=at, rule="a"),
        Problem("a", location=at, rule="a", level="warning"),
        Problem("first", location=Location("x.yaml", 1, 1), level="note"),
        Problem("elsewhere", location=Location("code/y.py", 9, 9)),
        Problem("nowhere", location=Location("x.yaml")),
    ]
    report = FileReport.from_problems("x.yaml", "k: v\u2028l: w\x85m: x\r\nn: y\rend", problems)
    assert report.source == ("k: v", "l: w", "m: x", "n: y", "end")
    assert [
        (each.line, each.column, each.end_column, each.level, each.rule, each.message)
        for each in report.findings
    ] == [
        (1, 1, 2, "error", "", "code/y.py:9:9: elsewhere."),
        (1, 1, 2, "error", "", "nowhere."),
        (1, 1, 2, "note", "", "first."),
        (1, 4, 5, "error", "a", "a."),
        (1, 4, 5, "error", "b", "b."),
        (1, 4, 5, "warning", "a", "a."),
    ]
    assert [each.level for each in report.without_notes().findings] == [
        "error", "error", "error", "error", "warning",
    ]  # fmt: skip
    late = FileReport.from_problems("x.yaml", "", [problems[0], problems[3]])
    both = late.merged(report)
    assert both.findings == report.findings
    assert both.source == ("",)
    assert both.file == "x.yaml"
