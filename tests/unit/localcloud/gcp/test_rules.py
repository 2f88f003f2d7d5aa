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


@pytest.mark.parametrize(
    ("rule", "value", "said"),
    [
        (rules.gce_name, "A",
         '"name" ("A") doesn\'t match regexp "^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"'),
        (rules.account_id, "abc",
         '"account_id" ("abc") must be between 6 and 30 characters long'),
        (rules.account_id, "Abcdef",
         '"account_id" ("Abcdef") must match regex "^[a-z]([-a-z0-9]*[a-z0-9])?$"'),
        (rules.bucket_labels, {"b": "", "B": "", "A": ""},
         '"A" is an invalid label key. See '
         "https://cloud.google.com/storage/docs/tags-and-labels#bucket-labels"),
        (rules.json_object, "[]", '"dashboard_json" contains an invalid JSON'),
        (rules.iam_member, "me",
         'invalid value "me" for member (IAM members must have one of the values outlined here: '
         "https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding)"),
        (rules.cidr, "x",
         '"ip_cidr_range" is not a valid IP CIDR range: invalid CIDR address: x'),
        (rules.pool_id, "p", '"workload_identity_pool_id" cannot be smaller than 4 characters'),
        (rules.pool_id, "p" * 33,
         '"workload_identity_pool_id" cannot be greater than 32 characters'),
        (rules.pool_id, "gcp-",
         '"workload_identity_pool_id" ("gcp-") can not start with "gcp-"'),
        (rules.rotation_period, "1s", "Rotation period must be greater than one day"),
        (rules.api_name, "run", "expected run to be a domain like serviceusage.googleapis.com"),
        (rules.reservation_count, 0,
         "expected specific_reservation.0.count to be at least (1), got 0"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_in_the_plugins_words(rule: Rule, value: Any, said: str) -> None:
    assert rule(value) == said


@pytest.mark.parametrize(
    ("inputs", "is_right"),
    [
        ({}, False),
        ({"direction": "INGRESS"}, False),
        ({"direction": "INGRESS", "sourceRanges": []}, False),
        ({"direction": "EGRESS"}, True),
        *(({key: ["x"]}, True) for key in ("sourceTags", "sourceRanges", "sourceServiceAccounts")),
        ({"destinationRanges": ["x"]}, False),
    ],
)
def test_what_comes_in_through_a_firewall_comes_from_somewhere(
    inputs: dict[str, Any], is_right: bool
) -> None:
    said = "one of source_tags, source_ranges, or source_service_accounts must be defined"
    assert rules.firewall_needs_a_source(inputs) == (None if is_right else said)
