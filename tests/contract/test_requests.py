"""What does not fit a request's message is refused, and each refusal has Google's form."""

from __future__ import annotations

import http
import json
import re
from typing import Any, Final

import pytest
from google.rpc import code_pb2
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from localgcp.apis import discovery
from tests.contract import description, served
from tests.contract.cloud import Answer, ContractCloud
from tests.contract.served import Call
from tests.contract.wrong import Wrong, wrong_documents

#: A body that is content as it is has no form.
WITH_BODY: Final = [
    call
    for call in served.calls()
    if call.described and call.described.body and not call.template.endswith(":rawPredict")
]
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
