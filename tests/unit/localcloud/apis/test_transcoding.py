"""Requests of HTTP as messages."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.apis.client import find_rule
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
