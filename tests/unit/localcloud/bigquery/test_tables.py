"""Loads, exports and queries into tables: what a table has afterwards, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localgcp.bigquery.catalog import DATASET, TABLE
from localgcp.home import Home
from localgcp.runner.gcsfuse import storage_client
from localgcp.storage import StorageEmulator
from tests.unit.localcloud.bigquery.conftest import (
    FIELDS,
    MADE,
    NOW,
    OTHER,
    PLACE,
    PROJECT,
    SQL,
    Engine,
    Service,
    failure,
    table,
)  # fmt: skip
from tests.unit.localcloud.conftest import free_port

NAMED = [{"name": "id", "type": "INTEGER", "mode": "NULLABLE"},
         {"name": "name", "type": "STRING", "mode": "NULLABLE"}]  # fmt: skip
MADE_NAMED = {"done": {"schema": NAMED, "rows": 1, "bytes": {"id": 8, "name": 5}}}


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a storage emulator with the bucket ``raw``."""
    folder = tmp_path_factory.mktemp("storage")
    home = Home(folder / "home", folder)
    home.create()
    emulator = StorageEmulator(home.storage, home.storage_log, home.children)
    emulator.start(free_port())
    client = storage_client(emulator.url)
    bucket = client.create_bucket("raw")
    for name, text in (("a1.csv", "12345"), ("a2.csv.gz", "123"), ("b.csv", "1"), ("a[1].csv", "")):
        bucket.blob(f"in/{name}").upload_from_string(text)
    client.emulator_url = emulator.url
    yield client
    emulator.stop()


@pytest.fixture
def loads(warehouse: Service, storage: Any) -> Service:
    """With the buckets of ``storage``, a dataset, and a table of one version."""
    jobs_ = warehouse.bigquery.jobs
    jobs_._storage_url = storage.emulator_url
    warehouse.put(DATASET, "web", {"location": "us-central1"})
    version = [NOW - 10, ["a.parquet"], 3, {"id": 24}, FIELDS]
    warehouse.put(TABLE, "web.clicks", table(PLACE, version, schema={"fields": FIELDS}))
    return warehouse


def test_an_object_is_named_as_it_is_written(loads: Service, engine: Engine) -> None:
    engine.says("load", MADE)
    config = {"sourceUris": ["gs://raw/in/a[1].csv"], "autodetect": True,
              "destinationTable": OTHER}  # fmt: skip
    assert failure(loads.run("l1", load=config)) is None
    assert [Path(each).name for each in engine.asked[0]["files"]] == ["0.csv"]
    config["sourceUris"] = ["gs://raw/in/b.csv", "gs://raw/in/nothing*"]
    found = failure(loads.run("l2", load=config))
    assert found == ("notFound", "Not found: URI gs://raw/in/nothing*")


@pytest.mark.parametrize(
    ("table_id", "config", "schema"),
    [
        ("clicks", {}, FIELDS),
        ("clicks", {"autodetect": True}, []),
        ("clicks", {"schema": {"fields": NAMED}}, NAMED),
        ("copy", {"schema": {"fields": NAMED}, "autodetect": True}, NAMED),
        ("copy", {"sourceFormat": "PARQUET"}, []),
        ("copy", {"sourceFormat": "CSV"}, None),
    ],
)
def test_columns_are_those_given_or_those_of_the_table_or_found(
    loads: Service, engine: Engine, table_id: str, config: Any, schema: Any
) -> None:
    engine.says("load", MADE)
    place = PLACE | {"tableId": table_id}
    given = {"sourceUris": ["gs://raw/in/b.csv"], "destinationTable": place, **config}
    found = failure(loads.run("l1", load=given))
    if schema is None:
        assert found == ("invalid", "No schema specified on job or table.")
    else:
        assert (found, engine.asked[0]["schema"]) == (None, schema)


ADDED = [NOW, [NOW - 10, NOW], 5, 40]
REPLACED = [NOW, [NOW - 10, NOW], 2, 16]
EXISTS = ("duplicate", f"Already Exists: Table {PROJECT}:web.clicks")
UNLIKE = ("invalid", f"Provided Schema does not match Table {PROJECT}:web.clicks.")


@pytest.mark.parametrize(
    ("kind", "how", "made", "wanted"),
    [
        ("load", "", MADE, ADDED),
        ("load", "WRITE_APPEND", MADE, ADDED),
        ("query", "WRITE_APPEND", MADE, ADDED),
        ("load", "WRITE_TRUNCATE", MADE, REPLACED),
        ("query", "", MADE, EXISTS),
        ("load", "WRITE_APPEND", MADE_NAMED, UNLIKE),
    ],
)
def test_rows_are_added_or_replaced_or_refused(
    loads: Service, engine: Engine, kind: str, how: str, made: Any, wanted: Any
) -> None:
    engine.says(kind, made)
    config = {"load": {"sourceUris": ["gs://raw/in/b.csv"]}, "query": SQL}[kind]
    before = loads.get(TABLE, "web.clicks")
    given = config | {"destinationTable": PLACE} | ({"writeDisposition": how} if how else {})
    ended = loads.run("j1", **{kind: given})
    after = loads.get(TABLE, "web.clicks")
    if isinstance(wanted, tuple):
        assert (failure(ended), after) == (wanted, before)
        return
    moment, times, rows, size = wanted
    file = Path(engine.asked[0]["output"]).name
    files = ["a.parquet", file] if how in ("", "WRITE_APPEND") else [file]
    sizes = {"id": size} if made is MADE else {"id": 8, "name": 5}
    schema = made["done"]["schema"]
    assert failure(ended) is None
    assert after == before | {
        "versions": [*before["versions"], [moment, files, rows, sizes, schema]],
        "lastModifiedTime": str(NOW), "schema": {"fields": schema},
    }  # fmt: skip
    assert [each[0] for each in after["versions"]] == times


