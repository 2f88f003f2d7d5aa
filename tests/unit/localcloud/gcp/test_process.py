"""The plugin as the engine starts and ends it."""

from __future__ import annotations

import importlib.metadata
import inspect
import shlex
import signal
import subprocess
import sys

import grpc
import pulumi_gcp as gcp
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import provider_pb2_grpc

from localgcp.gcp.schema import package_schema
from localgcp.gcp.server import Provider


@pytest.mark.parametrize(
    ("installed", "answered"),
    [("9.37.1", "9.37.1"), ("10.2.0", "10.2.0"), ("11.0.0", "9.35.0"), (None, "9.35.0")],
)
def test_it_has_the_version_of_the_sdk_that_it_serves(
    installed: str | None, answered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(_name: str) -> str:
        if installed is None:
            raise importlib.metadata.PackageNotFoundError
        return installed

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert Provider({}).GetPluginInfo(None, None).version == answered


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_process_prints_its_port_serves_and_leaves_quietly(ending: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "localgcp.gcp", "127.0.0.1:1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    port = int(process.stdout.readline())
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = provider_pb2_grpc.ResourceProviderStub(channel)
        assert stub.GetPluginInfo(empty_pb2.Empty()).version == "9.35.0"

    process.send_signal(ending)
    output, errors = process.communicate(timeout=60)

    assert (process.returncode, output, errors) == (0, "", "")


def test_the_process_ends_when_its_engine_was_killed() -> None:
    # The shell stands for the engine: it starts the plugin, passes its port on, and is killed.
    shell = f"{shlex.quote(sys.executable)} -m localgcp.gcp 127.0.0.1:1 & wait"
    engine = subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE, text=True)
    assert engine.stdout is not None
    assert int(engine.stdout.readline())

    engine.kill()

    # End of file: the plugin, the last one to hold the pipe, is gone.
    assert engine.communicate(timeout=60) == ("", None)


def test_the_plugin_starts_without_the_provider_package_and_the_storage_client() -> None:
    """The engine waits for it at every start."""
    code = (
        "import sys; import localgcp.gcp.server;"
        "heavy = {'pulumi_gcp', 'google.cloud.storage'} & set(sys.modules);"
        "sys.exit(f'imported: {sorted(heavy)}' if heavy else 0)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


SCHEMA = package_schema("9.35.0")
BUCKET = SCHEMA["resources"]["gcp:storage/bucket:Bucket"]


def test_an_explicit_provider_takes_what_the_sdk_lets_it_take():
    of_sdk = {*inspect.signature(gcp.Provider._internal_init).parameters} - {
        "__self__",
        "__props__",
    }
    found = SCHEMA["provider"]["inputProperties"]
    spelled = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): name for name in found}
    others = {name for name in of_sdk - set(spelled) if not name.endswith("_custom_endpoint")}
    assert others == {"resource_name", "opts", "batching", "external_credentials"}
    assert set(spelled) <= of_sdk
    assert found["impersonateServiceAccountDelegates"]["items"] == {"type": "string"}


def test_schema_has_inputs_and_types_of_the_wire():
    assert BUCKET["requiredInputs"] == ["location"]
    assert "url" in BUCKET["properties"]
    properties = BUCKET["inputProperties"]
    assert ("name" in properties, "url" in properties) == (True, False)
    assert properties["forceDestroy"] == {"type": "boolean"}
    assert properties["labels"]["additionalProperties"] == {"type": "string"}
    assert properties["cors"]["items"] == {"$ref": "#/types/gcp:storage/BucketCors:BucketCors"}
    cors = SCHEMA["types"]["gcp:storage/BucketCors:BucketCors"]["properties"]
    assert cors["maxAgeSeconds"] == {"type": "integer"}
    assert cors["methods"] == {"type": "array", "items": {"type": "string"}}
