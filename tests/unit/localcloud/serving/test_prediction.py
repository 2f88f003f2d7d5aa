"""Requests reach what is deployed, and answers come back as the container gave them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from google.api import httpbody_pb2
from google.api_core import exceptions

from tests.unit.localcloud.serving.conftest import NUMBERED, PLACE, World, container


def serve(world: World, *words: str, **more: Any) -> str:
    """An endpoint whose container behaves as the words say."""
    endpoint = world.endpoint(**more.pop("endpoint", {}))
    world.deploy(endpoint, world.upload(*words, **more), "1", {"0": 100})
    return endpoint


def post(world: World, method: str, body: bytes, kind: str = "application/json") -> Any:
    """The answer over HTTP, as curl has it."""
    url = f"http://127.0.0.1:{world.port}/v1/{PLACE}/endpoints/77:{method}"
    return urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": kind}))


def test_a_model_that_was_uploaded_and_deployed_predicts(world: World) -> None:
    answer = world.predict(serve(world), *range(100))
    assert list(answer.predictions) == [2.0 * x for x in range(100)]
    assert (answer.deployed_model_id, answer.model_version_id) == ("1", "1")
    assert answer.model == f"{NUMBERED}/models/doubler"


def test_a_container_has_the_variables_of_the_service_and_of_the_model(world: World) -> None:
    spec = {
        "env": [{"name": "MY_NAME", "value": "of $(AIP_ENDPOINT_ID) on $(AIP_MACHINE_TYPE)"}],
        "args": ["one\ntwo", "a b", "\u00fc\x01$(AIP_DEPLOYED_MODEL_ID)", "--", "'\"`$HOME"],
        "predict_route": "/my/predict",
        "health_route": "/my/health",
    }
    endpoint = serve(world, container_spec=container("tell", **spec))
    answer = world.predict(endpoint, 1)
    (found,) = json.loads(type(answer).to_json(answer))["predictions"]
    assert found["AIP_PREDICT_ROUTE"] == "/my/predict"
    assert found["AIP_ENDPOINT_ID"] == "77"
    assert found["AIP_STORAGE_URI"].startswith("gs://caip-tenant-")
    assert found["VERTEX_JOB_HOST"] == "127.0.0.1"
    assert found["MY_NAME"] == "of 77 on n1-standard-2"
    words = list(answer.metadata)
    assert words == ["tell", "one\ntwo", "a b", "\u00fc\x011", "--", "'\"`$HOME"]


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("400", exceptions.InvalidArgument),
        ("404", exceptions.NotFound),
        ("422", exceptions.FailedPrecondition),
        ("429", exceptions.ResourceExhausted),
        ("500", exceptions.InternalServerError),
        ("503", exceptions.ServiceUnavailable),
    ],
)
def test_a_containers_refusal_is_passed_on(
    world: World, status: str, error: type[Exception]
) -> None:
    endpoint = serve(world, "status", status, "answer", "row 3 has no age")
    with pytest.raises(error, match=f"{status} from the container: row 3 has no age"):
        world.predict(endpoint, 1)


@pytest.mark.parametrize(
    "text", ["no json", "[1]", "{}", '{"predictions": 3}', '{"predictions": [NaN]}']
)
def test_an_answer_of_another_form_is_an_error_that_says_so(world: World, text: str) -> None:
    endpoint = serve(world, "answer", text)
    with pytest.raises(exceptions.InternalServerError, match="is not of the form"):
        world.predict(endpoint, 1)


def test_a_request_has_a_limit_that_is_higher_at_an_address_of_ones_own(world: World) -> None:
    endpoint = serve(world)
    with pytest.raises(exceptions.InvalidArgument, match=r"exceeds 1\.5MB limit"):
        world.predict(endpoint, "x" * 1_500_000)
    own = world.endpoint("78", dedicated_endpoint_enabled=True)
    world.deploy(own, f"{PLACE}/models/doubler", "1", {"0": 100})
    assert len(world.predict(own, *["1" * 100] * 20_000).predictions) == 20_000
    with pytest.raises(exceptions.InvalidArgument, match="exceeds 10MB limit"):
        world.predict(own, "x" * 10_000_000)


def test_curl_predicts_and_sees_errors_as_the_api_words_them(world: World) -> None:
    serve(world)
    found = json.load(post(world, "predict", b'{"instances": [1, 2]}'))
    assert found["predictions"] == [2.0, 4.0]
    assert found["deployedModelId"] == "1"
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(world, "predict", b'{"instances": ["no number"]}')
    assert json.load(refused.value)["error"]["status"] == "UNAVAILABLE"  # it closed the connection


def test_a_raw_request_is_passed_on_as_it_is(world: World) -> None:
    endpoint = serve(world, "raw")
    body = httpbody_pb2.HttpBody(data=b"\x00\xff no json", content_type="text/plain")
    answer = world.predictions.raw_predict(endpoint=endpoint, http_body=body)
    assert (answer.data, answer.content_type) == (b"\x00\xff no json", "text/plain")
    with post(world, "rawPredict", b'{"any": "json"}') as found:
        assert found.read() == b'{"any": "json"}'
        assert found.headers["Content-Type"] == "text/plain"


def test_an_endpoint_with_nothing_deployed_says_so(world: World) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="traffic_split"):
        world.predict(world.endpoint(), 1)
    with pytest.raises(exceptions.NotFound):
        world.predict(f"{PLACE}/endpoints/99", 1)
