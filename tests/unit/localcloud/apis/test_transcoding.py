"""Requests of HTTP as messages."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.apis.client import find_rule
from localgcp.apis.transcoding import Scalar, Shape, check, request_message
from tests.unit.localcloud.apis.served import RULES

PARENT = "projects/p/locations/r"
JOBS = f"/v1/{PARENT}/customJobs"


def sent(verb: str, path: str, body: str = "", *query: tuple[str, str]) -> Any:
    found = find_rule(RULES, verb, path)
    assert found is not None
    rule, fields = found
    return request_message(rule, fields, query, body.encode(), rule.method.plain_request())


@pytest.mark.parametrize("name", ["displayName", "display_name"])
def test_a_body_has_the_names_of_json_or_of_the_message(name: str) -> None:
    message = sent("POST", JOBS, f'{{"{name}": "a", "jobSpec": {{"scheduling": null}}}}')
    assert message.parent == PARENT
    assert message.custom_job.display_name == "a"


@pytest.mark.parametrize(
    ("scalar", "right", "wrong"),
    [
        (Scalar.STRING, ["", "a", "é"], [1, True, {}, "\ud800"]),
        (Scalar.BOOL, [True, False], ["true", 0, 1]),
        (Scalar.INT32, [0, -(2**31), 2**31 - 1, "7", "-7", 1.0, "1e2", "2.0"],
         [2**31, -(2**31) - 1, "2147483648", 1.5, "1.5", "x", "", True, "0x1", " 1", "1e400"]),
        (Scalar.UINT32, [0, 2**32 - 1, "0"], [-1, 2**32, "-1"]),
        (Scalar.DOUBLE, [0, 1.5, "1.5", "-2e-3", "7"],
         [True, "x", "NaNs", "", float("inf"), float("nan"), "1e999", {}]),
        (Scalar.BYTES, ["", "YWJj", "YWI=", "YWI", "-_-_", "-AA", "_AA"], [1, "a", "a b", "é"]),
    ],
)  # fmt: skip
def test_a_value_is_of_its_type(scalar: Scalar, right: list[Any], wrong: list[Any]) -> None:
    """https://protobuf.dev/programming-guides/json has the forms."""
    shape = Shape(scalar=scalar)
    assert [each for each in right if [*check(each, shape, "v")]] == []
    assert [each for each in wrong if not [*check(each, shape, "v")]] == []


def test_a_value_of_any_type_is_judged_by_its_own_parser() -> None:
    shape = Shape(name="google.protobuf.Duration", parses=lambda value: value == "1s")
    assert [*check("1s", shape, "d")] == []
    assert [*check("x", shape, "d")] == [
        ("d", "Invalid value at 'd' (type.googleapis.com/google.protobuf.Duration), \"x\""),
    ]  # fmt: skip
    assert [*check([1, {}], Shape(), "d")] == []


@pytest.mark.parametrize(("depth", "deep"), [(101, False), (102, True)])
def test_a_document_has_a_hundred_levels_at_most(depth: int, deep: bool) -> None:
    shape = Shape(fields=lambda _: shape)
    found: Any = {}
    for _ in range(depth):
        found = {"a": found}
    path = ".".join(["a"] * 102)
    text = f"Message too deep. Max recursion depth reached for key '{path[-40:]}'"
    assert [*check(found, shape)] == ([(path, text)] if deep else [])
