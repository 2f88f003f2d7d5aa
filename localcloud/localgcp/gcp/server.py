"""The plugin's server: one method for each RPC of Pulumi's ResourceProvider protocol."""

from __future__ import annotations

import functools
import json
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from localgcp.access import gate
from localgcp.errors import PluginError, RefusedError
from localgcp.gcp import check, diff, plan
from localgcp.gcp.cloud import HOME_VARIABLE, Cloud
from localgcp.gcp.codec import UNKNOWN, Secret, decode, encode, plain
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import TypeSchema, package_schema, version
from localgcp.gcp.services import find
from localgcp.gcp.services.base import ResourceType

# Property values travel inside messages, so accept messages of the engine's maximum size.
_MESSAGE_BYTES: Final = 400 * 1024 * 1024
_KIND: Final = provider_pb2.PropertyDiff.Kind


def _with_resource_type(run: Callable[[Provider, Any, ResourceType, Cloud], Any]) -> Any:
    # Returns an RPC that runs ``run`` and reports each error to the user in one line.
    @functools.wraps(run)
    def rpc(provider: Provider, request: Any, context: Any) -> Any:
        token = request.type or request.urn.split("::")[2].rpartition("$")[2]
        registration = find(token)
        if registration is None:
            context.abort(
                grpc.StatusCode.UNIMPLEMENTED,
                f"the local gcp plugin does not support the resource type {token}. Hint: declare "
                "the resource only outside of local projects, and preview with Google Cloud "
                "credentials; or add the type to localcloud/localgcp/gcp/services/__init__.py "
                "(docs/components.md)",
            )
            raise AssertionError("abort returned")
        type_, kind = registration
        try:
            return run(
                provider, request, kind, Cloud(type_, provider.settings, provider.environment)
            )
        except PluginError as error:
            text = str(error)
        except Exception as error:
            text = f"unexpected {type(error).__name__}: {error}{_log(provider.environment)}"
        context.abort(grpc.StatusCode.UNKNOWN, text)

    return rpc


