"""Drift as people and programs read it."""

from hypothesis import given
from hypothesis import strategies as st

from vertex_training_cli.drift import findings
from vertex_training_cli.drift.findings import PropertyDifference, ResourceDifference


def drifted(*differences):
    return findings.Drift("dev", findings.DriftOutcome.DRIFTED, differences)


def test_a_report_never_is_longer_than_an_issue_may_be():
    wide = ResourceDifference(
        "update", "n", "t", "i", (PropertyDifference("p", "*" * 200, "|" * 200),) * 20
    )
    text = findings.markdown(drifted(*[wide] * 500))
    assert len(text) < findings.MAX_TEXT
    assert "The workflow's log lists " in text


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_no_value_breaks_out_of_its_cell_or_calls_anybody(value):
    field = PropertyDifference("p", value, "x")
    text = findings.markdown(drifted(ResourceDifference("update", "n", "t", "i", (field,))))
    [row] = [line for line in text.splitlines() if line.startswith("| p ")]
    assert row.replace("\\|", "").count("|") == 4
    assert "@" not in row.replace("@\u200b", "")
    assert "<" not in row.replace("\\<", "")
