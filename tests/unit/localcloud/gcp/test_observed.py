"""The stand-in previews every type as the official plugin 9.35.0 was observed to."""

from __future__ import annotations

from typing import Any

import pytest

from localgcp.gcp import schema
from localgcp.gcp.codec import Secret, has_unknown, plain
from tests.unit.localcloud.gcp.harness import Plugin, observed

ROWS = observed()
IDS = [f"{row['type'].rpartition(':')[2]}-{row['name']}" for row in ROWS]
# The probe's inputs that were unknown in its first preview, because they refer to a resource that
# did not exist yet; here they are given, so the preview knows them.
REFERENCES = {
    "bucket", "cryptoKeyId", "keyRing", "network", "notificationChannels", "peering",
    "secretId", "serviceAccountId", "subnetworks",
}  # fmt: skip


def test_all_types_are_observed_but_for_those_that_say_they_are_not() -> None:
    observed_types = {row["type"] for row in ROWS}
    assert len(observed_types) == 34
    assert observed_types == set(schema.tokens()) - set(schema.documented())


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_a_preview_knows_what_the_official_plugin_knows(abroad: Plugin, row: Any) -> None:
    outputs = abroad.preview(row["type"], row["name"], _given(row))

    known = {k: v for k, v in outputs.items() if not has_unknown(v) and k != "__meta"}
    foretold = {k: plain(v) for k, v in known.items() if k not in row["inputs"]}
    assert foretold == row["previewKnown"]
    unknown = set(row["previewUnknownOrAbsent"])
    assert not (set(known) & unknown) - REFERENCES
    assert outputs.get("__meta") == row["meta"]


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_check_fills_in_the_same_defaults(abroad: Plugin, row: Any) -> None:
    made = set(row["inputDefaults"])
    given = {k: v for k, v in _given(row).items() if k not in made}

    inputs = abroad.checked(row["type"], row["name"], given)

    # ``detectMd5hash`` is a default until the first refresh writes the real hash over it.
    assert set(inputs["__defaults"]) - {"detectMd5hash"} == made
    nested = {k: v for k, v in inputs.items() if isinstance(v, dict | list) and k != "__defaults"}
    assert {k: plain(v) for k, v in nested.items() if not isinstance(v, Secret)} == {
        k: v for k, v in row["inputs"].items() if isinstance(v, dict | list)
    }


@pytest.mark.parametrize("row", ROWS, ids=IDS)
def test_what_exists_is_not_changed_by_its_own_inputs(abroad: Plugin, row: Any) -> None:
    answer = abroad.diff(row["type"], row["id"], row["inputs"], row["outputs"])

    assert dict(answer.detailedDiff) == {}
    assert answer.changes == answer.DIFF_NONE


def _given(row: dict[str, Any]) -> dict[str, Any]:
    return {k: _without_defaults(v) for k, v in row["inputs"].items()}


def _without_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        made = {"__defaults", *value.get("__defaults", ())}
        return {k: _without_defaults(v) for k, v in value.items() if k not in made}
    return [_without_defaults(v) for v in value] if isinstance(value, list) else value
