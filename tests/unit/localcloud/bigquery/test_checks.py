"""Who may do what in BigQuery, and what a request must have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localgcp.access.guests import Guest
from localgcp.bigquery import checks
from localgcp.errors import BigQueryError
from localgcp.inventory.store import Store
from tests.unit.localcloud.conftest import set_grant

PROJECT = "local-training"
TRAINER = f"trainer@{PROJECT}.iam.gserviceaccount.com"
PLACE = {"projectId": PROJECT, "datasetId": "web", "tableId": "clicks"}
DATASET = f"projects/{PROJECT}/datasets/web"
ALL = {"roles/bigquery.admin", "roles/owner"}


def told(call: Callable[[], object]) -> tuple[str, str] | None:
    """Reason and text of a refusal, or None."""
    try:
        call()
    except BigQueryError as error:
        return error.reason, str(error)
    return None


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


@pytest.mark.parametrize("place", [f"projects/{PROJECT}", DATASET, f"{DATASET}/tables/clicks"])
def test_a_role_counts_on_the_project_the_dataset_and_the_table(store: Store, place: str) -> None:
    def check() -> None:
        checks.check_read(store, Guest(TRAINER), PLACE, None)

    text = f"Access Denied: {PROJECT}.web.clicks: bigquery.tables.getData denied (or it may not"
    assert told(check) == ("accessDenied", f"{text} exist). The job runs as {TRAINER}.")
    set_grant(store, place, "roles/bigquery.jobUser", TRAINER)
    assert told(check)
    set_grant(store, place, "roles/bigquery.dataViewer", TRAINER)
    assert told(check) is None


@pytest.mark.parametrize("place", [f"{DATASET}/tables/views", "projects/local-other"])
def test_a_role_on_something_else_does_not(store: Store, place: str) -> None:
    set_grant(store, place, "roles/owner", TRAINER)
    assert told(lambda: checks.check_read(store, Guest(TRAINER), PLACE, None))


def test_a_role_on_a_table_is_none_on_its_dataset(store: Store) -> None:
    set_grant(store, f"{DATASET}/tables/clicks", "roles/owner", TRAINER)
    place = {"projectId": PROJECT, "datasetId": "web"}
    found = told(lambda: checks.check_roles(store, Guest(TRAINER), place, checks.READERS, "x.get"))
    text = f"Access Denied: {PROJECT}.web: x.get denied (or it may not exist)."
    assert found == ("accessDenied", f"{text} The job runs as {TRAINER}.")


def test_a_job_without_an_account_has_no_role_and_the_owner_all(store: Store) -> None:
    place = {"projectId": PROJECT}
    assert told(lambda: checks.check_roles(store, Guest(""), place, checks.ASKERS, "x.create")) == (
        "accessDenied",
        f"Access Denied: {PROJECT}: x.create denied (or it may not exist). The job has no account.",
    )
    assert told(lambda: checks.check_roles(store, None, place, checks.ASKERS, "x")) is None


def test_a_result_is_for_the_account_whose_job_made_it(store: Store) -> None:
    assert told(lambda: checks.check_read(store, Guest(TRAINER), PLACE, TRAINER)) is None
    assert told(lambda: checks.check_read(store, Guest(TRAINER), PLACE, "other@x"))
    assert told(lambda: checks.check_read(store, Guest(""), PLACE, ""))
    assert told(lambda: checks.check_read(store, None, PLACE, "other@x")) is None


TABLE = {"projectId": PROJECT, "datasetId": "d", "tableId": "t"}


@pytest.mark.parametrize(
    ("kind", "config", "missing"),
    [
        ("query", {}, "query"),
        ("query", {"query": "SELECT 1"}, None),
        ("load", {"destinationTable": TABLE}, "sourceUris"),
        ("extract", {"sourceTable": TABLE}, "destinationUris"),
        ("load", {"sourceUris": ["gs://b/o"], "destinationTable": TABLE}, None),
        ("extract", {"destinationUris": ["gs://b/o"], "sourceTable": TABLE}, None),
        *(("load", {"sourceUris": ["u"], "destinationTable": TABLE | {key: ""}},
           f"destinationTable.{key}") for key in TABLE),
        *(("extract", {"destinationUris": ["u"], "sourceTable": TABLE | {key: ""}},
           f"sourceTable.{key}") for key in TABLE),
        *(("query", {"query": "SELECT 1", "destinationTable": TABLE | {key: ""}},
           f"destinationTable.{key}") for key in TABLE),
    ],
)  # fmt: skip
def test_a_job_has_what_its_kind_needs(
    kind: str, config: dict[str, Any], missing: str | None
) -> None:
    found = told(lambda: checks.check_job(kind, {}, config))
    wanted = missing and ("required", f"Required parameter is missing: {missing}")
    assert found == wanted


@pytest.mark.parametrize(
    ("name", "is_good"),
    [("a-B_9", True), ("a" * 1024, True), ("a" * 1025, False), ("a.b", False), ("a\n", False)],
)
def test_an_id_of_a_job_has_a_form(name: str, is_good: bool) -> None:
    found = told(lambda: checks.check_job("query", {"jobId": name}, {"query": "SELECT 1"}))
    wanted = f"Invalid job ID {name!r}: [A-Za-z0-9_-]{{1,1024}} is expected."
    assert found == (None if is_good else ("invalid", wanted))


@pytest.mark.parametrize(
    ("name", "is_good"),
    [("a_B9", True), ("a" * 1024, True), ("a" * 1025, False), ("a-b", False), ("", False)],
)
def test_a_name_of_a_dataset_has_a_form(name: str, is_good: bool) -> None:
    found = told(lambda: checks.check_dataset(name))
    wanted = f"Invalid dataset ID {name!r}: [A-Za-z0-9_]{{1,1024}}"
    assert found == (None if is_good else ("invalid", wanted))


def test_a_reference_may_leave_out_what_the_path_names_and_say_nothing_else() -> None:
    place = {"projectId": PROJECT, "datasetId": "d"}
    for given in ({}, {"projectId": ""}, {"datasetId": "d", "tableId": "t"}, place):
        assert told(lambda given=given: checks.check_same(place, given)) is None
    assert told(lambda: checks.check_same(place, {"datasetId": "e"})) == (
        "invalid", "Value e in content does not agree with value d of the path.",
    )  # fmt: skip
