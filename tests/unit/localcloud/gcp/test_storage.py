"""Buckets and objects of a local project are real: they stand in the object storage emulator."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from localgcp.gcp.codec import Asset, Secret, plain
from localgcp.inventory.store import Store, project_number
from localgcp.storage import StorageEmulator
from tests.unit.localcloud.conftest import free_port
from tests.unit.localcloud.gcp.harness import CONTENT, Plugin, row_named

BUCKET = "gcp:storage/bucket:Bucket"
OBJECT = "gcp:storage/bucketObject:BucketObject"
GRANT = "gcp:storage/bucketIAMMember:BucketIAMMember"
NUMBER = int(project_number("local-p1"))
TIMES = {"timeCreated", "updated"}


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


@pytest.mark.parametrize("name", ["artifacts", "named"])
def test_a_bucket_looks_as_observed(cloud: Plugin, name: str) -> None:
    row = row_named(name)

    id_, outputs = cloud.create(BUCKET, row["inputs"], name)
    cloud.delete(BUCKET, id_, {**plain(outputs), "forceDestroy": True})

    expected = {k: plain(v) for k, v in row["outputs"].items()} | {
        "project": "local-p1",
        "projectNumber": NUMBER,
    }
    got = {k: v for k, v in plain(outputs).items() if k != "__meta"}
    for values in (got, expected):
        for key in TIMES:
            assert values.pop(key)
        assert values["softDeletePolicy"].pop("effectiveTime")
    assert id_ == row["id"]
    assert got == expected
    assert isinstance(outputs["effectiveLabels"], Secret)


def test_an_object_looks_as_observed_and_holds_its_content(
    cloud: Plugin, client: storage.Client, bucket: dict[str, Any]
) -> None:
    row = row_named("launcher")
    inputs = {**row["inputs"], "bucket": bucket["name"]}

    id_, outputs = cloud.create(OBJECT, inputs)

    expected = {k: plain(v) for k, v in row["outputs"].items()}
    expected = {
        k: v.replace("artifacts-ed592ac", "data-p1") if isinstance(v, str) else v
        for k, v in expected.items()
    }
    got = {k: v for k, v in plain(outputs).items() if k != "__meta"}
    link, _, query = got.pop("mediaLink").partition("?")
    assert (link, query) == (
        expected.pop("mediaLink").partition("?")[0],
        f"generation={got['generation']}&alt=media",
    )
    assert isinstance(got.pop("generation"), type(expected.pop("generation")))
    assert got == expected
    assert id_ == "data-p1-code/launcher.py"
    assert client.bucket("data-p1").blob("code/launcher.py").download_as_text() == CONTENT


def test_a_file_becomes_an_object(
    cloud: Plugin, client: storage.Client, bucket: dict[str, Any], tmp_path: Path
) -> None:
    content = bytes(range(256)) * 4096
    (tmp_path / "train.npz").write_bytes(content)
    source = Asset("some-hash", (("path", str(tmp_path / "train.npz")),))

    _, outputs = cloud.create(OBJECT, {"bucket": "data-p1", "name": "a/t.npz", "source": source})

    md5 = hashlib.md5(content, usedforsecurity=False)
    assert outputs["md5hash"] == base64.b64encode(md5.digest()).decode()
    assert outputs["md5hexhash"] == md5.hexdigest()
    assert outputs["outputName"] == "a/t.npz"
    assert client.bucket("data-p1").blob("a/t.npz").download_as_bytes() == content


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


def test_an_object_made_of_a_file_of_unknown_kind_is_a_stream_of_bytes(
    cloud: Plugin, bucket: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "x").write_text("x")
    source = Asset("some-hash", (("path", str(tmp_path / "x")),))

    _, outputs = cloud.create(OBJECT, {"bucket": bucket["name"], "name": "x", "source": source})

    assert outputs["contentType"] == "application/octet-stream"


def test_a_file_that_is_gone_is_one_plain_line(cloud: Plugin, bucket: dict[str, Any]) -> None:
    source = Asset("h", (("path", "/nowhere/x.npz"),))
    text = _refused(
        lambda: cloud.create(OBJECT, {"bucket": bucket["name"], "name": "x", "source": source})
    )

    assert text.startswith("cannot read the source of an object:")
    assert "/nowhere/x.npz" in text


def test_an_object_somebody_wrote_over_is_put_back(
    cloud: Plugin, client: storage.Client, bucket: dict[str, Any]
) -> None:
    inputs = cloud.checked(OBJECT, "x", {"bucket": bucket["name"], "name": "x", "content": "mine"})
    id_, outputs = cloud.create(OBJECT, inputs)
    assert not cloud.diff(OBJECT, id_, inputs, outputs).detailedDiff
    client.bucket("data-p1").blob("x").upload_from_string("other")

    answer = cloud.read(OBJECT, id_, properties=outputs, inputs=inputs)
    seen = {**outputs, "detectMd5hash": answer.properties.fields["detectMd5hash"].string_value}
    assert set(cloud.diff(OBJECT, id_, inputs, seen).detailedDiff) == {
        "crc32c",
        "detectMd5hash",
        "generation",
        "md5hash",
    }
    cloud.update(OBJECT, id_, inputs, seen)

    assert client.bucket("data-p1").blob("x").download_as_text() == "mine"


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


def test_a_bucket_with_objects_is_kept_unless_forced(
    cloud: Plugin, client: storage.Client, bucket: dict[str, Any]
) -> None:
    client.bucket("data-p1").blob("kept").upload_from_string("x")

    text = _refused(lambda: cloud.delete(BUCKET, "data-p1", {**bucket, "forceDestroy": False}))

    assert text == (
        "Error trying to delete bucket data-p1 containing objects without "
        "`force_destroy` set to true"
    )
    assert client.bucket("data-p1").blob("kept").exists()


def test_a_bucket_goes_with_files_the_emulator_does_not_know(
    cloud: Plugin, client: storage.Client, home: Path
) -> None:
    inputs = {"location": "US", "name": "stray-p1", "forceDestroy": True}
    id_, outputs = cloud.create(BUCKET, inputs)
    (home / "storage" / "stray-p1" / "file").write_text("written past the emulator")

    cloud.delete(BUCKET, id_, plain(outputs))

    assert not client.bucket("stray-p1").exists()
    assert not list((home / "storage").glob("stray-p1*"))


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


def test_a_grant_on_a_bucket_is_kept_under_the_buckets_path(
    cloud: Plugin, bucket: dict[str, Any], home: Path
) -> None:
    role, store = "roles/storage.objectViewer", Store(home / "cloud.sqlite")
    inputs = {"bucket": bucket["name"], "role": role, "member": "user:me@example.com"}

    id_, outputs = cloud.create(GRANT, inputs)

    assert id_ == f"b/data-p1/{role}/user:me@example.com"
    assert outputs["bucket"] == "b/data-p1"
    assert store.roles("b/data-p1", "user:me@example.com") == {role}
    assert not cloud.diff(GRANT, id_, cloud.checked(GRANT, "x", inputs), outputs).detailedDiff


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


def test_a_locked_retention_is_never_shortened_and_its_objects_never_deleted(
    cloud: Plugin, client: storage.Client
) -> None:
    kept = {"retentionPeriod": "2592000", "isLocked": True}
    inputs = {"name": "audit-p1", "location": "US-CENTRAL1", "forceDestroy": True}
    inputs = cloud.checked(BUCKET, "audit", {**inputs, "retentionPolicy": kept})
    id_, outputs = cloud.create(BUCKET, inputs)

    shorter = {**inputs, "retentionPolicy": {**kept, "retentionPeriod": "86400"}}
    assert not cloud.diff(BUCKET, id_, shorter, outputs).replaces  # the plugin sends it
    with pytest.raises(grpc.RpcError, match="Cannot reduce retention duration of a locked"):
        cloud.update(BUCKET, id_, shorter, outputs)
    unlocked = {**inputs, "retentionPolicy": {**kept, "isLocked": False}}
    assert list(cloud.diff(BUCKET, id_, unlocked, outputs).replaces)
    longer = {**inputs, "retentionPolicy": {**kept, "retentionPeriod": "5184000"}}
    outputs = cloud.update(BUCKET, id_, longer, outputs)

    client.bucket("audit-p1").blob("x").upload_from_string("evidence")
    with pytest.raises(grpc.RpcError, match="retentionPolicyNotMet"):
        cloud.delete(BUCKET, id_, outputs)
