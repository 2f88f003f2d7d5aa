"""Requests reach what is deployed, and answers come back as the container gave them."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest
from google.api_core import exceptions

from tests.unit.localcloud.serving.conftest import PLACE, World


def serve(world: World, *words: str, **more: Any) -> str:
    """An endpoint whose container behaves as the words say."""
    endpoint = world.endpoint(**more.pop("endpoint", {}))
    world.deploy(endpoint, world.upload(*words, **more), "1", {"0": 100})
    return endpoint


def post(world: World, method: str, body: bytes, kind: str = "application/json") -> Any:
    """The answer over HTTP, as curl has it."""
    url = f"http://127.0.0.1:{world.port}/v1/{PLACE}/endpoints/77:{method}"
    return urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": kind}))


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


def test_an_endpoint_with_nothing_deployed_says_so(world: World) -> None:
    with pytest.raises(exceptions.FailedPrecondition, match="traffic_split"):
        world.predict(world.endpoint(), 1)
    with pytest.raises(exceptions.NotFound):
        world.predict(f"{PLACE}/endpoints/99", 1)
