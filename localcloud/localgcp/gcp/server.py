"""Pulumi's ResourceProvider protocol for the stand-in: one method per RPC."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc

from localgcp.access import gate
from localgcp.errors import PluginError, RefusedError
from localgcp.gcp import check, diff, plan, wire
from localgcp.gcp.cloud import HOME_VARIABLE, Cloud
from localgcp.gcp.codec import UNKNOWN, decode, encode, plain
from localgcp.gcp.package_schema import package_schema, version
from localgcp.gcp.plan import Settings
from localgcp.gcp.schema import TypeSchema
from localgcp.gcp.services import find
from localgcp.gcp.services.base import ResourceType

#: End of the error text for an unsupported type, in one line: the engine prints it unchanged.
_UNSERVED: Final = (
    ": it can be neither rehearsed nor previewed offline. Hint: declare the resource only outside "
    "of local projects, and preview with Google Cloud credentials; or add the type to "
    "localcloud/localgcp/gcp/services/__init__.py (docs/components.md)"
)
# Values travel inside messages: allow what the engine allows.
_MESSAGE_BYTES: Final = 400 * 1024 * 1024


@dataclass(frozen=True)
class Call:
    """The resource type and local cloud of one RPC."""

    type: TypeSchema
    kind: ResourceType
    cloud: Cloud


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """The plugin. It stores only its configuration; the resources are in the store."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._settings = Settings()

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
        changed = decode(request.olds) != decode(request.news)
        kind = (
            provider_pb2.DiffResponse.DIFF_SOME if changed else provider_pb2.DiffResponse.DIFF_NONE
        )
        return provider_pb2.DiffResponse(changes=kind)

    def Configure(self, request: Any, context: Any) -> Any:
        arguments = plain(decode(request.args))
        for key, value in request.variables.items():
            arguments.setdefault(key.rpartition(":")[2], value)
        self._settings = wire.settings(arguments, self._environment)
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True,
            supportsPreview=True,
            acceptResources=False,
            acceptOutputs=False,
        )

    def Check(self, request: Any, context: Any) -> Any:
        def run(call: Call) -> Any:
            olds, news = decode(request.olds), decode(request.news)
            name, seed = wire.resource_name(request), request.randomSeed
            checked = check.check(call.type, name, plain(olds), news, seed)
            failures = [provider_pb2.CheckFailure(reason=text) for text in checked.failures]
            return provider_pb2.CheckResponse(inputs=encode(checked.inputs), failures=failures)

        return self._guarded(request, context, run)

    def Diff(self, request: Any, context: Any) -> Any:
        def run(call: Call) -> Any:
            olds, news = decode(request.olds), decode(request.news)
            wire.ignore_changes(request.ignoreChanges, news, decode(request.old_inputs))
            _refuse(call.kind, news, f"diffing {request.urn}")
            changes = diff.changes(call.type, news, olds, self._settings, call.kind.changed)
            return wire.diff_response(call.type, news, changes)

        return self._guarded(request, context, run)

    def Create(self, request: Any, context: Any) -> Any:
        def run(call: Call) -> Any:
            inputs = decode(request.properties)
            _refuse(call.kind, inputs, f"diffing {request.urn}")
            if request.preview:
                known = call.kind.known(call.cloud, inputs)
                outputs = plan.preview(call.type, inputs, self._settings, known)
                return provider_pb2.CreateResponse(
                    properties=encode(wire.with_meta(call.type, outputs))
                )
            created = call.kind.create(call.cloud, inputs)
            outputs = {**created.outputs, "id": created.id}
            return provider_pb2.CreateResponse(
                id=created.id, properties=encode(wire.with_meta(call.type, outputs))
            )

        return self._guarded(request, context, run)

    def Read(self, request: Any, context: Any) -> Any:
        def run(call: Call) -> Any:
            before = decode(request.properties)
            state = call.kind.read(call.cloud.in_project_of(request.id, before), request.id)
            if state is None:
                return provider_pb2.ReadResponse()
            outputs = {**state.outputs, "id": state.id}
            if before:  # a refresh; otherwise an import
                outputs = {k: wire.known_asset(v, before.get(k)) for k, v in outputs.items()}
                inputs = decode(request.inputs)
                inputs = wire.drifted(call.type, inputs, outputs, self._settings)
            else:
                inputs = {k: v for k, v in state.inputs.items() if not wire.is_placeholder(v)}
                inputs = wire.mark_secrets(call.type, inputs)
            outputs = wire.mark_secrets(call.type, outputs)
            return provider_pb2.ReadResponse(
                id=state.id,
                properties=encode(wire.with_meta(call.type, outputs)),
                inputs=encode(inputs),
            )

        return self._guarded(request, context, run)

    def Update(self, request: Any, context: Any) -> Any:
        def run(call: Call) -> Any:
            olds, news = decode(request.olds), decode(request.news)
            wire.ignore_changes(request.ignoreChanges, news, decode(request.old_inputs))
            if request.preview:
                changes = diff.changes(call.type, news, olds, self._settings, call.kind.changed)
                later = {c.top: UNKNOWN for c in changes if not call.type.properties[c.top].input}
                later = {k: v for k, v in later.items() if k not in plan.LABEL_OUTPUTS}
                outputs = plan.updated(call.type, news, olds, self._settings, later, planning=True)
            else:
                cloud = call.cloud.in_project_of(request.id, olds)
                outputs = call.kind.update(cloud, request.id, news, olds)
            outputs["id"] = request.id
            return provider_pb2.UpdateResponse(
                properties=encode(wire.with_meta(call.type, outputs))
            )

        return self._guarded(request, context, run)

    def Delete(self, request: Any, context: Any) -> Any:
        def run(call: Call) -> Any:
            olds = decode(request.properties)
            call.kind.delete(call.cloud.in_project_of(request.id, olds), request.id, olds)
            return empty_pb2.Empty()

        return self._guarded(request, context, run)

    def Invoke(self, request: Any, context: Any) -> Any:
        context.abort(
            grpc.StatusCode.UNIMPLEMENTED,
            f"{request.tok}: the stand-in for the gcp plugin has no data sources; "
            "a program that uses one cannot be previewed without Google Cloud",
        )

    def _guarded(self, request: Any, context: Any, run: Callable[[Call], Any]) -> Any:
        """Run one RPC; each error becomes one line for the user."""
        token = request.type or request.urn.split("::")[2].rpartition("$")[2]
        registration = find(token)
        if registration is None:
            context.abort(
                grpc.StatusCode.UNIMPLEMENTED,
                "the stand-in for the gcp plugin does not support the resource type "
                f"{token}{_UNSERVED}",
            )
            raise AssertionError("abort returned")
        type_, kind = registration
        cloud = Cloud(type_, self._settings, self._environment)
        try:
            return run(Call(type_, kind, cloud))
        except PluginError as error:
            text = str(error)
        except Exception as error:
            text = f"unexpected {type(error).__name__}: {error}{self._log()}"
        context.abort(grpc.StatusCode.UNKNOWN, text)

    def _log(self) -> str:
        """Write the current exception to a log file; return the file's path for the
        message, or "".
        """
        home = self._environment.get(HOME_VARIABLE)
        if not home or not Path(home).is_dir():
            print(traceback.format_exc(), file=sys.stderr)
            return ""
        path = Path(home) / "gcp-plugin.log"
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC).isoformat()}\n{traceback.format_exc()}\n")
        return f" (details in {path})"


def serve(environment: Mapping[str, str]) -> tuple[gate.GatedServer, int]:
    """Start the plugin on a free port, for processes of this user; return server and port."""
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
    reason = kind.refuse(inputs)
    if reason:
        raise RefusedError(f"{doing}: {reason}")
