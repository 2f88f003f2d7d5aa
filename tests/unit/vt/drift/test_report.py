"""Drift as people and programs read it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.drift import report
from vertex_training_cli.drift.findings import (
    RUNS,
    Drift,
    DriftOutcome,
    PropertyDifference,
    ResourceDifference,
)

BUCKET = ResourceDifference(
    "update", "storage-data", "gcp:storage/bucket:Bucket", "acme-data",
    (PropertyDifference("labels.owner", "mallory", ""),),
)  # fmt: skip

JOB = ResourceDifference(
    RUNS, "train (run 1)", "CustomJob", "projects/1/locations/r/customJobs/7",
    (PropertyDifference("state", "RUNNING", ""),), "End it with jobs cancel 7",
)  # fmt: skip


def drifted(*differences):
    return Drift("dev", DriftOutcome.DRIFTED, differences)


def test_a_difference_is_a_row_with_both_sides_and_the_way_out():
    text = report.markdown(drifted(BUCKET))
    assert "1 resource differs" in text
    assert "| labels.owner | mallory | (none) |" in text
    assert "make preview STACK=dev REFRESH=1" in text


def test_a_job_that_nobody_knows_has_a_way_out_of_its_own():
    text = report.markdown(drifted(JOB))
    assert "### train \\(run 1\\) runs, and the stack does not know it" in text
    assert "| state | RUNNING | (none) |" in text
    assert "End it with jobs cancel 7" in text
    assert "make preview" not in text  # would do nothing about it
    assert "make preview" in report.markdown(drifted(JOB, BUCKET))


def test_clean_and_failed_are_told_apart():
    assert "is as declared" in report.markdown(Drift("dev", DriftOutcome.CLEAN))
    failed = report.markdown(Drift("dev", DriftOutcome.FAILED, errors=("403\nno right",)))
    assert "could not be compared" in failed
    assert "> 403\n> no right" in failed


def test_a_report_never_is_longer_than_an_issue_may_be():
    wide = ResourceDifference(
        "update", "n", "t", "i", (PropertyDifference("p", "*" * 200, "|" * 200),) * 20
    )
    text = report.markdown(drifted(*[wide] * 500))
    assert len(text) < report.MAX_TEXT
    assert "more, in the workflow's log" in text


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_no_value_breaks_out_of_its_cell_or_calls_anybody(value):
    field = PropertyDifference("p", value, "x")
    text = report.markdown(drifted(ResourceDifference("update", "n", "t", "i", (field,))))
    [row] = [line for line in text.splitlines() if line.startswith("| p ")]
    assert row.replace("\\|", "").count("|") == 4
    assert "@" not in row.replace("@\u200b", "")
    assert "<" not in row.replace("\\<", "")


def test_what_nobody_sees_is_spelt_out_in_an_issue():
    told = ("user:k\u0456m@example.com", "data\u202e", "a\u3164b", "x\u2028y\x00z")
    drift = Drift("dev", DriftOutcome.FAILED, errors=told)
    text = report.markdown(drift).replace("@\u200b", "@")
    assert text.isascii()
    assert "\x00" not in text
    assert all(code in text for code in ("u0456", "u202e", "u3164", "u0000"))


def test_programs_get_the_same_with_a_version():
    found = json.loads(report.as_json(drifted(BUCKET)))
    assert set(found) == {
        *("version", "stack", "outcome", "differences", "errors", "never_made", "undeclared"),
        "not_looked_at",
    }
    assert found["version"] == report.VERSION
    assert found["outcome"] == "drifted"
    assert found["differences"][0]["fields"] == [
        {"path": "labels.owner", "cloud": "mallory", "declared": ""}
    ]


def test_resources_that_differ_are_counted():
    assert "In **dev**, 2 resources differ from" in report.markdown(drifted(BUCKET, JOB))
