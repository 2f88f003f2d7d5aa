"""Who may do what in BigQuery, and what a request must have."""

from __future__ import annotations

from pathlib import Path

import pytest

from localgcp.bigquery import checks
from localgcp.inventory.store import Store

ALL = {"roles/bigquery.admin", "roles/owner"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cloud.sqlite")


def test_roles_hold_what_googles_table_says() -> None:
    writers = ALL | {"roles/bigquery.dataEditor", "roles/bigquery.dataOwner", "roles/editor"}
    assert writers == checks.WRITERS
    assert writers | {"roles/bigquery.dataViewer", "roles/viewer"} == checks.READERS
    assert ALL | {
        "roles/bigquery.jobUser", "roles/bigquery.user", "roles/editor",
    } == checks.ASKERS  # fmt: skip
