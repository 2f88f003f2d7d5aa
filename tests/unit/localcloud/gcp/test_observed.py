"""The stand-in previews every type as the official plugin 9.35.0 was observed to."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp.codec import has_unknown, plain
from tests.unit.localcloud.gcp.harness import Plugin, observed

ROWS = observed()
IDS = [f"{row['type'].rpartition(':')[2]}-{row['name']}" for row in ROWS]
# The probe's inputs that were unknown in its first preview, because they refer to a resource that
# did not exist yet; here they are given, so the preview knows them.
REFERENCES = {
    "bucket", "cryptoKeyId", "keyRing", "network", "notificationChannels", "peering",
    "secretId", "serviceAccountId", "subnetworks",
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_preview_knows_what_the_official_plugin_knows(abroad: Plugin, row: Any) -> None:
    outputs = abroad.preview(row["type"], row["name"], _given(row))

    known = {k: v for k, v in outputs.items() if not has_unknown(v) and k != "__meta"}
    foretold = {k: plain(v) for k, v in known.items() if k not in row["inputs"]}
    assert foretold == row["previewKnown"]
    unknown = set(row["previewUnknownOrAbsent"])
    assert not (set(known) & unknown) - REFERENCES
    assert outputs.get("__meta") == row["meta"]


def _given(row: dict[str, Any]) -> dict[str, Any]:
    return {k: _without_defaults(v) for k, v in row["inputs"].items()}


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        made = {"__defaults", *value.get("__defaults", ())}
        return {k: _without_defaults(v) for k, v in value.items() if k not in made}
    return [_without_defaults(v) for v in value] if isinstance(value, list) else value
