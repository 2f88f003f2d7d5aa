"""The policies as a person configures and reports them: id, severity, settings, standards, page."""

from __future__ import annotations

from typing import Any, Final

import pytest
import yaml

from tests.policy import cases
from tools.generate.reference import policy_tables
from vertex_training.guardrails.policy import Policy, load

POLICIES: Final = {policy.id: policy for policy in load()}
TABLE: Final = yaml.safe_load((cases.ROOT / "tests/policy/table.yaml").read_text("utf-8"))
ROWS: Final = {
    line.split("`")[1]: line
    for line in policy_tables().splitlines()
    if line.startswith("| `")
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["id"])
def test_a_policy_has_its_severity_settings_and_standards(row: dict[str, Any]) -> None:
    policy = POLICIES[row["id"]]
    assert (policy.severity, dict(policy.settings), ", ".join(policy.standards)) == (
        row["severity"], {"notInStacks": [], **row.get("settings", {})}, row.get("standards", ""),
    )  # fmt: skip


def test_the_table_has_every_policy_in_order() -> None:
    assert [row["id"] for row in TABLE] == [policy.id for policy in load()]


@pytest.mark.parametrize("found", load(), ids=lambda found: found.id)
def test_a_report_says_of_a_policy_what_its_page_says(found: Policy) -> None:
    said = " ".join(f"{found.what}<br>{found.why} ([docs]({found.url}))".split())
    assert said == ROWS[found.id].split(" | ")[2]
