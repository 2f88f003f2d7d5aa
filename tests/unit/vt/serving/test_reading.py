"""Which clients read models and endpoints, what is asked of them, and what a refusal becomes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.exceptions import DefaultCredentialsError
from google.cloud.aiplatform_v1.services import endpoint_service, model_service, prediction_service
from google.cloud.aiplatform_v1.types import Endpoint, Model

from vertex_training.errors import CommandError, OperatorError
from vertex_training_cli.engine.stacks import StackRef
from vertex_training_cli.serving import service
from vertex_training_cli.serving.service import Version

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


@pytest.mark.parametrize(
    ("kind", "client", "transport"),
    [
        ("model", model_service.ModelServiceClient, "ModelServiceGrpcTransport"),
        ("endpoint", endpoint_service.EndpointServiceClient, "EndpointServiceGrpcTransport"),
        ("prediction", prediction_service.PredictionServiceClient,
         "PredictionServiceGrpcTransport"),
    ],
)  # fmt: skip
def test_each_service_has_its_client(
    made: list[Any], kind: Any, client: Any, transport: str
) -> None:
    assert service.client("acme", "us-central1", kind) == "client"
    [(make, through, *place)] = made
    assert (make, through.__name__, place) == (client, transport, ["acme", "us-central1"])


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


def version(number: str, key: str, **more: Any) -> Model:
    labels = {"vt-model": key, "vt-job": "fit", "vt-run": "3"} if key else {}
    return Model(version_id=number, labels=labels, **more)


def test_versions_are_read_model_by_model_the_newest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = version(
        "10", "b-models", container_spec={"image_uri": "img"}, artifact_uri="gs://b/x",
        version_aliases=["default", "r-3"],
        version_create_time=datetime(2026, 11, 21, 10, 5, 6, tzinfo=UTC),
    )  # fmt: skip
    client = use(
        monkeypatch,
        Client(
            models=[Model(name=f"{PLACE}/models/{each}") for each in ("m2@3", "m1", "m2@1")],
            m1=[version("1", "z-models"), version("x", "z-models"), version("2", "")],
            m2=[version("9", "b-models"), whole],
        ),
    )
    found = service.ModelReader(REF).versions()
    assert [(each.model, each.number) for each in found] == [
        ("b-models", "10"), ("b-models", "9"), ("z-models", "1"), ("z-models", "x"),
    ]  # fmt: skip
    assert found[0] == Version(
        "b-models", "10", "fit", "3", "img", "gs://b/x", ("default", "r-3"), "2026-11-21 10:05:06",
        f"{PLACE}/models/m2@10",
    )  # fmt: skip
    bare = Version("b-models", "9", "fit", "3", "", "", (), "", f"{PLACE}/models/m2@9")
    assert found[1] == bare
    assert client.asked == [
        {"parent": PLACE, "filter": "labels.vt-stack=dev"},
        {"name": f"{PLACE}/models/m1"}, {"name": f"{PLACE}/models/m2"},
    ]  # fmt: skip
    of_one = service.ModelReader(REF).of_model("b")
    assert of_one == found[:2]
    with pytest.raises(CommandError) as refused:
        service.ModelReader(REF).of_model("zz")
    assert str(refused.value).startswith("stack dev has no model 'zz'.")


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


def test_the_stacks_own_endpoint_has_its_key_whatever_others_are_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = service.Names("acme", "", "us-central1", "dev").endpoint_id("fit-endpoints")
    client = use(
        monkeypatch,
        Client(
            endpoints=[
                endpoint("1", "fit-endpoints-dev"), endpoint(own, "fit-endpoints-dev"),
                endpoint("2", "by-hand"), endpoint("3", "fit-endpoints-dev"),
            ]
        ),
    )  # fmt: skip
    found = service.Endpoints(REF)
    ids = {key: each.name.rpartition("/")[2] for key, each in found.list().items()}
    assert list(ids.items()) == [
        ("1", "1"), ("3", "3"), ("by-hand", "2"), ("fit-endpoints", own),
    ]  # fmt: skip
    assert client.asked == [{"parent": PLACE, "filter": "labels.stack=dev"}]
    for wanted, id_ in (("fit", own), ("1", "1"), ("2", "2"), (own, own)):
        assert found.find(wanted).name.rpartition("/")[2] == id_


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            "by",
            "stack dev did not make endpoint 2, named 'by'. Hint: to mean it, name its id: 2",
        ),
        ("bi-endpoints", "stack dev has no endpoint 'bi-endpoints'. "
         "Hint: did you mean 'by-endpoints'?"),
    ],
)  # fmt: skip
def test_an_endpoint_that_the_stack_did_not_make_is_meant_by_its_id_alone(
    monkeypatch: pytest.MonkeyPatch, wanted: str, text: str
) -> None:
    use(monkeypatch, Client(endpoints=[endpoint("2", "by-endpoints-dev")]))
    with pytest.raises(CommandError) as refused:
        service.Endpoints(REF).find(wanted)
    assert str(refused.value) == text


def test_without_endpoints_the_list_is_pointed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Client())
    with pytest.raises(CommandError) as refused:
        service.Endpoints(REF).find("x")
    assert str(refused.value) == (
        "stack dev has no endpoint 'x'. Hint: `vt endpoints list` shows those there are"
    )


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


def test_shares_go_by_run_where_the_version_is_known() -> None:
    deployed = [
        {"id": "1", "model": f"{PLACE}/models/m@5", "model_version_id": "3"},
        {"id": "2", "model": f"{PLACE}/models/m", "model_version_id": "4"},
        {"id": "3", "model": f"{PLACE}/models/m", "model_version_id": "5"},
    ]
    found = endpoint("1", "x", deployed_models=deployed, traffic_split={"1": 90, "3": 10})
    runs = {f"{PLACE}/models/m@3": "run 3", f"{PLACE}/models/m@4": "run 4"}
    assert service.shares(found, runs) == {"run 3": 90, "run 4": 0, "model 3": 10}


def test_the_stack_of_a_command_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    ref = SimpleNamespace(connect_clients=lambda: calls.append("connect"))
    monkeypatch.setattr(service.stacks, "find", lambda stack: calls.append(stack) or ref)
    assert service.connected("dev") is ref
    assert calls == ["dev", "connect"]
