"""Tests that a state with foreign pickles or plugins is refused."""

from __future__ import annotations

import base64
import copy
import importlib
import pickle
import pkgutil
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.dynamic import ResourceProvider
from pulumi.dynamic.dynamic import serialize_provider

import vertex_training
from vertex_training.customjob.dynamic_values import PROVIDER_KEY, BoundedProvider
from vertex_training.customjob.provider import CustomJobProvider
from vertex_training.errors import Problem
from vertex_training.serving.provider import (
    ModelVersionProvider,
    _ServingProvider,
)
from vertex_training_cli.deploy.command import is_own_provider, state_problems

OWN: Final = serialize_provider(CustomJobProvider())
URN: Final = "urn:pulumi:dev::vertex-training::"
JOB: Final[dict[str, Any]] = {
    "urn": f"{URN}pulumi-python:dynamic/vertex:CustomJob::titanic",
    "type": "pulumi-python:dynamic/vertex:CustomJob",
    "inputs": {PROVIDER_KEY: OWN, "requestId": "a"},
    "outputs": {PROVIDER_KEY: OWN},
}
GCP: Final[dict[str, Any]] = {
    "urn": f"{URN}pulumi:providers:gcp::default_9_35_0",
    "type": "pulumi:providers:gcp",
    "inputs": {"project": "acme-ml-dev", "version": "9.35.0", "__internal": {}},
}


class Evil:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("__import__('os').system('touch /tmp/owned')",)


class Other(ResourceProvider):
    """A provider class outside of the program."""


def own_providers() -> set[type[ResourceProvider]]:
    """Return every provider class of the program."""
    for module in pkgutil.walk_packages(vertex_training.__path__, f"{vertex_training.__name__}."):
        if module.name.endswith(".provider"):
            importlib.import_module(module.name)
    found, waiting = set(), [ResourceProvider]
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            if kind.__module__.startswith("vertex_training.") and not kind.__name__.startswith("_"):
                found.add(kind)
    assert {CustomJobProvider, ModelVersionProvider} < found
    return found - {BoundedProvider}  # the base of them all, which no resource has


def encoded(pickled: bytes) -> str:
    return base64.b64encode(pickled).decode()


def with_attribute() -> str:
    provider = CustomJobProvider()
    provider.extra = Evil()  # pyright: ignore[reportAttributeAccessIssue]
    return serialize_provider(provider)


def deployment(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"resources": list(resources)}


@pytest.mark.parametrize("protocol", [4, 5])
def test_own_provider_passes_with_the_pickle_of_any_python(protocol: int) -> None:
    assert is_own_provider(OWN)
    for provider in own_providers():
        assert is_own_provider(encoded(pickle.dumps(provider(), protocol)))
        assert is_own_provider(serialize_provider(provider()))
    assert state_problems(deployment(JOB, GCP)) == []
    assert state_problems({}) == []


@pytest.mark.parametrize(
    "text",
    [
        encoded(pickle.dumps(Evil())),
        encoded(base64.b64decode(OWN).replace(b"customjob", b"otherjobs")),
        serialize_provider(Other()),
        with_attribute(),
        encoded(base64.b64decode(OWN).replace(b"Provider", b"Provided")),
        encoded(pickle.dumps(_ServingProvider())),
        "",
        "not base64!",
        encoded(b""),
        encoded(b"."),
        encoded(base64.b64decode(OWN)[:-1] + pickle.dumps(Evil())[2:]),
        encoded(pickle.dumps((CustomJobProvider(), Evil()))),
        encoded(b"cos\nsystem\n(S'id'\ntR."),
        OWN * 100,
        None,
        {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "x"},
        [OWN],
    ],
)
@pytest.mark.parametrize("where", ["inputs", "outputs"])
def test_pickle_of_another_class_is_refused(text: object, where: str) -> None:
    changed = copy.deepcopy(JOB)
    changed[where][PROVIDER_KEY] = text
    [problem] = state_problems(deployment(GCP, changed))
    assert "the code of a provider that is not part of the program" in problem.what
    assert problem.path == ("state", "titanic")


def test_bytes_after_the_end_of_a_pickle_are_ignored() -> None:
    """The engine's unpickler stops at the same byte."""
    assert is_own_provider(encoded(base64.b64decode(OWN) + pickle.dumps(Evil())))


@given(st.binary(max_size=200))
def test_invalid_pickle_is_refused_without_an_exception(content: bytes) -> None:
    assert not is_own_provider(encoded(content))


def test_foreign_pickle_is_detected_in_any_type_and_in_pending_operations() -> None:
    evil = {"urn": f"{URN}a:b:C::x", "type": "a:b:C", "inputs": {PROVIDER_KEY: "x"}}
    assert len(state_problems(deployment(evil))) == 1
    assert len(state_problems({"pending_operations": [{"resource": evil}]})) == 1


def test_dynamic_resource_without_a_provider_is_refused() -> None:
    without = {**JOB, "inputs": {}, "outputs": {}}
    assert len(state_problems(deployment(without))) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"type": "pulumi:providers:mallory"},
        {"type": "pulumi:providers:command"},
        {"inputs": {"pluginDownloadURL": "https://m.example"}},
        {"inputs": {"__internal": {"pluginDownloadURL": "https://m.example"}}},
        {"inputs": {"__internal": {"parameterization": {"name": "m", "value": "eA=="}}}},
        {"outputs": {"pluginDownloadURL": "https://m.example"}},
        {"inputs": {"batching": [{"a": 1}, [{"pluginDownloadURL": "https://m.example"}]]}},
    ],
)
def test_plugin_that_the_program_does_not_use_is_refused(changed: dict[str, Any]) -> None:
    assert len(state_problems(deployment({**GCP, **changed}))) == 1


HINT: Final = (
    "find out which account wrote the state (`gcloud storage ls -a`), and restore an older "
    "generation of the state"
)


def test_refusal_of_a_state_contains_the_resource_and_a_hint() -> None:
    evil = {**JOB, "inputs": {PROVIDER_KEY: "x"}}
    plugin = {**GCP, "type": "pulumi:providers:mallory", "urn": f"{URN}x::default"}
    download = {**GCP, "inputs": {"pluginDownloadURL": "https://m.example"}}
    assert state_problems(deployment(evil, plugin, download)) == [
        Problem(
            "the state contains the code of a provider that is not part of the program", "", HINT,
                ("state", "titanic")),
        Problem("the state names a plugin that the program does not use", "mallory", HINT,
                ("state", "default")),
        Problem("the state's pluginDownloadURL names a program to download", "", HINT,
                ("state", "default_9_35_0")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "state",
    [
        {"resources": None, "pending_operations": None},
        {"pending_operations": [{}, {"resource": None}, {"resource": JOB}]},
        deployment({**JOB, "inputs": {}, "outputs": {}, "external": True}),
        deployment({**JOB, "inputs": None}),
        deployment({**GCP, "inputs": None, "outputs": None}),
        deployment({**GCP, "inputs": {"pluginDownloadURL": "", "parameterization": {}}}),
        deployment({**GCP, "type": "pulumi:providers:pulumi-python"}),
        deployment({"type": "a:b:C", "inputs": {"pluginDownloadURL": "https://a.example"}}),
        deployment({}),
    ],
)
def test_state_without_foreign_code_passes(state: dict[str, Any]) -> None:
    assert state_problems(state) == []


def test_provider_pickle_has_at_most_500_characters() -> None:
    own = base64.b64decode(OWN)
    assert is_own_provider(text := encoded(own.ljust(375, b"\0")))
    assert len(text) == 500
    assert not is_own_provider(encoded(own.ljust(376, b"\0")))
