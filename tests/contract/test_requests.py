"""What does not fit a request's message is refused, and each refusal has Google's form."""

from __future__ import annotations

import copy
import http
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from google.rpc import code_pb2
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from localgcp.apis import discovery
from tests.contract import description, served, story
from tests.contract.cloud import Answer, ContractCloud
from tests.contract.served import Call
from tests.contract.wrong import Wrong, wrong_documents
from tools.generate import discovery as documents

WITH_BODY: Final = [call for call in served.calls() if call.described and call.described.body]
#: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
STATUS: Final = {
    400: {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"},
    403: {"PERMISSION_DENIED"},
    404: {"NOT_FOUND"},
    409: {"ALREADY_EXISTS", "ABORTED"},
    501: {"UNIMPLEMENTED"},
    503: {"UNAVAILABLE"},
}
#: What is none, by the type or format of a parameter.
NO_VALUES: Final = {
    "boolean": "maybe", "integer": "many", "enum": "none-zz", "int64": "1.5", "uint64": "-1",
}  # fmt: skip
examples = settings(max_examples=250, suppress_health_check=[HealthCheck.too_slow])


def any_path(cloud: ContractCloud, call: Call) -> str:
    """A path of the method: of something that is there, or was."""
    template = description.skeleton(call.template)
    return next(cloud.paths(call), None) or template.replace("{}", "x")


def check_error(answer: Answer) -> dict[str, Any]:
    """The error, after it was held against google.aip.dev/193."""
    assert {*answer.document} == {"error"}
    error = answer.document["error"]
    for reason in error.pop("errors", []):  # as older APIs have it beside the rest
        assert answer.call.document == "bigquery.v2"
        assert {*reason} == {"message", "domain", "reason"}
    assert {*error} <= {"code", "message", "status", "details"}
    assert error["code"] == answer.status
    assert answer.status in {each.value for each in http.HTTPStatus}
    assert error["status"] in STATUS[answer.status], error
    assert code_pb2.Code.Value(error["status"])
    assert error["message"]
    for detail in error.get("details", []):
        assert detail["@type"].startswith("type.googleapis.com/google.rpc.")
    return error


@st.composite
def wrong_calls(draw: st.DrawFn) -> tuple[Call, Wrong]:
    call = draw(st.sampled_from(WITH_BODY))
    assert call.described is not None
    wrong = draw(wrong_documents(call.document, call.described.body))
    # Google's client sends numbers as values of parameters, and BigQuery takes them.
    assume(not (call.document == "bigquery.v2" and wrong.name == "value"))
    return call, wrong


@examples
@given(wrong_calls())
def test_wrong_message_is_refused_by_name(cloud: ContractCloud, sent: tuple[Call, Wrong]) -> None:
    call, wrong = sent
    answer = cloud.send(call, any_path(cloud, call), wrong.document)
    assert answer.status == 400, (call.id, wrong, answer.document)
    error = check_error(answer)
    assert error["status"] == "INVALID_ARGUMENT"
    [detail] = error["details"]
    texts = [each["description"] for each in detail["fieldViolations"]]
    if wrong.is_unknown:
        # Or of a message around it, which the description has and Google's client does not yet.
        names = re.findall(r'"(\w+)":', json.dumps(wrong.document))
        assert wrong.name in names
        assert any(f'Unknown name "{name}"' in each for each in texts for name in names), texts
    else:
        assert all(each.startswith("Invalid JSON payload received. ") for each in texts)


@examples
@given(st.sampled_from(served.calls()), st.from_regex(r"[a-z]{10}Zz", fullmatch=True))
def test_an_unknown_parameter_is_refused(cloud: ContractCloud, call: Call, name: str) -> None:
    answer = cloud.send(call, f"{any_path(cloud, call)}?{name}=1")
    assert answer.status == 400, answer
    error = check_error(answer)
    assert f'Unknown name "{name}": Cannot bind query parameter.' in error["message"]


@pytest.mark.parametrize(
    ("id_", "name", "value"),
    [
        (id_, name, value)
        for id_, method in discovery.methods().items()
        for name, schema in method.parameters.items()
        if (value := NO_VALUES.get("enum" if "enum" in schema else schema["type"]))
        or (value := NO_VALUES.get(schema.get("format", "")))
    ],
)
def test_a_parameter_that_is_no_value_of_its_type_is_refused(
    cloud: ContractCloud, id_: str, name: str, value: str
) -> None:
    [call] = [each for each in served.calls() if each.name == id_]
    answer = cloud.send(call, f"{any_path(cloud, call)}?{name}={value}")
    assert answer.status == 400, answer
    assert f"Invalid value at '{name}' (TYPE_" in check_error(answer)["message"]


@examples
@given(st.sampled_from(served.calls()), st.sampled_from(["", "{}", "[]", "{", "3", '"x"', "null"]))
def test_any_answer_has_the_form_of_google(cloud: ContractCloud, call: Call, body: str) -> None:
    path = any_path(cloud, call).replace("local-training", "local-nowhere")
    answer = cloud.send(call, path, body)
    if answer.status != 200:
        check_error(answer)


def test_all_mistakes_are_told_at_once(cloud: ContractCloud) -> None:
    [call] = [each for each in WITH_BODY if each.name.endswith("/CreateCustomJob")]
    body = {"inventedField": 1, "jobSpec": {"workerPoolSpecs": [{"replicaCount": str(2**63)}]}}
    answer = cloud.send(call, any_path(cloud, call), body)
    pools = "custom_job.job_spec.worker_pool_specs[0]"
    assert [each["field"] for each in check_error(answer)["details"][0]["fieldViolations"]] == [
        "custom_job",
        f"{pools}.replica_count",
    ]
    assert "Unknown name \"inventedField\" at 'custom_job': Cannot find field." in json.dumps(
        answer.document["error"]["message"]
    ).replace('\\"', '"')


@pytest.mark.parametrize("collection", ["firewalls", "routes", "subnetworks"])
def test_required_fields_of_resources_are_checked(cloud: ContractCloud, collection: str) -> None:
    [call] = [each for each in WITH_BODY if each.name == f"compute.v1.{collection}.insert"]
    error = check_error(cloud.send(call, any_path(cloud, call), {}))
    assert "Required field 'resource.name' not specified" in error["message"]


def right_call(cloud: ContractCloud, name: str) -> tuple[Call, str, dict[str, Any]]:
    """Return a method, a path and a body that it accepts, or would if what it names existed."""
    place = "projects/local-training/locations/us-central1"
    cloud.names += [f"{place}/models/1", f"{place}/endpoints/1", place]
    call = next(each for each in WITH_BODY if each.id == name or each.name.endswith(name))
    query, body = story.request_of(cloud, call)
    return call, f"{any_path(cloud, call)}?{query}", copy.deepcopy(body)


#: Last part of the ids of methods that create something.
CREATING: Final = (".create", ".insert", ".upload", ".deployModel")
CREATES: Final = [
    call
    for call in served.calls()
    if call.described and call.described.id.endswith(CREATING) and call.described.body
]


def broken(name: str, message: str, body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a field and the body without it, or with a bad label or location, at any depth."""
    for field, form in description.schema(name, message).get("properties", {}).items():
        if field not in body:
            continue
        rule = (f"{name}.{message}", field)
        if documents.is_required(form) and rule not in documents.NOT_ENFORCED:
            yield field, {key: value for key, value in body.items() if key != field}
            if isinstance(body[field], str):
                yield field, {**body, field: ""}
        if documents.has_labels(field, form):
            yield field, {**body, field: {"A": "b"}}
            yield field, {**body, field: {f"k{number}": "" for number in range(65)}}
        for key, inner in _inner(form, body[field]):
            for wrong, value in broken(name, inner["$ref"], key[0]):
                yield wrong, {**body, field: key[1](value)}


def _inner(form: Any, value: Any) -> Iterator[tuple[tuple[Any, Any], Any]]:
    """Yield the message in a field and a function that puts another in its place."""
    if "$ref" in form:
        yield (value, lambda new: new), form
    elif "$ref" in form.get("items", {}) and value:
        yield (value[0], lambda new: [new, *value[1:]]), form["items"]


@pytest.mark.parametrize("call", CREATES, ids=lambda call: call.id)
def test_every_create_method_refuses_missing_required_fields_and_bad_labels(
    cloud: ContractCloud, call: Call
) -> None:
    assert call.described is not None
    _, path, body = right_call(cloud, call.id)
    cases = [*broken(call.document, call.described.body, body)]
    for field, wrong in cases:
        answer = cloud.send(call, path, wrong)
        assert answer.status == 400, (field, wrong, answer.document)
        text = check_error(answer)["message"].replace("_", "").lower()
        assert field.lower() in text, (field, answer.document)
    somewhere = path.replace("us-central1", "us-nowhere9")
    if somewhere != path:
        assert cloud.send(call, somewhere, body).status == 400


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("display_name", {"displayName": None}),
        ("display_name", {"displayName": "é" * 129}),
        ("labels", {"labels": {"ключ": "Значение"}}),
        ("network", {"network": "n", "privateServiceConnectConfig": {}}),
        ("Unknown name", {"banana": 1}),
        ("Invalid value", {"labels": {"a": 1}}),
        ("Invalid value", {"displayName": {}}),
    ],
)
def test_endpoint_is_held_to_its_rules_on_create_and_update(
    cloud: ContractCloud, field: str, change: dict[str, Any]
) -> None:
    for name in ("EndpointService/CreateEndpoint", "EndpointService/UpdateEndpoint"):
        call, path, body = right_call(cloud, name)
        path = re.sub(r"updateMask=\w+", "updateMask=displayName,labels,network", path)
        body = {key: value for key, value in {**body, **change}.items() if value is not None}
        answer = cloud.send(call, path, body)
        assert (answer.status, field in check_error(answer)["message"]) == (400, True), answer


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ({"machineType": "n9-banana-4"}, 'Machine type "n9-banana-4" is not supported.'),
        ({"machineType": "n1-standard-5"}, 'Machine type "n1-standard-5" is not supported.'),
        (
            {
                "machineType": "e2-standard-4",
                "acceleratorType": "NVIDIA_TESLA_T4",
                "acceleratorCount": 1,
            },
            'is not supported for machine type "e2-standard-4"',
        ),
    ],
)
def test_machines_that_do_not_exist_are_refused(
    cloud: ContractCloud, machine: dict[str, Any], text: str
) -> None:
    call, path, body = right_call(cloud, "/DeployModel")
    body["deployedModel"]["dedicatedResources"]["machineSpec"] = machine
    assert text in check_error(cloud.send(call, path, body))["message"]
    call, path, body = right_call(cloud, "BatchService/CreateJob")
    kinds = [{"type": "nvidia-tesla-t4", "count": "1"}] if "acceleratorType" in machine else []
    policy = {"machineType": machine["machineType"], "accelerators": kinds}
    body["allocationPolicy"]["instances"] = [{"policy": policy}]
    assert text.split('"')[0] in check_error(cloud.send(call, path, body))["message"]
