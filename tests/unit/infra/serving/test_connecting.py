"""How the ports of models and endpoints connect, and how their providers' process begins."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from vertex_training.customjob.google import job_service
from vertex_training.serving import provider
from vertex_training.serving.google import endpoints, registry, runs, serving_api
from vertex_training.serving.provider import (
    DeployedModelsProvider,
    EndpointCleanupProvider,
    ModelVersionProvider,
)

PLACE = ("acme-ml", "us-central1", "me@x")


@pytest.mark.parametrize(
    ("module", "types"),
    [
        (
            registry,
            (serving_api.ModelServiceClient, serving_api.ModelServiceGrpcTransport),
        ),
        (
            endpoints,
            (serving_api.EndpointServiceClient, serving_api.EndpointServiceGrpcTransport),
        ),
    ],
)
def test_a_client_is_made_once_for_a_place_an_account_and_an_address(
    module: Any, types: tuple[type, type], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[Any, ...]] = []
    address = ["127.0.0.1:1"]
    monkeypatch.setattr(module, "local_address", lambda project: f"{address[0]} of {project}")
    monkeypatch.setattr(module, "service_client", lambda *how: made.append(how) or object())
    module._connected.cache_clear()
    first = module.connect(*PLACE)
    assert module.connect(*PLACE) is first
    others = [module.connect("acme-ml", "us-central1"), module.connect("acme-ml", "us-east1")]
    address[0] = "127.0.0.1:2"  # another local cloud
    assert first not in (*others, module.connect(*PLACE))
    assert made == [
        (*types, *PLACE),
        (*types, "acme-ml", "us-central1", ""),
        (*types, "acme-ml", "us-east1", ""),
        (*types, *PLACE),
    ]
    module._connected.cache_clear()


def test_runs_are_read_as_the_account_that_submits(monkeypatch: pytest.MonkeyPatch) -> None:
    def jobs(*place: str, account: str) -> Any:
        labelled = lambda parent, labels: [place, account, parent, labels]  # noqa: E731
        return SimpleNamespace(labelled=labelled)

    monkeypatch.setattr(job_service, "connect", jobs)
    monkeypatch.setattr(runs, "storage_client", lambda *how: how)
    found = runs.connect(*PLACE)
    assert found.jobs("projects/acme-ml/locations/us-central1", {"run": "1"}) == [
        ("acme-ml", "us-central1"), "me@x", "projects/acme-ml/locations/us-central1", {"run": "1"},
    ]  # fmt: skip
    assert found._objects == ("acme-ml", "me@x")


@pytest.mark.parametrize(
    "of", [ModelVersionProvider, DeployedModelsProvider, EndpointCleanupProvider]
)
def test_the_process_of_a_provider_tells_errors_as_the_program_does(
    of: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(provider, "format_exceptions", asked.append)
    of().configure(SimpleNamespace())
    assert asked == [provider.format_exception]
    assert of().serialize_as_secret_always is False


def test_a_wait_has_the_providers_bounds_and_ends_with_the_engine() -> None:
    found = ModelVersionProvider()._wait()
    wait = ModelVersionProvider.wait
    assert (found.backoff, found.longest, found.doubt) == (wait.backoff, wait.longest, wait.doubt)
    assert found.report is provider.print_line
    assert found.environment.engine_is_alive is provider.is_engine_alive
