"""Snapshots as a job opens them: what the program writes, what a pipeline writes, what is hostile.

Buckets are those of the storage emulator.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vertex_job import snapshot
from vertex_job.errors import SnapshotError, StoreError
from vertex_job.stores import store_at

from tests.unit.infra.snapshots.fakes import request as snapshot_request
from tests.unit.localcloud.conftest import Cloud, cloud_with_storage, home, make_cloud
from vertex_training.snapshots import manifest as manifests
from vertex_training.snapshots.manifest import StoredObject

__all__ = ["cloud_with_storage", "home", "make_cloud"]  # fixtures

CSV = b"survived,age\n1,22\n0,38\n"
MORE = b"survived,age\n1,4\n"
PART = "part-000000000000.csv"


@pytest.fixture
def bucket(cloud_with_storage: Cloud, monkeypatch: pytest.MonkeyPatch) -> str:
    cloud_with_storage.bucket("data")
    assert cloud_with_storage.storage is not None
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud_with_storage.storage.url)
    return "gs://data/snapshots/prod/clicks/1"


@pytest.fixture(params=["disk", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "disk":
        yield str(tmp_path / "snapshots" / "1")
    else:
        yield request.getfixturevalue("bucket")


def export(place: str, files: dict[str, bytes]) -> str:
    """What ``pulumi up`` leaves: files of an export, and the manifest by the program's own code."""
    store = store_at(place)
    for name, content in files.items():
        store.write(name, content)
    objects = [
        StoredObject(name, file.size, int(file.generation or 7), checksum(files[name]))
        for name, file in store.files().items()
    ]
    asked = snapshot_request(format="csv")
    query = {
        "jobReference": {"jobId": "vt-snapshot-x-query-1"},
        "statistics": {"startTime": "1700000000000", "totalBytesProcessed": "20"},
    }
    table = {"schema": {"fields": [{"name": "age", "type": "INTEGER"}]}, "numRows": "3"}
    made = manifests.build(asked, query, table, [], objects)
    store.write("manifest.json", manifests.canonical(made).encode())
    return place


def checksum(content: bytes) -> str:
    return base64.b64encode(google_crc32c.Checksum(content).digest()).decode()


def rewrite(place: str, change: Callable[[dict[str, Any]], None], *, seal: bool = True) -> None:
    """The manifest as somebody else might write it, whose digest is right if ``seal``."""
    store = store_at(place)
    manifest = json.loads(store.read("manifest.json"))
    change(manifest)
    if seal:
        manifest["contentSha256"] = manifests.content_digest(manifest)
    store.write("manifest.json", manifests.canonical(manifest).encode())


def test_a_snapshot_of_the_program_is_opened_and_read(place: str, tmp_path: Path) -> None:
    export(place, {f"export-1-1/{PART}": CSV, "export-1-1/part-000000000001.csv": MORE})
    data = snapshot.open(place)
    assert [file.name for file in data.files] == [
        "export-1-1/part-000000000000.csv",
        "export-1-1/part-000000000001.csv",
    ]
    assert data.files[0].place == f"{place}/export-1-1/{PART}"
    assert [data.read(file) for file in data.files] == [CSV, MORE]
    assert (data.manifest["rows"], data.manifest["snapshot"]["name"]) == (3, "clicks")
    data.verify()
    assert data.dataframe().to_dict("list") == {"survived": [1, 0, 1], "age": [22, 38, 4]}
    assert list(data.dataframe(["age"]).columns) == ["age"]


