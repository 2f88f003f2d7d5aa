"""Rules of REST: which request is which method."""

from __future__ import annotations

import pytest

from localgcp.apis.client import HttpRule, find_rule
from tests.unit.localcloud.apis.served import METHODS, RULES

JOBS = "/v1/projects/p/locations/r/customJobs"
P = "projects/p/locations/r"
JOB = "google.cloud.aiplatform.v1.JobService/GetCustomJob"


def test_every_method_has_a_rule_whose_fields_are_its_requests() -> None:
    assert {rule.method.path for rule in RULES} == set(METHODS)
    for rule in RULES:
        names = rule.method.plain_request().DESCRIPTOR.fields_by_name
        assert {*rule.fields, *({rule.body} - {"", "*"})} <= set(names), rule


@pytest.mark.parametrize(
    ("verb", "path", "method", "fields"),
    [
        ("POST", JOBS, "CreateCustomJob", {"parent": "projects/p/locations/r"}),
        ("GET", JOBS, "ListCustomJobs", {"parent": "projects/p/locations/r"}),
        ("GET", f"{JOBS}/1", "GetCustomJob", {"name": "projects/p/locations/r/customJobs/1"}),
        ("POST", f"{JOBS}/1:cancel", "CancelCustomJob", {"name": f"{JOBS[4:]}/1"}),
        ("DELETE", f"{JOBS}/1", "DeleteCustomJob", {"name": f"{JOBS[4:]}/1"}),
        ("GET", "/v1/projects/p%20x/locations/r/customJobs/a%2Fb", "GetCustomJob",
         {"name": "projects/p x/locations/r/customJobs/a%2Fb"}),
        ("POST", "/v2/entries:list", "ListLogEntries", {}),
        *(
            (verb, f"/v1/{target}{path}", method, {"name": f"{target}{name}"})
            for target in (P, f"{P}/models/5", f"{P}/endpoints/5")
            for verb, path, method, name in (
                ("GET", "/operations/7", "GetOperation", "/operations/7"),
                ("GET", "/operations", "ListOperations", ""),
                ("POST", "/operations/7:wait", "WaitOperation", "/operations/7"),
            )
        ),
    ],
)  # fmt: skip
def test_a_request_is_the_method_of_its_rule(
    verb: str, path: str, method: str, fields: dict[str, str]
) -> None:
    found = find_rule(RULES, verb, path)
    assert found is not None
    assert (found[0].method.name, found[1]) == (method, fields)


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("PUT", JOBS),
        ("GET", f"{JOBS}/"),
        ("GET", f"{JOBS}/1/2"),
        ("GET", JOBS.replace("/v1/", "/v1beta1/")),
        ("POST", f"{JOBS}/1:start"),
        ("GET", f"/x{JOBS}"),
        ("GET", "/v1/projects//locations/r/customJobs"),
        ("GET", f"{JOBS}/1/operations/7"),
        ("GET", "/v2/entries:list"),
    ],
)
def test_other_requests_are_no_method(verb: str, path: str) -> None:
    assert find_rule(RULES, verb, path) is None


def test_two_stars_are_any_number_of_segments() -> None:
    rule = HttpRule(METHODS[JOB], "GET", "/v1/{name=a/**}:do", "")
    assert rule.match("GET", "/v1/a/b/c:do") == {"name": "a/b/c"}
    assert rule.match("GET", "/v1/a:do") is None


@pytest.mark.parametrize("turned", [False, True])
def test_a_verb_at_the_end_of_a_path_comes_first(turned: bool) -> None:
    plain, verb = (
        HttpRule(METHODS[JOB], "GET", f"/v1/{{name=a/*}}{end}", "") for end in ("", ":do")
    )
    rules = [verb, plain] if turned else [plain, verb]
    assert find_rule(rules, "GET", "/v1/a/b:do") == (verb, {"name": "a/b"})
    assert find_rule(rules, "GET", "/v1/a/b:other") == (plain, {"name": "a/b:other"})
    assert find_rule(rules, "GET", "/v1/b/b") is None
