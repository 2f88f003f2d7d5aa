"""Requests and answers beside Google's descriptions of methods: what is called, taken and left."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.apis import discovery
from localgcp.apis.discovery import DescribedMethod
from localgcp.errors import InvalidRequestError

NETWORK = "/compute/v1/projects/p/global/networks/n"
SECRET = "/v1/projects/p/secrets/s"
FIREWALLS = "/compute/v1/projects/p/global/firewalls"


@pytest.mark.parametrize(
    ("verb", "path", "id_"),
    [
        ("GET", NETWORK, "compute.v1.networks.get"),
        ("GET", FIREWALLS, "compute.v1.firewalls.list"),
        ("POST", FIREWALLS, "compute.v1.firewalls.insert"),
        ("DELETE", f"{FIREWALLS}/x", "compute.v1.firewalls.delete"),
        ("GET", SECRET, "secretmanager.v1.projects.secrets.get"),
        ("PUT", NETWORK, None),
    ],
)  # fmt: skip
def test_a_request_calls_the_method_that_its_path_is_of(
    verb: str, path: str, id_: str | None
) -> None:
    found = discovery.find(verb, path)
    assert (found and found.id) == id_


def method(id_: str) -> DescribedMethod:
    return discovery.methods()[id_]


def mistakes(call: Any) -> list[tuple[str, str]]:
    """Place and text of each; empty if there is none."""
    try:
        call()
    except InvalidRequestError as error:
        begin = "Invalid JSON payload received. "
        return [
            (e.get("field", ""), e["description"].removeprefix(begin)) for e in error.violations
        ]
    return []


UNKNOWN = "Unknown name \"x\": Cannot bind query parameter. Field 'x' could not be found in request"


@pytest.mark.parametrize(
    ("id_", "query", "wanted"),
    [
        ("storage.v1.buckets.get", "", []),
        ("storage.v1.buckets.get", "generation=7&projection=full&softDeleted=true&alt=json", []),
        *(("storage.v1.buckets.get", f"softDeleted={text}", [])
          for text in ("true", "false", "True", "False", "1")),
        ("storage.v1.buckets.get", "softDeleted=0",
         [("softDeleted", "Invalid value at 'softDeleted' (TYPE_BOOL), \"0\"")]),
        ("storage.v1.buckets.get", "%24alt=json&prettyPrint=&fields=a", []),
        ("storage.v1.buckets.get", "x=1", [("", f"{UNKNOWN} message.")]),
        ("storage.v1.buckets.get", "x=", [("", f"{UNKNOWN} message.")]),
        ("storage.v1.buckets.get", "generation=a&projection=b&softDeleted=c",
         [("generation", "Invalid value at 'generation' (TYPE_INT64), \"a\""),
          ("projection", "Invalid value at 'projection' (TYPE_ENUM), \"b\""),
          ("softDeleted", "Invalid value at 'softDeleted' (TYPE_BOOL), \"c\"")]),
        ("compute.v1.subnetworks.aggregatedList", "maxResults=-1",
         [("maxResults", "Invalid value at 'maxResults' (TYPE_UINT32), \"-1\"")]),
    ],
)  # fmt: skip
def test_a_query_has_the_methods_parameters_and_those_of_every_method(
    id_: str, query: str, wanted: Any
) -> None:
    assert mistakes(lambda: method(id_).check_query(query)) == wanted


@pytest.mark.parametrize(
    ("id_", "body", "wanted"),
    [
        ("compute.v1.firewalls.insert", {"name": "n", "priority": 1, "id": "7"}, []),
        ("compute.v1.firewalls.insert", {"name": "", "x": 1},
         [("resource", "Unknown name \"x\" at 'resource': Cannot find field."),
          ("resource.name", "Required field 'resource.name' not specified")]),
        ("compute.v1.firewalls.patch", {"direction": "UP"},
         [("resource.direction", "Invalid value at 'resource.direction' (TYPE_ENUM), \"UP\"")]),
        ("compute.v1.firewalls.patch", {"allowed": [{"IPProtocol": 6}]},
         [("resource.allowed[0]._i_p_protocol",
           "Invalid value at 'resource.allowed[0]._i_p_protocol' (TYPE_STRING), 6")]),
        ("compute.v1.firewalls.patch", {"logConfig": 5},
         [("resource.log_config", "Invalid value at 'resource.log_config' "
           "(type.googleapis.com/compute.v1.FirewallLogConfig), 5")]),
        ("compute.v1.firewalls.patch", {"id": "x"},
         [("resource.id", "Invalid value at 'resource.id' (TYPE_UINT64), \"x\"")]),
        ("compute.v1.subnetworks.patch", {"fingerprint": "YQ=="}, []),
        ("compute.v1.subnetworks.patch", {"fingerprint": "%"},
         [("resource.fingerprint",
           "Invalid value at 'resource.fingerprint' (TYPE_BYTES), \"%\"")]),
        ("secretmanager.v1.projects.secrets.patch", {"labels": {"a": 1}},
         [("labels.[a]", "Invalid value at 'labels.[a]' (TYPE_STRING), 1")]),
    ],
)  # fmt: skip
def test_a_body_fits_the_message_of_its_method(id_: str, body: Any, wanted: Any) -> None:
    assert mistakes(lambda: method(id_).check_body(body)) == wanted


@pytest.mark.parametrize(
    ("id_", "answer", "wanted"),
    [
        ("compute.v1.firewalls.get",
         {"name": "n", "id": 7, "priority": 7, "x": 1, "description": "", "disabled": False,
          "network": None, "allowed": [{"IPProtocol": "tcp", "x": 1, "ports": []}],
          "targetTags": ["a"]},
         {"name": "n", "id": "7", "priority": 7, "disabled": False,
          "allowed": [{"IPProtocol": "tcp", "ports": []}], "targetTags": ["a"]}),
        ("secretmanager.v1.projects.secrets.get", {"labels": {"a": ""}, "topics": [{"x": 1}]},
         {"labels": {"a": ""}, "topics": [{}]}),
        ("storage.v1.buckets.get", {"projectNumber": 12, "metageneration": "3"},
         {"projectNumber": "12", "metageneration": "3"}),
    ],
)  # fmt: skip
def test_an_answer_has_what_its_message_has(id_: str, answer: Any, wanted: Any) -> None:
    assert method(id_).fit(answer) == wanted


def test_every_method_has_its_id_and_a_path_of_a_version() -> None:
    found = discovery.methods()
    assert all(found[id_].id == id_ for id_ in found)
    assert all(each.takes(each.verb, each.template.replace("{", "").replace("}", ""))
               or "Id}" in each.template for each in found.values())  # fmt: skip
