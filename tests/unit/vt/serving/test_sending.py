"""How rows are sent to an endpoint, what a refusal is, and what is printed of answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import RefreshError
from google.cloud.aiplatform_v1.types import Endpoint, PredictResponse
from google.protobuf.struct_pb2 import Value

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.serving import endpoints, service
from vertex_training_cli.serving.endpoints import Batch

REF = StackRef(Path("/srv"), "p", "dev", "acme", "us-central1")
NAME = "projects/1/locations/us-central1/endpoints/7"


def endpoint(**more: Any) -> Endpoint:
    given = {"name": NAME, "display_name": "titanic", "deployed_models": [{"id": "1"}]}
    return Endpoint({**given, **more})


class Client:
    """Answers with the doubles of what it is sent, or with what is given."""

    def __init__(self) -> None:
        self.made: list[tuple[str, ...]] = []
        self.sent: list[tuple[str, list[float], float]] = []
        self.errors: Iterator[Exception] = iter(())

    def predict(self, *, endpoint: str, instances: Any, retry: Any, timeout: float) -> Any:
        return retry(self._predict)(endpoint, instances, timeout)

    def _predict(self, endpoint: str, instances: Any, timeout: float) -> PredictResponse:
        self.sent.append((endpoint, [each.number_value for each in instances], timeout))
        if error := next(self.errors, None):
            raise error
        doubled = [Value(number_value=2 * each.number_value) for each in instances]
        response = PredictResponse()
        PredictResponse.pb(response).predictions.extend(doubled)
        return response


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(service, "client", lambda *words: found.made.append(words) or found)
    return found


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            exceptions.BadRequest("no"),
            "the endpoint did not answer the request for lines 5 to 6: 400 no",
        ),
        (
            exceptions.Forbidden("no"),
            "the endpoint did not answer the request for lines 5 to 6: 403 no",
        ),
        (RefreshError("no"), "the endpoint did not answer the request for lines 5 to 6: no"),
    ],
)
def test_a_refusal_names_the_lines_of_the_request(
    client: Client, error: Exception, text: str
) -> None:
    client.errors = iter([error])
    with pytest.raises(OperatorError) as refused:
        endpoints.sender(REF, endpoint())(Batch(5, [1, 2]))
    assert str(refused.value) == text
    assert len(client.sent) == 1


def test_answers_that_are_too_few_are_no_answers(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "predict", lambda **_: PredictResponse())
    with pytest.raises(
        OperatorError, match=r"^the endpoint returned 0 predictions for the 1 rows of line 1"
    ):
        endpoints.sender(REF, endpoint())(Batch(1, [1]))


def test_a_row_that_no_message_can_have_is_not_sent(client: Client) -> None:
    with pytest.raises(CommandError, match=r"^cannot send line 1: "):
        endpoints.sender(REF, endpoint())(Batch(1, [object()]))
    assert client.sent == []


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"deployed_models": []},
            "endpoint titanic has no deployed model. "
            "Hint: wait for a deployed version with `vt endpoints wait`.",
        ),
        (
            {"network": "projects/1/global/networks/n"},
            "endpoint titanic is private. "
            "Hint: send requests to the endpoint's Private Service Connect address from its "
            "network.",
        ),
    ],
)
def test_an_endpoint_that_cannot_answer_is_told(
    client: Client, more: dict[str, Any], text: str
) -> None:
    with pytest.raises(CommandError) as refused:
        endpoints.sender(REF, endpoint(**more))
    assert str(refused.value) == text
    local = StackRef(Path("/srv"), "p", "local", "local-x", "us-central1")
    if "network" in more:  # the local cloud has no networks
        assert endpoints.sender(local, endpoint(**more))(Batch(1, [1])) == [2]