def _log(environment: Mapping[str, str]) -> str:
    home = environment.get(HOME_VARIABLE)
    if not home or not Path(home).is_dir():
        print(traceback.format_exc(), file=sys.stderr)
        return ""
    path = Path(home) / "gcp-plugin.log"
    with path.open("a", encoding="utf-8") as log:
        log.write(f"{datetime.now(UTC).isoformat()}\n{traceback.format_exc()}\n")
    return f" (details in {path})"


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """The plugin. It stores only the provider's configuration; the database stores resources."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self.settings = Settings()

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True,
            accept_resources=False,
            accept_outputs=False,
        )

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=version())

    def GetSchema(self, request: Any, context: Any) -> Any:
        return provider_pb2.GetSchemaResponse(schema=json.dumps(package_schema(version())))

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        response = provider_pb2.DiffResponse
        is_changed = decode(request.olds) != decode(request.news)
        return response(changes=response.DIFF_SOME if is_changed else response.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        arguments = plain(decode(request.args))
        for key, value in request.variables.items():
            arguments.setdefault(key.rpartition(":")[2], value)
        labels = arguments.get("defaultLabels") or {}
        attribution = arguments.get("addPulumiAttributionLabel", True)
        environment = self.environment
        self.settings = Settings(
            project=arguments.get("project") or environment.get("GOOGLE_PROJECT", ""),
            region=arguments.get("region") or environment.get("GOOGLE_REGION", ""),
            zone=arguments.get("zone") or environment.get("GOOGLE_ZONE", ""),
            default_labels=json.loads(labels) if isinstance(labels, str) else labels,
            attribution=str(attribution).lower() != "false",
        )
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True,
            supportsPreview=True,
            acceptResources=False,
            acceptOutputs=False,
        )

    @_with_resource_type
    def Check(self, request: Any, kind: ResourceType, cloud: Cloud) -> Any:
        name = request.name or request.urn.split("::")[3]
        olds, news = plain(decode(request.olds)), decode(request.news)
        inputs, errors = check.check(cloud.type, name, olds, news, request.randomSeed)
        failures = [provider_pb2.CheckFailure(reason=text) for text in errors]
        return provider_pb2.CheckResponse(inputs=encode(inputs), failures=failures)

    @_with_resource_type
    def Diff(self, request: Any, kind: ResourceType, cloud: Cloud) -> Any:
        olds, news = decode(request.olds), decode(request.news)
        _ignore_changes(request.ignoreChanges, news, decode(request.old_inputs))
        _refuse(kind, news, f"diffing {request.urn}")
        changes = diff.changes(cloud.type, news, olds, self.settings, kind.changed)
        if not changes:
            return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)
        replaces = sorted({change.top for change in changes if change.replace})
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME,
            replaces=replaces,
            deleteBeforeReplace=bool(replaces) and diff.delete_first(cloud.type, news),
            diffs=sorted({change.top for change in changes}),
            detailedDiff={
                c.path: provider_pb2.PropertyDiff(kind=_KIND.Value(c.step)) for c in changes
            },
            hasDetailedDiff=True,
        )

    @_with_resource_type
    def Create(self, request: Any, kind: ResourceType, cloud: Cloud) -> Any:
        inputs = decode(request.properties)
        _refuse(kind, inputs, f"diffing {request.urn}")
        if request.preview:
            outputs = plan.preview(cloud.type, inputs, self.settings, kind.known(cloud, inputs))
            return provider_pb2.CreateResponse(properties=_encoded(cloud.type, outputs))
        created = kind.create(cloud, inputs)
        outputs = {**created.outputs, "id": created.id}
        return provider_pb2.CreateResponse(id=created.id, properties=_encoded(cloud.type, outputs))

    @_with_resource_type
    def Read(self, request: Any, kind: ResourceType, cloud: Cloud) -> Any:
        before = decode(request.properties)
        state = kind.read(cloud.in_project_of(request.id, before), request.id)
        if state is None:
            return provider_pb2.ReadResponse()
        outputs = {**state.outputs, "id": state.id}
        if before:  # the call is a refresh; otherwise, the call is an import
            outputs = {
                name: before.get(name) if _is_placeholder(value) else value
                for name, value in outputs.items()
            }
            inputs = _drifted(cloud.type, decode(request.inputs), outputs, self.settings)
        else:
            inputs = {k: v for k, v in state.inputs.items() if not _is_placeholder(v)}
            inputs = _with_secrets(cloud.type, inputs)
        return provider_pb2.ReadResponse(
            id=state.id,
            properties=_encoded(cloud.type, _with_secrets(cloud.type, outputs)),
            inputs=encode(inputs),
        )

    @_with_resource_type
    def Update(self, request: Any, kind: ResourceType, cloud: Cloud) -> Any:
        olds, news = decode(request.olds), decode(request.news)
        _ignore_changes(request.ignoreChanges, news, decode(request.old_inputs))
        if request.preview:
            changes = diff.changes(cloud.type, news, olds, self.settings, kind.changed)
            tops = {change.top for change in changes} - {*plan.LABEL_OUTPUTS}
            later = {top: UNKNOWN for top in tops if not cloud.type.properties[top].input}
            outputs = plan.updated(cloud.type, news, olds, self.settings, later, planning=True)
        else:
            outputs = kind.update(cloud.in_project_of(request.id, olds), request.id, news, olds)
        outputs["id"] = request.id
        return provider_pb2.UpdateResponse(properties=_encoded(cloud.type, outputs))

    @_with_resource_type
    def Delete(self, request: Any, kind: ResourceType, cloud: Cloud) -> Any:
        olds = decode(request.properties)
        kind.delete(cloud.in_project_of(request.id, olds), request.id, olds)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        context.abort(
            grpc.StatusCode.UNIMPLEMENTED,
            f"{request.tok}: the local gcp plugin does not support data sources. Hint: preview a "
            "program with data sources with Google Cloud credentials",
        )


def serve(environment: Mapping[str, str]) -> tuple[gate.GatedServer, int]:
    """Start the plugin on a free port for processes of this user. Return the server and port."""
    options = [
        ("grpc.max_receive_message_length", _MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MESSAGE_BYTES),
    ]
    server = grpc.server(
        ThreadPoolExecutor(max_workers=16),
        interceptors=[gate.PageInterceptor()],
        options=options,
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(environment), server)
    home = environment.get(HOME_VARIABLE)
    started = gate.GatedServer(server, 0, "gcp", Path(home) / "sockets" if home else None)
    return started, started.port


def _refuse(kind: ResourceType, inputs: dict[str, Any], doing: str) -> None:
    if reason := kind.refuse(inputs):
        raise RefusedError(f"{doing}: {reason}")


def _ignore_changes(paths: Iterable[str], news: dict[str, Any], olds: dict[str, Any]) -> None:
    for path in paths:
        top = path.replace("[", ".").partition(".")[0]
        if top in olds:
            news[top] = olds[top]
        else:
            news.pop(top, None)


def _encoded(type_: TypeSchema, outputs: dict[str, Any]) -> Any:
    # The official plugin adds Terraform's metadata to each state.
    return encode({**outputs, "__meta": type_.meta} if type_.meta else outputs)


def _with_secrets(type_: TypeSchema, values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: Secret(plain(value))
        if name in type_.properties and type_.properties[name].sensitive
        else value
        for name, value in values.items()
    }


def _is_placeholder(value: Any) -> bool:
    # The database has only the hash of an asset.
    return isinstance(value, dict) and "asset" in value


def _drifted(
    type_: TypeSchema,
    inputs: dict[str, Any],
    outputs: dict[str, Any],
    settings: Settings,
) -> dict[str, Any]:
    result = dict(inputs)
    for change in diff.changes(type_, inputs, outputs, settings, lambda _news, _olds: []):
        prop = type_.properties.get(change.top)
        if prop and prop.input and change.top in inputs and change.top != "source":
            result[change.top] = outputs.get(change.top)
    return result
