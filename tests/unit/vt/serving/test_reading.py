"""Which clients read models and endpoints, what is asked of them, and what a refusal becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError
from google.cloud.aiplatform_v1.services import prediction_service
from google.cloud.aiplatform_v1.types import Endpoint

from vertex_training.errors import OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.serving import service

PLACE = "projects/acme/locations/us-central1"
REF = StackRef(Path("/srv"), "p", "dev", "acme", "us-central1")
DNS = "7.us-central1-1.prediction.vertexai.goog"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Clients of the shared services, as they are asked for."""
    found: list[Any] = []
    monkeypatch.setattr(
        service.job_service, "service_client", lambda *given: found.append(given) or "client"
    )
    return found


def test_a_dedicated_endpoint_is_asked_at_its_own_address(
    made: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(service, "impersonated_credentials", lambda account: f"of {account!r}")
    monkeypatch.setattr(
        prediction_service, "PredictionServiceClient", lambda **words: given.append(words) or "own"
    )
    monkeypatch.setattr(service, "local_address", lambda project: project.startswith("local-"))
    assert service.client("acme", "us-central1", "prediction", DNS) == "own"
    [words] = given
    assert words.pop("client_options").api_endpoint == DNS
    assert words == {"credentials": "of ''", "transport": "rest"}
    assert service.client("local-x", "us-central1", "prediction", DNS) == "client"
    assert len(made) == 1


def test_without_credentials_it_says_how_to_sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise DefaultCredentialsError("none")

    monkeypatch.setattr(service, "impersonated_credentials", lambda _: None)
    monkeypatch.setattr(prediction_service, "PredictionServiceClient", refuse)
    with pytest.raises(OperatorError) as failed:
        service.client("acme", "us-central1", "prediction", DNS)
    assert "gcloud auth application-default login" in str(failed.value)


class Client:
    """Answers of the services by the word that is asked for; what was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, list[Any]()
        self.kind = "model" if "models" in answers else "endpoint"

    def _answer(self, key: str, request: Any) -> Any:
        self.asked.append(request)
        found = self.answers.get(key, [])
        if isinstance(found, Exception):
            raise found
        return iter(found)

    def list_models(self, request: Any, **_: Any) -> Any:
        return self._answer("models", request)

    def list_model_versions(self, request: Any, **_: Any) -> Any:
        return self._answer(request["name"].rpartition("/")[2], request)

    def list_endpoints(self, request: Any, **_: Any) -> Any:
        return self._answer("endpoints", request)


def use(monkeypatch: pytest.MonkeyPatch, client: Client) -> Client:
    def make(project: str, region: str, kind: str) -> Client:
        assert (project, region) == ("acme", "us-central1")
        assert kind == client.kind
        return client

    monkeypatch.setattr(service, "client", make)
    monkeypatch.setattr(StackRef, "first_key", lambda _, key, section: f"{key}-{section}")
    return client


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (exceptions.NotFound("no region"), "Vertex AI: no region"),
        (exceptions.FailedPrecondition("not now"), "Vertex AI: not now"),
        (exceptions.Forbidden("no"), "Vertex AI did not answer list_models: Forbidden: no"),
    ],
)
def test_a_refusal_is_told(monkeypatch: pytest.MonkeyPatch, error: Exception, text: str) -> None:
    use(monkeypatch, Client(models=error))
    with pytest.raises(OperatorError) as failed:
        service.ModelReader(REF).versions()
    assert str(failed.value) == text


def endpoint(id_: str, name: str, **more: Any) -> Endpoint:
    return Endpoint(name=f"{PLACE}/endpoints/{id_}", display_name=name, **more)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "public, shared"),
        ({"dedicated_endpoint_enabled": True}, "public, dedicated"),
        ({"network": "projects/1/global/networks/n"}, "private"),
        ({"private_service_connect_config": {"enable_private_service_connect": True}}, "private"),
        ({"private_service_connect_config": {}}, "public, shared"),
    ],
)
def test_from_where_an_endpoint_is_reached(given: dict[str, Any], words: str) -> None:
    assert service.reach(endpoint("1", "x", **given)) == words
