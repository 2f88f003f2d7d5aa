"""What the stand-in creates looks as the official plugin 9.35.0 returned it, for every type."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from localgcp.gcp import schema
from localgcp.gcp.codec import decode, encode, plain
from localgcp.gcp.services import RESOURCE_TYPES
from localgcp.inventory.store import Store, project_number
from tests.unit.localcloud.gcp.harness import Plugin, observed

# Objects need the storage emulator: test_storage.py has them.
ROWS = [row for row in observed() if "gcp:storage/" not in row["type"]]
# What differs from cloud to cloud, and what a field of its own form stands for.
NEW = {
    "address", "blobStoragePathPrefix", "createTime", "creationTime", "creationTimestamp", "etag",
    "fingerprint", "labelFingerprint", "networkId", "numericId", "subnetworkId",
    "uniqueId", "updateTime", "creationRecords",
}  # fmt: skip
# Named by the service; here the name of the row is enough.
NUMBERED = {"tb", "mail", "gpu-idle", "cap"}
PERMANENT = {
    "gcp:kms/keyRing:KeyRing", "gcp:kms/cryptoKey:CryptoKey",
    "gcp:projects/service:Service", "gcp:projects/serviceIdentity:ServiceIdentity",
}  # fmt: skip
# The mock behind the observation answered with addresses Google would not give.
MOCKED = {("psc-i", "network"), ("psc-i", "selfLink"), ("ring", "location")}

# Sets have an order of their own, and conditions are deeper than schema.json.
BY_LENGTH = {"allows", "conditions"}


def test_every_type_of_the_schema_has_a_service() -> None:
    assert set(RESOURCE_TYPES) == set(schema.tokens())


def test_each_type_is_created_as_observed_refreshed_unchanged_and_deleted(
    plugin_for: Any, tmp_path: Path
) -> None:
    plugin = plugin_for("local-p1", VT_LOCAL_HOME=str(tmp_path))
    _enable(plugin)
    made: list[tuple[Any, str, dict[str, Any]]] = []
    for row in ordered_rows():
        inputs = moved(row["inputs"], made)
        id_, outputs = plugin.create(row["type"], inputs, row["name"])
        made.append((row, id_, outputs))
        _compare(row, id_, plain(outputs), made)
        unchanged = plugin.diff(row["type"], id_, inputs, outputs)
        assert dict(unchanged.detailedDiff) == {}, row["name"]
        read = plugin.read(row["type"], id_, properties=outputs, inputs=inputs)
        assert read.id == id_
        assert plain(decode(read.inputs)) == plain(decode(encode(inputs))), row["name"]

    for row, id_, outputs in reversed(made):
        plugin.delete(row["type"], id_, outputs)

    left = {each.type for each in Store(tmp_path / "cloud.sqlite").list()}
    assert left == PERMANENT


def _enable(plugin: Plugin) -> None:
    names = ("billingbudgets", "cloudresourcemanager", "iam", "monitoring", "logging")
    plugin.enable(*names)
    token = "gcp:projects/service:Service"
    plugin.create(token, {"service": "compute.googleapis.com", "project": "local-host1"}, "host")


def ordered_rows() -> list[dict[str, Any]]:
    """APIs, then the rest as the probe made them, but what refers to others at the end."""
    late = ("IAMMember", "IamMember", "AlertPolicy")
    return sorted(ROWS, key=lambda r: (not r["name"].startswith("api-"), r["type"].endswith(late)))


def _compare(row: Any, id_: str, outputs: dict[str, Any], made: list[Any]) -> None:
    expected = plain(moved(row["outputs"], made))
    if row["name"] not in NUMBERED:
        assert id_ == moved(row["id"], made)
    outputs = {**outputs, "id": id_}
    assert set(outputs) - {"__meta"} == set(expected) - {"__meta"}, row["name"]
    for name in set(expected) - NEW - {"id", "__meta"}:
        if (row["name"], name) in MOCKED or (row["name"] in NUMBERED and name == "name"):
            continue
        if name in BY_LENGTH:
            assert len(outputs[name]) == len(expected[name])
            continue
        assert outputs[name] == expected[name], (row["name"], name)


def moved(value: Any, made: list[Any]) -> Any:
    """A value observed in p1, host1 and svc1, as it is in local projects."""
    text = _local(json.dumps(plain(value)))
    for row, real, _ in made:
        if row["name"] in NUMBERED:
            text = text.replace(_local(row["id"]), real)
    return json.loads(text)


def _local(text: str) -> str:
    moved = re.sub(
        r'(?:(?<=[/"])|(?<=2F))(p1|host1|svc1)(?=[/"%])|(?<=@)p1(?=\.)', r"local-\g<0>", text
    )
    return moved.replace("18022562", project_number("local-p1"))
