"""What BigQuery keeps: versions of tables, what expires, and which files stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localgcp.bigquery import catalog
from localgcp.bigquery.catalog import JOB, TABLE, Catalog

DAY = 24 * 3600 * 1000


@pytest.fixture
def kept(tmp_path: Path) -> Catalog:
    data = tmp_path / "bigquery"
    data.mkdir()
    return Catalog(tmp_path / "cloud.sqlite", data)


def version(time: int, *files: str, rows: int = 1) -> list[Any]:
    return [time, list(files), rows, {"a": 8, "b": 3}, []]


def _put_two(rows: catalog.Rows) -> None:
    rows.put(JOB, "p", "x", {})
    rows.put(JOB, "p", "y", {"no": {"json"}})


def test_what_goes_wrong_in_between_leaves_nothing(kept: Catalog) -> None:
    with pytest.raises(TypeError), kept.change() as rows:
        _put_two(rows)
    assert kept.get(JOB, "p", "x") is None


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
