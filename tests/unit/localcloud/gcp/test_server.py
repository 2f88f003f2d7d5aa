"""Answers of the plugin's methods, whole, without a connection."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from localgcp.gcp.codec import UNKNOWN, Secret, decode, encode, plain
from localgcp.gcp.server import Provider
from localgcp.gcp.services import base
from localgcp.inventory.store import SERVICE, Store
from tests.unit.localcloud.gcp.harness import Plugin

SECRET, TEXT = "gcp:secretmanager/secret:Secret", "gcp:logging/metric:Metric"
FIREWALL = "gcp:compute/firewall:Firewall"
URN = f"urn:pulumi:dev::stack::{SECRET}::key"
PATH = "projects/local-p1/secrets/key"
NO_SOURCE = "one of source_tags, source_ranges, or source_service_accounts must be defined"
UNSERVED = (
    ": it can be neither rehearsed nor previewed offline. Hint: declare it only outside of local "
    "projects, and preview signed in to Google Cloud; or add it to "
    "localcloud/localgcp/gcp/services/__init__.py; docs/components.md"
)


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
        accept_secrets=True, supports_autonaming_configuration=True
    )
    assert provider.Configure(
        provider_pb2.ConfigureRequest(), None
    ) == provider_pb2.ConfigureResponse(
        acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
    )
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


@pytest.mark.parametrize(
    ("args", "variables", "project"),
    [
        ({"project": "a"}, {}, "a"),
        ({}, {"gcp:config:project": "b"}, "b"),
        ({"project": "a"}, {"gcp:config:project": "b"}, "a"),
        ({"project": Secret("a")}, {}, "a"),
        ({}, {}, "e"),
    ],
)
def test_its_project_is_that_of_the_arguments_of_the_variables_or_of_the_environment(
    args: dict[str, Any], variables: dict[str, str], project: str
) -> None:
    provider = Provider({"GOOGLE_PROJECT": "e"})
    provider.Configure(
        provider_pb2.ConfigureRequest(args=encode(args), variables=variables), CONTEXT
    )
    request = provider_pb2.CreateRequest(type=TEXT, properties=encode({}), preview=True)
    assert decode(provider.Create(request, CONTEXT).properties)["project"] == project


@pytest.mark.parametrize(
    ("type_", "urn", "token"),
    [
        ("gcp:x/y:Y", "", "gcp:x/y:Y"),
        ("gcp:x/y:Y", URN, "gcp:x/y:Y"),
        ("", "urn:pulumi:dev::stack::gcp:x/y:Y::n", "gcp:x/y:Y"),
        ("", "urn:pulumi:dev::stack::a:b:C$d:e:F$gcp:x/y:Y::n", "gcp:x/y:Y"),
    ],
)
def test_a_type_that_it_does_not_have_is_told_with_what_to_do(
    type_: str, urn: str, token: str
) -> None:
    with pytest.raises(AbortedError) as aborted:
        Provider({}).Delete(provider_pb2.DeleteRequest(type=type_, urn=urn), CONTEXT)
    assert aborted.value.args == (
        grpc.StatusCode.UNIMPLEMENTED,
        f"the stand-in for the gcp plugin does not know the resource type {token}{UNSERVED}",
    )


def test_it_has_no_data_sources() -> None:
    with pytest.raises(AbortedError) as aborted:
        Provider({}).Invoke(provider_pb2.InvokeRequest(tok="gcp:a/b:c"), CONTEXT)
    assert aborted.value.args == (
        grpc.StatusCode.UNIMPLEMENTED,
        "gcp:a/b:c: the stand-in for the gcp plugin has no data sources; a program that uses one "
        "cannot be previewed without Google Cloud",
    )


def test_a_provider_that_was_not_configured_has_no_project() -> None:
    request = provider_pb2.CreateRequest(type=TEXT, properties=encode({}), preview=True)
    answer = Provider({}).Create(request, CONTEXT)
    assert decode(answer.properties)["project"] == UNKNOWN


def test_inputs_are_checked_and_compared() -> None:
    provider = configured("acme")
    request = provider_pb2.CheckRequest(urn=URN, name="s", news=encode({"secretId": "key"}))
    assert provider.Check(request, CONTEXT) == provider_pb2.CheckResponse(
        inputs=encode({"secretId": "key", "__defaults": []}),
        failures=[
            provider_pb2.CheckFailure(
                reason='Missing required argument. The argument "replication" is required, but no '
                "definition was found.. Examine values at 's.replication'."
            )
        ],
    )
    note = {"goog-pulumi-provisioned": "true"}
    olds = encode({"secretId": "key", "effectiveLabels": note, "pulumiLabels": note})
    news = encode({"secretId": "other"})
    diff = provider_pb2.DiffRequest(urn=URN, olds=olds, news=news)
    assert provider.Diff(diff, CONTEXT) == provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME,
        replaces=["secretId"],
        deleteBeforeReplace=True,
        diffs=["secretId"],
        detailedDiff={
            "secretId": provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.UPDATE_REPLACE),
        },
        hasDetailedDiff=True,
    )


def test_a_message_may_be_as_large_as_the_engine_lets_it_be(abroad: Plugin) -> None:
    large = provider_pb2.DiffRequest(news=encode({"content": "x" * 5_000_000}))
    assert abroad.stub.DiffConfig(large).changes == provider_pb2.DiffResponse.DIFF_SOME


@pytest.mark.parametrize("method", ["Diff", "Create"])
def test_what_the_plugin_refuses_while_it_plans_is_told_with_the_urn(method: str) -> None:
    urn, inputs = f"urn:pulumi:dev::stack::{FIREWALL}::f", encode({"name": "f"})
    request = (
        provider_pb2.DiffRequest(urn=urn, news=inputs)
        if method == "Diff"
        else provider_pb2.CreateRequest(urn=urn, properties=inputs, preview=True)
    )
    with pytest.raises(AbortedError) as aborted:
        getattr(configured("acme"), method)(request, CONTEXT)
    assert aborted.value.args == (grpc.StatusCode.UNKNOWN, f"diffing {urn}: {NO_SOURCE}")


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
EXPECTED = {
    "secretId": "key", "id": PATH, "project": "local-p1", "name": "projects/NUMBER/secrets/key",
}  # fmt: skip


def create(provider: Provider, **more: Any) -> Any:
    request = provider_pb2.CreateRequest(urn=URN, properties=encode(INPUTS | more))
    return provider.Create(request, CONTEXT)


def chosen(properties: Any) -> dict[str, Any]:
    """Those outputs of a secret that ``EXPECTED`` has, and without the project's number."""
    found = {key: value for key, value in decode(properties).items() if key in EXPECTED}
    return found | {"name": re.sub(r"projects/\d+/", "projects/NUMBER/", found["name"])}


