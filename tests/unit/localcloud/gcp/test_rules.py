"""Rules of single properties: their bounds, and what stands beside the measured cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from localgcp.gcp import rules

Rule = Callable[[Any], str | None]
RIGHT: dict[Rule, list[Any]] = {
    rules.gce_name: ["a", "a-1", "a" * 63],
    rules.account_id: ["abcdef", "a" * 30, "a-2-b-c"],
    rules.bucket_labels: [{}, {"a": "x", "a_-1": "y", "é": "z", "k" * 63: ""}],
    rules.json_object: ["{}", '{"a": 1}'],
    rules.iam_member: ["user:a", "allUsers", "allAuthenticatedUsers"],
    rules.cidr: ["10.0.0.0/8", "10.0.0.1/24", "::/0", "10.0.0.0/32"],
    rules.pool_id: ["pool", "p" * 32, "gcpp", "a-gcp-pool"],
    rules.rotation_period: ["86400s", "7776000s", "soon"],
    rules.api_name: ["run.googleapis.com", "a.b"],
    rules.reservation_count: [1, 2],
}
WRONG: dict[Rule, list[Any]] = {
    rules.gce_name: ["1a", "a-", "A", "a" * 64, "a_b", "é", "a\n"],
    rules.account_id: ["abcde", "a" * 31, "1abcde", "abcdef-", "Abcdef", "abc_def", "abcdef\n"],
    rules.bucket_labels: [
        {"A": "x"},
        {"1": "x"},
        {"a": "", "k" * 64: ""},
        {"É": "x"},
        {"a\n": "x"},
    ],
    rules.json_object: ["[]", "x", "", "null"],
    rules.iam_member: ["me", "allusers", ""],
    rules.cidr: ["10.0.0.0/33", "x", "10.0.0/8"],
    rules.pool_id: ["poo", "p" * 33, "gcp-pool"],
    rules.rotation_period: ["86399s", "0s"],
    rules.api_name: ["run", ""],
    rules.reservation_count: [0, -1],
}


@pytest.mark.parametrize("rule", RIGHT, ids=lambda rule: rule.__name__)
def test_bounds_are_where_the_plugin_has_them(rule: Rule) -> None:
    assert [value for value in RIGHT[rule] if rule(value) is not None] == []
    assert [value for value in WRONG[rule] if rule(value) is None] == []
