"""What programs read."""

import json

from vertex_training.customjob import rules
from vertex_training.errors import Location, Problem
from vertex_training_cli.check import listing, machine_reports
from vertex_training_cli.check.report import FileReport

KNOWN = rules.ALL[0].id
REPORTS = [
    FileReport.from_problems(
        "jobs/a b.yaml",
        "x: 0\ny: 1\n",
        [
            Problem(
                "100% wrong,\nreally",
                "0",
                "fix: it",
                location=Location("jobs/a b.yaml", 1, 4),
                rule=KNOWN,
            ),
            Problem(
                "is old",
                location=Location("jobs/a b.yaml", 2, 1),
                rule="no-such-rule",
                level="warning",
            ),
        ],
    ),
    FileReport("jobs/clean.yaml"),
]


def test_json_has_every_finding_with_its_extent():
    document = json.loads(machine_reports.as_json(REPORTS))
    assert (document["version"], document["errors"], document["warnings"]) == (1, 1, 1)
    assert [file["file"] for file in document["files"]] == ["jobs/a b.yaml", "jobs/clean.yaml"]
    first = document["files"][0]["findings"][0]
    assert first == {
        "rule": KNOWN,
        "level": "error",
        "line": 1,
        "column": 4,
        "endColumn": 5,
        "what": "100% wrong,\nreally",
        "got": "0",
        "hint": "fix: it",
        "message": "100% wrong,\nreally (got 0). Hint: fix: it",
    }


def test_github_commands_escape_what_would_end_them():
    first, second = machine_reports.as_workflow_commands(REPORTS)
    assert first == (
        f"::error file=jobs/a b.yaml,line=1,col=4,endColumn=5,title={KNOWN}"
        "::100%25 wrong,%0Areally (got 0). Hint: fix: it"
    )
    assert second.startswith("::warning file=jobs/a b.yaml,line=2,col=1,endColumn=2,")


def test_sarif_names_rules_and_places():
    document = json.loads(machine_reports.as_sarif(REPORTS))
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    described = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in described] == [row.id for row in listing.all_rules()]
    known, unknown = run["results"]
    assert described[known["ruleIndex"]]["id"] == known["ruleId"] == KNOWN
    assert "ruleIndex" not in unknown
    place = known["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "jobs/a%20b.yaml"
    assert place["region"] == {"startLine": 1, "startColumn": 4, "endColumn": 5}
    assert [result["level"] for result in run["results"]] == ["error", "warning"]


def test_every_rule_is_listed_once_with_documentation_and_a_source():
    rows = listing.all_rules()
    assert len({row.id for row in rows}) == len(rows) == len(rules.ALL)
    for row in rows:
        assert row.summary.endswith(".")
        assert row.source
        assert row.level in ("error", "warning", "note")
    assert json.loads(listing.as_json(rows))["rules"][0]["id"] == rows[0].id
    assert list(listing.as_text(rows))[-1] == f"{len(rows)} rules"


def test_a_source_is_a_link_only_if_it_is_a_page():
    assert listing.link("docs.cloud.google.com/a") == "https://docs.cloud.google.com/a"
    assert listing.link("https://x.org/a b") == "https://x.org/a"
    assert listing.link("https://yaml.org/spec/1.1/, as read") == "https://yaml.org/spec/1.1/"
    assert listing.link("google-cloud-aiplatform 2.7.0, types/io.py") is None
    assert listing.link("docs/job-files.md") is None
