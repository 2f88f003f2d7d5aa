"""A resource is found in its own project, whatever project its provider has, or none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from localgcp.gcp.codec import decode, encode, plain
from localgcp.gcp.services import RESOURCE_TYPES
from localgcp.inventory.store import project_number
from tests.unit.localcloud.gcp.harness import Plugin, observed

MORE = yaml.safe_load(Path(__file__).with_name("more_resources.yaml").read_text())


def rows() -> list[dict[str, Any]]:
    """One resource of each type, after those that it needs."""
    more = [{"name": name, "type": token, "inputs": inputs} for name, token, inputs in MORE]
    first = ("Service", "Bucket", "Repository", "Account", "TagKey", "TagValue")
    last = ("IAMMember", "IamMember", "AlertPolicy", "TagBinding")
    of_types: dict[str, dict[str, Any]] = {}
    for row in [*observed(), *more]:
        of_types.setdefault(row["name"], row)
    return sorted(
        of_types.values(), key=lambda r: (not r["type"].endswith(first), r["type"].endswith(last))
    )


# Named by the service; here the name of the row is enough.
NUMBERED = {"tb", "mail", "gpu-idle", "cap"}


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


@pytest.fixture
def made(
    plugin_for: Any, emulator: Any, tmp_path: Path
) -> list[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    """Type, id, inputs and outputs of a resource of each type, in project ``local-p1``."""
    env = {"VT_LOCAL_HOME": str(tmp_path), "STORAGE_EMULATOR_HOST": emulator.url}
    plugin: Plugin = plugin_for("local-p1", **env)
    plugin.enable(
        *("bigquery", "billingbudgets", "cloudresourcemanager", "iam", "monitoring", "logging"),
        "storage",
    )
    api = {"service": "compute.googleapis.com", "project": "local-host1"}
    plugin.create("gcp:projects/service:Service", api, "host")
    found: list[Any] = []
    known: list[Any] = []
    ids: dict[str, str] = {}
    for row in rows():
        inputs = moved(row["inputs"], known)
        inputs = {key: ids.get(str(value), value) for key, value in inputs.items()}
        id_, outputs = plugin.create(row["type"], inputs, row["name"])
        known.append((row, id_, outputs))
        ids[f"@{row['name']}"] = id_
        found.append((row["type"], id_, inputs, outputs))
    return found


@pytest.mark.parametrize("project", ["", "local-other", "acme-ml"])
def test_each_type_is_refreshed_imported_updated_and_deleted_by_any_provider(
    made: list[Any], plugin_for: Any, emulator: Any, tmp_path: Path, project: str
) -> None:
    env = {"VT_LOCAL_HOME": str(tmp_path), "STORAGE_EMULATOR_HOST": emulator.url}
    plugin = plugin_for(project, **env)
    assert {token for token, *_ in made} == set(RESOURCE_TYPES)
    for token, id_, inputs, outputs in made:
        read = plugin.read(token, id_, properties=outputs, inputs=inputs)
        assert read.id == id_, token
        assert plain(decode(read.inputs)) == plain(decode(encode(inputs))), token
        assert plugin.read(token, id_).id == id_, token
        plugin.update(token, id_, inputs, outputs)
    for token, id_, _, outputs in reversed(made):
        plugin.delete(token, id_, outputs)
