"""Requests of HTTP as messages."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.apis.client import find_rule
from localgcp.apis.json_shapes import BOOLEANS, Scalar, Shape, check
from localgcp.apis.transcoding import request_message
from localgcp.errors import RefusedRequestError
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
    ("verb", "path", "body", "query"),
    [
        ("POST", JOBS, "{", ()),
        ("POST", JOBS, "[]", ()),
        ("POST", JOBS, '{"invented": 1}', ()),
        ("POST", JOBS, '{"displayName": 3}', ()),
        ("POST", JOBS, '{"jobSpec": {"workerPoolSpecs": {"replicaCount": 1}}}', ()),
        ("POST", JOBS, '{"createTime": "yesterday"}', ()),
        ("POST", JOBS, '{"state": "JOB_STATE_INVENTED"}', ()),
        ("POST", f"{JOBS}/1:cancel", "{}", [("name", "x")]),
        ("GET", JOBS, "", [("invented", "1")]),
        ("GET", JOBS, "", [("pageSize", "many")]),
        ("GET", JOBS, "", [("readMask.paths.x", "1")]),
        ("GET", JOBS, "", [("readMask", "name"), ("readMask.paths", "state")]),
    ],
)
def test_what_does_not_fit_is_refused_as_invalid(
    verb: str, path: str, body: str, query: list[tuple[str, str]]
) -> None:
    found = find_rule(RULES, verb, path)
    assert found is not None
    message = found[0].method.plain_request()
    data = body.encode("utf-8", "surrogateescape")
    with pytest.raises(RefusedRequestError) as error:
        request_message(*found, query, data, message)
    assert error.value.status == 400


STRING, INT32, UINT32 = (
    Shape(scalar=each) for each in (Scalar.STRING, Scalar.INT32, Scalar.UINT32)
)


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


def test_texts_of_a_query_are_booleans() -> None:
    assert BOOLEANS == {"true": True, "True": True, "1": True, "false": False, "False": False}