def test_variable_or_manifest_may_be_given(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    export(place, {PART: CSV})
    monkeypatch.setenv("CLICKS", place)
    for where in ("CLICKS", f"{place}/", f"{place}/manifest.json"):
        assert len(snapshot.open(where).files) == 1
    with pytest.raises(SnapshotError, match=r"variable NONE is not set. Hint: set env: {NONE: "):
        snapshot.open("NONE")


def test_the_manifests_generation_is_held_where_it_is_given(bucket: str) -> None:
    generation = store_at(export(bucket, {PART: CSV})).files()["manifest.json"].generation
    assert len(snapshot.open(f"{bucket}/manifest.json#{generation}").files) == 1
    with pytest.raises(
        SnapshotError, match=rf"has generation {generation} instead of 5: the manifest"
    ):
        snapshot.open(f"{bucket}/manifest.json#5")


@pytest.mark.parametrize("files", [{}, {PART: CSV}])
def test_a_folder_without_a_manifest_is_no_snapshot(place: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        store_at(place).write(name, content)
    how = "has no" if files else "is missing or empty, without"
    with pytest.raises(SnapshotError, match=f"{place} {how} manifest.json"):
        snapshot.open(place)


def test_a_bucket_that_cannot_be_read_is_named(bucket: str) -> None:
    with pytest.raises(StoreError, match="cannot list at gs://none/"):
        snapshot.open("gs://none/x")


def test_a_missing_object_is_named(place: str) -> None:
    export(place, {PART: CSV, "b.csv": MORE})
    store_at(place).delete("b.csv")
    with pytest.raises(SnapshotError, match=f"{place}/b.csv is missing"):
        snapshot.open(place)


def test_an_altered_object_is_refused(place: str) -> None:
    """In a bucket by its list; in a folder when it is read."""
    export(place, {PART: CSV})
    store_at(place).write(PART, CSV.replace(b"22", b"23"))
    with pytest.raises(SnapshotError, match=r"differs from the manifest: (CRC32C|other content)"):
        snapshot.open(place).verify()


def test_what_is_replaced_after_the_opening_is_not_read(bucket: str) -> None:
    data = snapshot.open(export(bucket, {PART: CSV}))
    store_at(bucket).write(PART, CSV.replace(b"22", b"23"))
    with pytest.raises(StoreError, match=f"cannot read {PART} at .*HTTP 404"):
        data.read(data.files[0])


def test_objects_beside_those_of_the_manifest_are_refused(place: str) -> None:
    """But not those of another attempt of the export, which are in a folder of its own."""
    export(place, {f"export-1-2/{PART}": CSV})
    store_at(place).write(f"export-1-1/{PART}", b"half")
    snapshot.open(place)
    for other in ("part-1.csv", "export-1-2/part-1.csv", "export-x/part-1.csv"):
        store_at(place).write(other, MORE)
        with pytest.raises(SnapshotError, match=f"{place}/{other} is not part of the snapshot"):
            snapshot.open(place)
        store_at(place).delete(other)


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/passwd",
        "a/../../b",
        "..",
        ".",
        "a\nb",
        "manifest.json",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: object) -> None:
    place = export(str(tmp_path), {PART: CSV})
    rewrite(place, lambda manifest: manifest["objects"][0].update(name=name))
    with pytest.raises(SnapshotError, match="which is not a valid name"):
        snapshot.open(place)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: m.update(format=2), "has format 2, but this library reads 1"),
        (lambda m: m.update(format=True), "has format True"),
        (lambda m: m.update(format="1"), "has format '1'"),
        (lambda m: m.pop("format"), "is not a valid manifest: KeyError"),
        (lambda m: m.update(objects={}), "is not a valid manifest: wrong objects"),
        (lambda m: m.update(objects=[7]), "duplicate or missing object names"),
    ],
)
def test_a_manifest_of_another_form_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], text: str
) -> None:
    place = export(str(tmp_path), {PART: CSV})
    rewrite(place, change)
    with pytest.raises(SnapshotError, match=text):
        snapshot.open(place)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"format": NaN}',
        b'{"format": 1, "format": 1}',
        b'{"format": 1, "contentSha256": "\\ud800", "x": "\\ud800"}',
        b'{"format": 1}',
    ],
)
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(text)
    with pytest.raises(SnapshotError, match=r"manifest.json (is not a valid manifest|was changed)"):
        snapshot.open(str(tmp_path))


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ),
    st.sampled_from(["snapshot", "query", "schema", "sources", "objects", "rows", "fileFormat"]),
    st.sampled_from(["name", "size", "generation", "crc32c", ""]),
)
def test_nothing_but_a_snapshot_error_comes_of_hostile_values(
    tmp_path_factory: pytest.TempPathFactory, value: object, key: str, field: str
) -> None:
    place = export(str(tmp_path_factory.mktemp("hostile")), {PART: CSV})
    target = (lambda m: m["objects"][0].update({field: value})) if field else None
    rewrite(place, target or (lambda manifest: manifest.update({key: value})))
    try:
        found = snapshot.open(place)
    except SnapshotError:
        return
    assert [file.place for file in found.files] in ([f"{place}/{PART}"], [])


