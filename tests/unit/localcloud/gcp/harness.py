"""The stand-in behind its real gRPC surface, and the measured behaviour of the official plugin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pulumi.runtime.proto import provider_pb2

from localgcp.gcp.codec import Secret, decode, encode

FIXTURES = Path(__file__).parents[3] / "fixtures"
# What the state file keeps of a secret is a ciphertext; these are the values behind it.
CONTENT = "print('hi')\n"


class Plugin:
    """A running plugin, spoken to as the engine does."""

    def __init__(self, stub: Any, project: str, region: str = "us-central1") -> None:
        self.stub = stub
        self.project = project
        args = {"project": project, "region": region}
        stub.Configure(provider_pb2.ConfigureRequest(args=encode(args), acceptSecrets=True))

    def urn(self, token: str, name: str) -> str:
        return f"urn:pulumi:bad::probes::{token}::{name}"

    def check(
        self,
        token: str,
        name: str,
        news: dict[str, Any],
        olds: dict[str, Any] | None = None,
        **more: Any,
    ) -> Any:
        return self.stub.Check(
            provider_pb2.CheckRequest(
                urn=self.urn(token, name),
                news=encode(news),
                olds=encode(olds or {}),
                randomSeed=b"seed",
                **more,
            )
        )

    def checked(self, token: str, name: str, news: dict[str, Any]) -> dict[str, Any]:
        answer = self.check(token, name, news)
        assert not answer.failures, answer.failures
        return decode(answer.inputs)

    def preview(self, token: str, name: str, news: dict[str, Any]) -> dict[str, Any]:
        return self.create_unchecked(token, self.checked(token, name, news), name, preview=True)[1]

    def create(self, token: str, news: dict[str, Any], name: str = "x") -> tuple[str, dict]:
        return self.create_unchecked(token, self.checked(token, name, news), name)

    def create_unchecked(
        self, token: str, inputs: dict[str, Any], name: str = "x", *, preview: bool = False
    ) -> tuple[str, dict]:
        """Create or preview a resource with inputs that Check has completed."""
        request = provider_pb2.CreateRequest(
            urn=self.urn(token, name), properties=encode(inputs), preview=preview
        )
        answer = self.stub.Create(request)
        return answer.id, decode(answer.properties)

    def diff(self, token: str, id_: str, news: dict[str, Any], olds: dict[str, Any]) -> Any:
        request = provider_pb2.DiffRequest(
            id=id_, urn=self.urn(token, "x"), news=encode(news), olds=encode(olds)
        )
        return self.stub.Diff(request)

    def update(
        self, token: str, id_: str, news: dict[str, Any], olds: dict[str, Any]
    ) -> dict[str, Any]:
        request = provider_pb2.UpdateRequest(
            id=id_, urn=self.urn(token, "x"), news=encode(news), olds=encode(olds)
        )
        return decode(self.stub.Update(request).properties)

    def read(self, token: str, id_: str, **state: Any) -> Any:
        request = provider_pb2.ReadRequest(
            id=id_,
            urn=self.urn(token, "x"),
            properties=encode(state.get("properties", {})),
            inputs=encode(state.get("inputs", {})),
        )
        return self.stub.Read(request)

    def delete(self, token: str, id_: str, properties: dict[str, Any]) -> None:
        self.stub.Delete(
            provider_pb2.DeleteRequest(
                id=id_, urn=self.urn(token, "x"), properties=encode(properties)
            )
        )

    def enable(self, *services: str) -> None:
        """Turn APIs on; names without ``.googleapis.com``."""
        for service in services:
            token = "gcp:projects/service:Service"
            self.create(token, {"service": f"{service}.googleapis.com"})


def observed() -> list[dict[str, Any]]:
    """What the official plugin returned, one row a resource, with secrets in the clear."""
    rows = json.loads((FIXTURES / "gcp-observed.json").read_text(encoding="utf-8"))
    return [_clear(row) for row in rows]


def _clear(row: dict[str, Any]) -> dict[str, Any]:
    labels = {"goog-pulumi-provisioned": "true", **(row["inputs"].get("labels") or {})}
    secrets = {
        "effectiveLabels": labels,
        "pulumiLabels": labels,
        "content": CONTENT,
        "customerEncryption": None,
    }

    def clear(values: dict[str, Any]) -> dict[str, Any]:
        marked = {k for k, v in values.items() if isinstance(v, dict) and "ciphertext" in v}
        return {k: Secret(secrets[k]) if k in marked else v for k, v in values.items()}

    return {**row, "inputs": clear(row["inputs"]), "outputs": clear(row["outputs"])}


def row_named(name: str) -> dict[str, Any]:
    """The observed row of the resource called ``name``."""
    return next(row for row in observed() if row["name"] == name)