def test_names_of_columns_are_compared_without_their_case_and_types_with_theirs(
    loads: Service, engine: Engine
) -> None:
    for name, kind, error in (("ID", "INTEGER", None), ("id", "STRING", UNLIKE)):
        fields = [{"name": name, "type": kind, "mode": "NULLABLE"}]
        engine.says("load", {"done": {"schema": fields, "rows": 1, "bytes": {"id": 8}}})
        config = {"sourceUris": ["gs://raw/in/b.csv"], "destinationTable": PLACE}
        assert failure(loads.run(f"l{name}{kind}", load=config)) == error
    assert loads.get(TABLE, "web.clicks")["versions"][-1][4] == FIELDS


def test_the_first_rows_of_a_table_without_columns_give_it_its_columns(
    loads: Service, engine: Engine
) -> None:
    loads.put(TABLE, "web.clicks", table(PLACE))
    engine.says("load", MADE)
    config = {"sourceUris": ["gs://raw/in/b.csv"], "destinationTable": PLACE, "autodetect": True}
    assert failure(loads.run("l1", load=config)) is None
    assert loads.get(TABLE, "web.clicks")["schema"] == {"fields": FIELDS}
    # The second ones stand beside them, by the name that the table has for a column.
    loads.put(TABLE, "web.clicks", table(PLACE, schema={"fields": FIELDS}))
    assert failure(loads.run("l2", load=config)) is None
    assert loads.get(TABLE, "web.clicks")["versions"][-1][2] == 2


@pytest.mark.parametrize(
    ("place", "how", "error"),
    [
        (OTHER, "CREATE_IF_NEEDED", None),
        (OTHER, "CREATE_NEVER", f"Not found: Table {PROJECT}:web.copy"),
        (OTHER | {"datasetId": "no"}, None, f"Not found: Dataset {PROJECT}:no was not found"),
    ],
)
def test_a_table_is_made_where_its_dataset_is(
    loads: Service, engine: Engine, place: dict[str, str], how: str | None, error: str | None
) -> None:
    engine.says("query", MADE)
    loads.put(DATASET, "web", {"location": "EU"})
    given = SQL | {"destinationTable": place} | ({"createDisposition": how} if how else {})
    found = failure(loads.run("q1", query=given))
    assert found == (error and ("notFound", error))
    made = loads.get(TABLE, f"{place['datasetId']}.{place['tableId']}")
    assert (made and made["location"]) == (None if error else "EU")


@pytest.mark.parametrize(
    ("uri", "name"),
    [("gs://raw/out/rows.csv", "out/rows.csv"),
     ("gs://raw/out/rows-*.csv", "out/rows-000000000000.csv")],
)  # fmt: skip
def test_an_export_is_an_object(
    loads: Service, engine: Engine, storage: Any, uri: str, name: str
) -> None:
    engine.says("export", {"done": {}})
    config = {"sourceTable": PLACE, "destinationUris": [uri]}
    ended = loads.run("e1", extract=config)
    assert failure(ended) is None
    assert ended["statistics"]["extract"] == {"destinationUriFileCounts": ["1"]}
    [asked] = engine.asked
    assert not Path(asked.pop("output")).exists()
    assert asked == {
        "operation": "export", "config": config, "folder": str(loads.data),
        "table": {"files": [str(loads.data / "a.parquet")], "schema": FIELDS},
    }  # fmt: skip
    assert storage.bucket("raw").blob(name).download_as_bytes() == b"rows"


@pytest.mark.parametrize("uris", [["gs://raw/a", "gs://raw/b"], ["s3://raw/a"]])
def test_an_export_goes_to_one_object_of_cloud_storage(
    loads: Service, engine: Engine, uris: list[str]
) -> None:
    ended = loads.run("e1", extract={"sourceTable": PLACE, "destinationUris": uris})
    text = "the local cloud exports to one gs:// URI at a time."
    assert (failure(ended), engine.asked) == (("invalid", text), [])


def test_nothing_stays_of_an_export_that_fails(loads: Service, engine: Engine) -> None:
    engine.says("export", {"error": {"reason": "invalid", "message": "no"}})
    config = {"sourceTable": PLACE, "destinationUris": ["gs://raw/out/no.csv"]}
    assert failure(loads.run("e1", extract=config)) == ("invalid", "no")
    assert list(loads.data.iterdir()) == []
    text = f"Not found: Table {PROJECT}:web.copy was not found in location us-central1"
    config["sourceTable"] = OTHER
    assert failure(loads.run("e2", extract=config)) == ("notFound", text)
