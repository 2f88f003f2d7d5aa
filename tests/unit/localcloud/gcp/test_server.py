"""Answers of the plugin's methods, whole, without a connection."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from localgcp.gcp.codec import UNKNOWN, Secret, decode, encode
from localgcp.gcp.server import Provider
from localgcp.gcp.services import base
from localgcp.inventory.store import SERVICE, Store
from tests.unit.localcloud.gcp.harness import Plugin

SECRET, TEXT = "gcp:secretmanager/secret:Secret", "gcp:logging/metric:Metric"
URN = f"urn:pulumi:dev::stack::{SECRET}::key"
PATH = "projects/local-p1/secrets/key"


class AbortedError(Exception):
    """The status and the text that the engine gets."""


class Context:
    """A call whose refusal is an exception."""

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise AbortedError(code, details)


CONTEXT: Any = Context()


def configured(project: str, **environment: str) -> Provider:
    provider = Provider(environment)
    provider.Configure(
        provider_pb2.ConfigureRequest(args=encode({"project": project, "region": "us-west1"})),
        CONTEXT,
    )
    return provider


@pytest.fixture
def provider(tmp_path: Path) -> Provider:
    """Of a local project in which secrets are on."""
    store = Store(tmp_path / "cloud.sqlite")
    store.put(SERVICE, "local-p1/secretmanager.googleapis.com", "local-p1", {}, {})
    return configured("local-p1", VT_LOCAL_HOME=str(tmp_path))


def test_what_the_engine_is_told_of_the_plugin() -> None:
    provider = Provider({})
    assert provider.Handshake(None, None) == provider_pb2.ProviderHandshakeResponse(
        accept_secrets=True
    )
    assert provider.Configure(
        provider_pb2.ConfigureRequest(), None
    ) == provider_pb2.ConfigureResponse(acceptSecrets=True, supportsPreview=True)
    version = provider.GetPluginInfo(None, None)
    assert version == plugin_pb2.PluginInfo(version="9.35.0")
    schema = json.loads(provider.GetSchema(None, None).schema)
    assert (schema["name"], schema["version"]) == ("gcp", "9.35.0")
    assert provider.Attach(None, None) == provider.Cancel(None, None) == empty_pb2.Empty()


def test_its_configuration_is_taken_as_it_is_and_compared() -> None:
    provider = Provider({})
    some, other = encode({"project": "a"}), encode({"project": "b"})
    checked = provider.CheckConfig(provider_pb2.CheckRequest(news=some), None)
    assert checked == provider_pb2.CheckResponse(inputs=some)
    answers = provider_pb2.DiffResponse
    for news, changes in ((some, answers.DIFF_NONE), (other, answers.DIFF_SOME)):
        found = provider.DiffConfig(provider_pb2.DiffRequest(olds=some, news=news), None)
        assert found == answers(changes=changes)


def test_it_has_no_data_sources() -> None:
    with pytest.raises(AbortedError) as aborted:
        Provider({}).Invoke(provider_pb2.InvokeRequest(tok="gcp:a/b:c"), CONTEXT)
    assert aborted.value.args == (
        grpc.StatusCode.UNIMPLEMENTED,
        "gcp:a/b:c: the local gcp plugin does not support data sources. Hint: preview a program "
        "with data sources with Google Cloud credentials",
    )


def test_a_message_may_be_as_large_as_the_engine_lets_it_be(abroad: Plugin) -> None:
    large = provider_pb2.DiffRequest(news=encode({"content": "x" * 5_000_000}))
    assert abroad.stub.DiffConfig(large).changes == provider_pb2.DiffResponse.DIFF_SOME


@pytest.mark.parametrize("home", ["", "absent", "."])
def test_an_error_that_nobody_expects_is_one_line_and_its_traceback_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, home: str
) -> None:
    def delete(*_given: Any) -> None:
        raise KeyError("cause")

    monkeypatch.setattr(base.ResourceType, "delete", delete)
    folder = str(tmp_path / home) if home else ""
    provider = configured("local-p1", VT_LOCAL_HOME=folder)
    monkeypatch.setattr(base.ResourceType, "unmake", delete)
    log = tmp_path / "gcp-plugin.log"
    request = provider_pb2.DeleteRequest(
        urn=URN, id=PATH, properties=encode({"project": "local-p1"})
    )
    for _ in range(2):
        with pytest.raises(AbortedError) as aborted:
            provider.Delete(request, CONTEXT)
        kept = f" (details in {Path(folder) / log.name})" if home == "." else ""
        text = f"unexpected KeyError: 'cause'{kept}"
        assert aborted.value.args == (grpc.StatusCode.UNKNOWN, text)
    told = capsys.readouterr().err
    written = log.read_text() if home == "." else ""
    assert (told.count("KeyError: 'cause'"), written.count("KeyError: 'cause'")) == (
        (0, 2) if written else (2, 0)
    )
    times = re.findall(r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00\nTraceback ", written)
    assert len(times) == (2 if written else 0)


INPUTS = {"secretId": "key", "replication": {"auto": {}}}


def create(provider: Provider, **more: Any) -> Any:
    request = provider_pb2.CreateRequest(urn=URN, properties=encode(INPUTS | more))
    return provider.Create(request, CONTEXT)


def test_an_update_is_foretold_without_being_made(provider: Provider) -> None:
    made = create(provider, labels={"a": "1"})
    news = encode(INPUTS | {"labels": {"a": UNKNOWN}})
    request = provider_pb2.UpdateRequest(
        urn=URN, id=PATH, olds=made.properties, news=news, preview=True
    )
    planned = decode(made.properties) | {"replication": {"auto": {}}}
    assert decode(provider.Update(request, CONTEXT).properties) == planned | {
        "labels": {"a": UNKNOWN},
        "effectiveLabels": Secret(UNKNOWN),
        "pulumiLabels": Secret(UNKNOWN),
    }
    request.ignoreChanges.append("labels")
    request.old_inputs.CopyFrom(encode(INPUTS | {"labels": {"a": "1"}}))
    assert decode(provider.Update(request, CONTEXT).properties) == planned
    read = provider.Read(provider_pb2.ReadRequest(urn=URN, id=PATH), CONTEXT)
    assert decode(read.inputs)["labels"] == {"a": "1"}


def test_concurrent_grants_of_two_plugins_are_all_kept(plugin_for: Any, tmp_path: Path) -> None:
    plugins = [plugin_for("local-p1", VT_LOCAL_HOME=str(tmp_path)) for _ in range(2)]
    plugins[0].enable("cloudresourcemanager")
    roles = [f"roles/custom.r{number}" for number in range(24)]
    member = "group:ml@example.com"

    def grant(number: int, role: str) -> None:
        inputs = {"project": "local-p1", "role": role, "member": member}
        plugins[number % 2].create("gcp:projects/iAMMember:IAMMember", inputs)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(grant, range(len(roles)), roles))
    store = Store(tmp_path / "cloud.sqlite")
    assert store.roles("projects/local-p1", member) == set(roles)
