"""Buckets and objects of a local project are real: they stand in the object storage emulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from localgcp.gcp.codec import Asset, plain
from localgcp.storage import StorageEmulator
from tests.unit.localcloud.conftest import free_port
from tests.unit.localcloud.gcp.harness import Plugin

BUCKET = "gcp:storage/bucket:Bucket"
OBJECT = "gcp:storage/bucketObject:BucketObject"
GRANT = "gcp:storage/bucketIAMMember:BucketIAMMember"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageEmulator]:
    home = tmp_path_factory.mktemp("home")
    running = StorageEmulator(home / "storage", home / "storage.log", home / "notes")
    running.start(free_port())
    yield running
    running.stop()


@pytest.fixture
def home(emulator: StorageEmulator) -> Iterator[Path]:
    home = emulator.root.parent
    yield home
    for file in home.glob("cloud.sqlite*"):
        file.unlink()


@pytest.fixture
def cloud(plugin_for: Any, emulator: StorageEmulator, home: Path) -> Plugin:
    plugin = plugin_for("local-p1", VT_LOCAL_HOME=str(home), STORAGE_EMULATOR_HOST=emulator.url)
    plugin.enable("storage")
    return plugin


@pytest.fixture
def client(emulator: StorageEmulator) -> storage.Client:
    options = {"api_endpoint": emulator.url}
    return storage.Client("local-p1", AnonymousCredentials(), client_options=options)


@pytest.fixture
def bucket(cloud: Plugin) -> Iterator[dict[str, Any]]:
    """A bucket that is deleted with everything in it."""
    inputs = {"location": "us-central1", "name": "data-p1", "forceDestroy": True}
    id_, outputs = cloud.create(BUCKET, inputs)
    yield plain(outputs)
    cloud.delete(BUCKET, id_, plain(outputs))


def test_an_object_made_of_a_file_changes_with_the_file(
    cloud: Plugin, bucket: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("x")
    source = Asset("old-hash", (("path", str(tmp_path / "x")),))
    inputs = cloud.checked(OBJECT, "x", {"bucket": bucket["name"], "name": "x", "source": source})
    id_, outputs = cloud.create(OBJECT, inputs)

    assert not cloud.diff(OBJECT, id_, inputs, outputs).detailedDiff
    news = {**inputs, "source": Asset("new-hash", source.fields)}
    changed = cloud.diff(OBJECT, id_, news, outputs).detailedDiff
    assert {"crc32c", "detectMd5hash", "generation", "md5hash"} <= set(changed)


@pytest.mark.parametrize(
    ("name", "given", "type_"),
    [
        ("a.json", {}, "application/json"),
        ("a.unknown", {}, "text/plain; charset=utf-8"),
        ("a.json", {"contentType": "application/x-ndjson"}, "application/x-ndjson"),
        ("a.unknown", {"contentType": "application/x-ndjson"}, "application/x-ndjson"),
    ],
)
def test_an_object_has_the_type_it_is_given_else_that_of_its_name_else_plain_text(
    cloud: Plugin,
    client: storage.Client,
    bucket: dict[str, Any],
    name: str,
    given: dict[str, str],
    type_: str,
) -> None:
    _, outputs = cloud.create(
        OBJECT, {"bucket": bucket["name"], "name": name, "content": "{}", **given}
    )

    assert outputs["contentType"] == type_
    blob = client.bucket("data-p1").get_blob(name)
    assert blob is not None
    assert blob.content_type == type_


def test_a_file_that_is_gone_is_one_plain_line(cloud: Plugin, bucket: dict[str, Any]) -> None:
    source = Asset("h", (("path", "/nowhere/x.npz"),))
    text = _refused(
        lambda: cloud.create(OBJECT, {"bucket": bucket["name"], "name": "x", "source": source})
    )

    assert text.startswith("cannot read the source of an object:")
    assert "/nowhere/x.npz" in text


def test_an_object_that_was_removed_is_gone_and_can_be_made_again(
    cloud: Plugin, client: storage.Client, bucket: dict[str, Any]
) -> None:
    inputs = {"bucket": bucket["name"], "name": "x", "content": "mine"}
    id_, outputs = cloud.create(OBJECT, inputs)
    client.bucket("data-p1").blob("x").delete()

    assert cloud.read(OBJECT, id_, properties=outputs).id == ""
    cloud.create(OBJECT, inputs)
    cloud.delete(OBJECT, id_, outputs)
    cloud.delete(OBJECT, id_, outputs)


def test_bucket_names_are_unique_over_all_projects(
    plugin_for: Any, emulator: StorageEmulator, home: Path, cloud: Plugin, bucket: dict[str, Any]
) -> None:
    other = plugin_for("local-p2", VT_LOCAL_HOME=str(home), STORAGE_EMULATOR_HOST=emulator.url)
    other.enable("storage")
    inputs = {"location": "US", "name": bucket["name"]}

    assert "Error 409: The requested bucket name is not available." in _refused(
        lambda: other.create(BUCKET, inputs)
    )
    assert "and you already own it., conflict" in _refused(lambda: cloud.create(BUCKET, inputs))


@pytest.mark.parametrize("name", ["ab", "Bad_UPPER", "-dash", "192.168.1.1", "goog-x", "a" * 64])
def test_a_bucket_name_the_cloud_refuses_is_refused(cloud: Plugin, name: str) -> None:
    text = _refused(lambda: cloud.create(BUCKET, {"location": "US", "name": name}))

    assert text == (
        f"Error creating Bucket: googleapi: Error 400: Invalid bucket name: '{name}', invalid"
    )


def test_objects_and_grants_need_their_bucket(cloud: Plugin) -> None:
    missing = "Error 404: The specified bucket does not exist., notFound"
    grant = {"bucket": "none-p1", "role": "roles/storage.objectViewer", "member": "allUsers"}

    assert missing in _refused(lambda: cloud.create(GRANT, grant))
    assert missing in _refused(
        lambda: cloud.create(OBJECT, {"bucket": "none-p1", "name": "x", "content": "y"})
    )


def test_without_object_storage_one_line_says_what_to_do(plugin_for: Any, tmp_path: Path) -> None:
    environment = {"VT_LOCAL_HOME": str(tmp_path), "STORAGE_EMULATOR_HOST": "127.0.0.1:1"}
    plugin = plugin_for("local-p1", **environment)
    plugin.enable("storage")

    text = _refused(lambda: plugin.create(BUCKET, {"location": "US", "name": "some-p1"}))

    assert text.startswith("the local object storage at http://127.0.0.1:1 does not answer")
    assert text.endswith("Hint: `vt local up` starts it")


def _refused(call: Any) -> str:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.details()  # type: ignore[attr-defined]
