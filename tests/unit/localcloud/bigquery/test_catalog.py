"""What BigQuery keeps: versions of tables, what expires, and which files stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.bigquery import catalog
from localgcp.bigquery.catalog import DATASET, JOB, TABLE, Catalog, Version

DAY = 24 * 3600 * 1000


@pytest.fixture
def kept(tmp_path: Path) -> Catalog:
    data = tmp_path / "bigquery"
    data.mkdir()
    return Catalog(tmp_path / "cloud.sqlite", data)


def version(time: int, *files: str, rows: int = 1) -> list[Any]:
    return [time, list(files), rows, {"a": 8, "b": 3}, []]


def test_rows_are_kept_by_kind_project_and_name(kept: Catalog) -> None:
    with kept.change() as rows:
        rows.put(DATASET, "p", "x", {"is": 1})
        rows.put(JOB, "p", "x", {"is": 2})
        rows.put(DATASET, "q", "x", {"is": 3})
        rows.put(DATASET, "p", "x", {"is": 4})
    assert kept.get(DATASET, "p", "x") == {"is": 4}
    assert kept.get(JOB, "p", "x") == {"is": 2}
    assert kept.get(JOB, "q", "x") is None
    with kept.change() as rows:
        assert rows.all(DATASET, "p") == [(DATASET, "p", "x", {"is": 4})]
        assert rows.all(DATASET) == [
            (DATASET, "p", "x", {"is": 4}), (DATASET, "q", "x", {"is": 3}),
        ]  # fmt: skip
        rows.delete(DATASET, "p", "x")
    assert (kept.get(DATASET, "p", "x"), kept.get(DATASET, "q", "x")) == (None, {"is": 3})


def _put_two(rows: catalog.Rows) -> None:
    rows.put(JOB, "p", "x", {})
    rows.put(JOB, "p", "y", {"no": {"json"}})


def test_what_goes_wrong_in_between_leaves_nothing(kept: Catalog) -> None:
    with pytest.raises(TypeError), kept.change() as rows:
        _put_two(rows)
    assert kept.get(JOB, "p", "x") is None


def test_a_table_is_gone_when_its_time_is_over(
    kept: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kept.change() as rows:
        rows.put(TABLE, "p", "d.t", {"expirationTime": "1000", "versions": []})
        rows.put(TABLE, "p", "d.u", {"versions": []})
    for now, is_there in ((999, True), (1000, False)):
        monkeypatch.setattr(catalog, "now", lambda now=now: now)
        assert (kept.get(TABLE, "p", "d.t") is not None) is is_there
        assert kept.get(TABLE, "p", "d.u") == {"versions": []}


TABLE_OF_THREE = {
    "versions": [version(100, "a"), version(200, "a", "b", rows=2), version(300, "c")]
}


@pytest.mark.parametrize(
    ("as_of", "files"),
    [(None, ["c"]), (300, ["c"]), (299, ["a", "b"]), (200, ["a", "b"]), (100, ["a"]), (99, None)],
)
def test_a_table_as_of_a_time_has_the_rows_it_had(as_of: int | None, files: Any) -> None:
    found = catalog.version_of(TABLE_OF_THREE, as_of)
    assert (found and found.files) == files


def test_a_table_without_rows_has_none_at_any_time() -> None:
    assert catalog.version_of({"versions": []}, None) is None
    assert catalog.to_rest({"versions": []}) == {
        "versions": [], "numRows": "0", "numBytes": "0", "numTotalLogicalBytes": "0",
    }  # fmt: skip


def test_rest_has_the_size_of_the_latest_version() -> None:
    table = {"versions": [version(100, "a", rows=9), version(200, "b", rows=2)]}
    assert catalog.to_rest(table) == {
        **table, "numRows": "2", "numBytes": "11", "numTotalLogicalBytes": "11",
    }  # fmt: skip


@pytest.mark.parametrize(("time", "wanted"), [(150, 150), (100, 101), (50, 101)])
def test_no_two_versions_are_of_one_time(time: int, wanted: int) -> None:
    table: dict[str, Any] = {"versions": [version(100, "a")]}
    catalog.add_version(table, Version(time, ["b"], 1, {}, []))
    assert [each[0] for each in table["versions"]] == [100, wanted]
    assert table["lastModifiedTime"] == str(wanted)


def test_the_first_version_is_of_its_own_time() -> None:
    table: dict[str, Any] = {"versions": []}
    catalog.add_version(table, Version(5, ["b"], 1, {}, []))
    assert table == {"versions": [Version(5, ["b"], 1, {}, [])], "lastModifiedTime": "5"}


def test_files_stay_for_seven_days_and_as_long_as_their_version_is_the_last(
    kept: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100 * DAY
    monkeypatch.setattr(catalog, "now", lambda: now)
    for name in ("old", "week", "then", "last", "ancient", "expired", "nobody"):
        (kept.data / name).write_text(name)
    (kept.data / "folder").mkdir()
    (kept.data / "folder" / "part").write_text("")
    with kept.change() as rows:
        rows.put(TABLE, "p", "d.t", {"versions": [
            version(now - 20 * DAY, "old"),
            version(now - 9 * DAY, "week"),  # over for exactly seven days
            version(now - 7 * DAY, "then"),  # read as of six days ago
            version(now - 5 * DAY, "last"),
        ]})  # fmt: skip
        rows.put(TABLE, "p", "d.u", {"versions": [version(1, "ancient")]})
        rows.put(TABLE, "p", "d.v", {"versions": [version(1, "expired")], "expirationTime": "2"})
    kept.clean()
    assert sorted(each.name for each in kept.data.iterdir()) == ["ancient", "last", "then"]
    with kept.change() as rows:
        names = {name: [each[1] for each in body["versions"]] for *_, name, body in rows.all(TABLE)}
    assert names == {"d.t": [["then"], ["last"]], "d.u": [["ancient"]]}