def test_a_resource_is_made_read_imported_updated_and_removed(provider: Provider) -> None:
    made = create(provider)
    assert (made.id, chosen(made.properties)) == (PATH, EXPECTED)
    assert "__meta" in made.properties.fields

    read = provider.Read(provider_pb2.ReadRequest(urn=URN, id="key"), CONTEXT)
    assert (read.id, chosen(read.properties)) == (PATH, EXPECTED)
    assert decode(read.inputs) == INPUTS

    drifted = encode({**decode(made.properties), "labels": {"a": "1"}})
    request = provider_pb2.ReadRequest(
        urn=URN, id=PATH, properties=drifted, inputs=encode(INPUTS | {"labels": {"a": "1"}})
    )
    read = provider.Read(request, CONTEXT)
    assert read.properties == made.properties
    assert decode(read.inputs) == INPUTS | {"labels": {}}

    update = provider_pb2.UpdateRequest(
        urn=URN, id=PATH, olds=made.properties, news=encode(INPUTS | {"labels": {"a": "2"}})
    )
    changed = decode(provider.Update(update, CONTEXT).properties)
    labels = Secret({"goog-pulumi-provisioned": "true", "a": "2"})
    assert changed == decode(made.properties) | {
        "labels": {"a": "2"}, "effectiveLabels": labels, "pulumiLabels": labels,
    }  # fmt: skip
    update.ignoreChanges.append("labels")
    unchanged = provider.Update(update, CONTEXT)
    assert unchanged.properties == made.properties

    delete = provider_pb2.DeleteRequest(urn=URN, id=PATH, properties=made.properties)
    assert provider.Delete(delete, CONTEXT) == empty_pb2.Empty()
    gone = provider.Read(provider_pb2.ReadRequest(urn=URN, id=PATH), CONTEXT)
    assert gone == provider_pb2.ReadResponse()


def test_what_the_store_has_no_content_of_is_the_engines(
    provider: Provider, tmp_path: Path
) -> None:
    """An asset, of which the store has the hash."""
    made = decode(create(provider).properties)
    kept, outputs = {"asset": "h"}, {**plain(made), "annotations": {"asset": "h"}}
    store = Store(tmp_path / "cloud.sqlite")
    store.put(SECRET, PATH, "local-p1", INPUTS | {"annotations": kept}, outputs)
    imported = provider.Read(provider_pb2.ReadRequest(urn=URN, id=PATH), CONTEXT)
    assert decode(imported.inputs) == INPUTS
    before = encode({**made, "annotations": {"own": "1"}})
    request = provider_pb2.ReadRequest(urn=URN, id=PATH, properties=before, inputs=encode(INPUTS))
    assert decode(provider.Read(request, CONTEXT).properties)["annotations"] == {"own": "1"}


def test_what_the_cloud_refuses_is_told_in_its_words(provider: Provider) -> None:
    create(provider)
    with pytest.raises(AbortedError) as aborted:
        create(provider)
    assert aborted.value.args == (
        grpc.StatusCode.UNKNOWN,
        "Error creating Secret: googleapi: Error 409: Secret [projects/local-p1/secrets/key] "
        "already exists., alreadyExists",
    )


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
