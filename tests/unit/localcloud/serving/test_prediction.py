"""Requests reach what is deployed, by its share of the traffic."""

from __future__ import annotations

from tests.unit.localcloud.serving.conftest import World


def test_a_model_that_was_uploaded_and_deployed_predicts(world: World) -> None:
    endpoint, model = world.endpoint(), world.upload()
    world.deploy(endpoint, model, "1", {"0": 100})
    answer = world.predict(endpoint, *range(100))
    assert list(answer.predictions) == [2.0 * x for x in range(100)]
    assert (answer.deployed_model_id, answer.model_version_id) == ("1", "1")