def test_a_manifest_of_no_sane_size_is_not_loaded(tmp_path: Path) -> None:
    with (tmp_path / "manifest.json").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte, without a block on the disk
    with pytest.raises(SnapshotError, match="the limit is"):
        snapshot.open(str(tmp_path))


def test_a_pipeline_ends_in_a_snapshot(place: str) -> None:
    store = store_at(place)
    store.write("part-0.csv", CSV)
    store.write("deep/part-1.csv", MORE)
    field = {"name": "age", "type": "INTEGER"}
    made = snapshot.write(
        place, name="clicks", file_format="csv", rows=3, schema=[field], source={"by": "pipeline"}
    )
    assert snapshot.open(place).manifest == made.manifest
    assert made.manifest["sources"] == [{"by": "pipeline"}]
    assert (made.manifest["rows"], made.manifest["bytes"]) == (3, len(CSV) + len(MORE))
    made.verify()
    # The program's own reader takes it, and its digest, as well.
    assert manifests.parse(store.read("manifest.json")) == made.manifest


def test_a_snapshot_is_written_once(place: str) -> None:
    store = store_at(place)
    store.write(PART, CSV)
    first = snapshot.write(place, name="clicks", file_format="csv")
    again = snapshot.write(place, name="clicks", file_format="csv")
    assert again.manifest == first.manifest
    store.write(PART, MORE)
    with pytest.raises(SnapshotError, match=r"manifest.json already exists for other files"):
        snapshot.write(place, name="clicks", file_format="csv")


def test_a_mounted_folder_is_written_by_its_bucket(bucket: str) -> None:
    store_at(bucket).write(PART, CSV)
    mounted = bucket.replace("gs://", "/gcs/")
    made = snapshot.write(mounted, name="clicks", file_format="csv")
    assert made.files[0].generation == store_at(bucket).files()[PART].generation


def test_what_a_failed_attempt_left_is_no_data(place: str) -> None:
    with pytest.raises(SnapshotError, match=f"{place} has no files"):
        snapshot.write(place, name="clicks")
    store_at(place).write("part-0.parquet", b"x")
    store_at(place).write("beam-temp-part/1.part", b"x")
    with pytest.raises(SnapshotError, match=r"beam-temp-part/1.part is not a .parquet file. Hint"):
        snapshot.write(place, name="clicks")


@pytest.mark.parametrize(
    ("file_format", "missing", "text"),
    [
        ("csv", "pandas", r"dataframe\(\) needs pandas: install it in the image"),
        ("parquet", "pyarrow", r"dataframe\(\) needs pyarrow"),
        ("tfrecord", "", "reads parquet and csv, not 'tfrecord'"),
    ],
)
def test_dataframe_without_its_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_format: str, missing: str, text: str
) -> None:
    store_at(str(tmp_path)).write(f"part-0.{file_format}", b"PAR1")
    data = snapshot.write(str(tmp_path), name="x", file_format=file_format)
    if missing:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SnapshotError, match=text):
        data.dataframe()


def test_parquet_becomes_a_dataframe(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pandas as pd

    for number in range(2):
        pd.DataFrame({"n": [number, 7], "s": ["a", None]}).to_parquet(
            tmp_path / f"part-{number}.parquet"
        )
    data = snapshot.write(str(tmp_path), name="x", rows=4)
    assert data.dataframe()["n"].tolist() == [0, 7, 1, 7]
    assert list(data.dataframe(["n"]).columns) == ["n"]
