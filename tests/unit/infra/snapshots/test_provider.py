"""The provider of snapshots: what a preview says, what changes, and what the state keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Process, request
from vertex_training.customjob.refusal_lookup import COMPARES
from vertex_training.errors import NotSubmittedError, OperatorError
from vertex_training.snapshots import provider
from vertex_training.snapshots.provider import SnapshotProvider

REQUEST = request()
CONTENT = {
    "sql": REQUEST.sql, "parameters": dict(REQUEST.parameters), "asOf": None,
    "location": "us-central1", "format": "parquet",
}  # fmt: skip
INPUTS: dict[str, Any] = {
    "snapshot": {
        "project": "local-training", "stack": "local", "name": "clicks", "run": 1.0,
        "bucket": "data",
    },
    "requestId": REQUEST.request_id,
    "request": json.dumps(CONTENT),
    "options": {"controlBucket": "control", "maxBytesBilled": "1000000000"},
    "__provider": "pickled",
}  # fmt: skip
KEPT = {key: value for key, value in INPUTS.items() if key != "__provider"}


@pytest.fixture(autouse=True)
def cloud(monkeypatch: pytest.MonkeyPatch) -> Cloud:
    found = Cloud()
    for name in (provider.REVIEWS, "VT_LOCAL_HOME", "PULUMI_BACKEND_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(provider, "connect", lambda _: Process(found, REQUEST).ports)
    monkeypatch.setattr(provider, "is_engine_alive", lambda: True)
    return found


def checked(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[Any, list[str], list[str]]:
    """Inputs that a check returns, what it says, and why it fails."""
    said: list[str] = []
    monkeypatch.setattr(provider, "print_line", said.append)
    found = SnapshotProvider().check({}, {**INPUTS, **changes})
    assert all(each.property == "" for each in found.failures)
    return found.inputs, said, [each.reason for each in found.failures]


SAID = (
    "the query would read 1,000,000,000 bytes ($0.01 on demand; limit 1,000,000,000 bytes, $0.01); "
    "from acme.web.clicks; columns that look like personal data: email"
)
RESOLVED = {
    "processed": 10**9, "capacity": False, "sources": ["acme.web.clicks"], "personal": ["email"]
}  # fmt: skip


def test_preview_reports_the_bytes_of_the_query(
    monkeypatch: pytest.MonkeyPatch, cloud: Cloud
) -> None:
    cloud.processed = 10**9
    assert checked(monkeypatch) == (INPUTS, [f"snapshot clicks {SAID}"], [])
    monkeypatch.setenv(provider.REVIEWS, "1")
    assert checked(monkeypatch) == ({**INPUTS, "resolved": RESOLVED}, [], [])
    monkeypatch.setenv(COMPARES, "true")
    assert checked(monkeypatch) == (INPUTS, [], [])


def test_unanswered_estimate_is_reported_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    token = "ghp_" + "a1B2" * 9

    def silent(_: Any) -> Any:
        raise OperatorError(f"no answer: {token}")

    monkeypatch.setattr(provider, "connect", silent)
    [said] = checked(monkeypatch)[1]
    assert said.startswith("snapshot clicks not checked: no answer: ")
    assert token not in said

    def refused(*_: Any) -> Any:
        raise NotSubmittedError(f"no: {token}")

    monkeypatch.setattr(provider.estimate, "look", refused)
    monkeypatch.setattr(provider, "connect", lambda _: None)
    inputs, said, [failure] = checked(monkeypatch)
    assert (inputs, said) == (INPUTS, [])
    assert failure.startswith("no: ")
    assert token not in failure


def test_an_identity_of_another_request_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, said, failures = checked(monkeypatch, requestId="0" * 20)
    assert (inputs["requestId"], said) == ("0" * 20, [])
    assert failures == ["requestId of the snapshot is not the digest of its request"]


def test_a_snapshot_that_is_made_is_recorded_with_its_manifest(
    monkeypatch: pytest.MonkeyPatch, cloud: Cloud
) -> None:
    made_in: list[Any] = []
    take = provider.take_snapshot

    def taken(wanted: Any, ports: Any, timing: Any, environment: Any) -> Any:
        made_in.append((wanted, timing, environment.engine_is_alive()))
        return take(wanted, ports, timing, Process(cloud, REQUEST).environment)

    monkeypatch.setattr(provider, "take_snapshot", taken)
    made = SnapshotProvider().create(INPUTS)
    assert made_in == [(REQUEST, SnapshotProvider.timing, True)]
    assert made.id == REQUEST.uri
    assert made.outs is not None
    manifest = made.outs["manifest"]
    assert manifest.rpartition("#")[0] == f"{REQUEST.uri}/manifest.json"
    assert manifest.rpartition("#")[2].isdecimal()
    assert made.outs == {**KEPT, "manifest": manifest, "state": "READY"}
    state = {**made.outs, "__provider": "pickled"}
    read = SnapshotProvider().read("id", state)
    assert (read.id, read.outs) == ("id", made.outs)
    updated = SnapshotProvider().update("id", {**state, "state": "CHANGED"}, INPUTS)
    assert updated.outs == {**made.outs, "state": "CHANGED"}
    SnapshotProvider().delete("id", state)
    assert cloud.objects
    cloud.objects.clear()
    gone = SnapshotProvider().read("id", state).outs
    assert gone == {**made.outs, "state": "CHANGED"}
    cloud.records.clear()
    assert SnapshotProvider().read("id", state).outs == {**made.outs, "state": "UNRECORDED"}
