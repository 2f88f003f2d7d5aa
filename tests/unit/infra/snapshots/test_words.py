"""What a review says of a snapshot, in whole lines, and what a dry run tells."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Process, request
from vertex_training.errors import NotSubmittedError
from vertex_training.snapshots import estimate
from vertex_training.snapshots.protocol import take_snapshot

TIB = 2**40
THERE = {"rows": 891, "bytes": 12_345, "queriedAt": "2026-11-20T00:00:00Z"}
READS = {"processed": TIB // 2, "capacity": False}
READ = "its query reads 549,755,813,888 bytes"


@pytest.mark.parametrize(
    ("found", "location", "line"),
    [
        ({}, "US", ""),
        (THERE, "US", "is there: 891 rows, 12,345 bytes, queried at 2026-11-20T00:00:00Z"),
        ({"rows": 0, "bytes": None, "queriedAt": None}, "US",
         "is there: 0 rows, 0 bytes, queried at None"),
        (READS, "us-central1",
         f"{READ} ($3.12 on demand; at most 1,099,511,627,776 bytes, $6.25)"),
        (READS, "EU", f"{READ} ($3.12 on demand; at most 1,099,511,627,776 bytes, $6.25)"),
        (READS, "nowhere",
         f"{READ} ($5.62 on demand, the highest price: that of nowhere is unknown; at most "
         "1,099,511,627,776 bytes, $11.25)"),
        ({**READS, "capacity": True}, "US",
         f"{READ} (capacity: no price; at most 1,099,511,627,776 bytes)"),
        ({"processed": 0, "capacity": False, "atLeast": True}, "US",
         "its query reads at least 0 bytes (no price; at most 1,099,511,627,776 bytes, $6.25)"),
        ({"sources": ["a.b.c", "d.e.f"]}, "US", "from a.b.c, d.e.f"),
        ({"changed": ["a.b.c 2026"], "personal": ["email"], "sources": [],
          "unanswered": "no right"}, "US",
         "changed since, which `run` one higher would read: a.b.c 2026; columns that look like "
         "data about people: email; not asked: no right"),
        ({**THERE, "sources": ["a.b.c"]}, "US",
         "is there: 891 rows, 12,345 bytes, queried at 2026-11-20T00:00:00Z; from a.b.c"),
    ],
)  # fmt: skip
def test_what_is_known_of_a_snapshot_is_one_line(found: Any, location: str, line: str) -> None:
    assert estimate.words(found, TIB, location) == line


@pytest.mark.parametrize(
    ("location", "priced", "usd"),
    [
        ("us-central1", True, 6.25),
        ("US", True, 6.25),
        ("europe-west3", True, 8.13),
        ("nowhere", False, 11.25),
    ],
)
def test_a_tebibyte_costs_what_its_location_does_or_the_most_there_is(
    location: str, priced: bool, usd: float
) -> None:
    assert (estimate.is_priced(location), estimate.usd(TIB, location)) == (priced, usd)
    assert estimate.usd(0, location) == 0


def look(cloud: Cloud, statistics: Any = None, **changes: Any) -> tuple[Any, Any]:
    """What is told before a snapshot is made, and what BigQuery was asked."""
    process = Process(cloud, request(**changes))
    asked: list[Any] = []

    def dry_run(configuration: Any) -> Any:
        asked.append(configuration)
        return {"statistics": statistics} if statistics is not None else {}

    process.dry_run = dry_run
    return estimate.look(process.wanted, process.ports), asked


CLICKS = {"projectId": "acme", "datasetId": "web", "tableId": "clicks"}
VIEWS = {"projectId": "acme", "datasetId": "web", "tableId": "a_view"}


@pytest.mark.parametrize(
    ("statistics", "told"),
    [
        (None, {"processed": 0, "capacity": False, "sources": [], "personal": []}),
        (
            {"totalBytesProcessed": "1000000000", "query": {
                "statementType": "SELECT", "referencedTables": [CLICKS, VIEWS],
                "totalBytesProcessedAccuracy": "PRECISE",
                "schema": {"fields": [{"name": "email"}, {"name": "n"}]}}},
            {"processed": 10**9, "capacity": False, "personal": ["email"],
             "sources": ["acme.web.a_view", "acme.web.clicks"]},
        ),
        *(
            ({"totalBytesProcessed": "5", "query": {"totalBytesProcessedAccuracy": accuracy}},
             {"processed": 5, "capacity": False, "sources": [], "personal": [], **more})
            for accuracy, more in (
                ("UPPER_BOUND", {}), ("LOWER_BOUND", {"atLeast": True}),
                ("UNKNOWN", {"atLeast": True}),
            )
        ),
        ({"reservation_id": "r"},
         {"processed": 0, "capacity": True, "sources": [], "personal": []}),
        ({"edition": "ENTERPRISE"},
         {"processed": 0, "capacity": True, "sources": [], "personal": []}),
    ],
)  # fmt: skip
def test_a_dry_run_tells_bytes_tables_and_columns(statistics: Any, told: Any) -> None:
    found, [configuration] = look(Cloud(), statistics)
    assert found == told
    assert "maximumBytesBilled" not in configuration["query"]


@pytest.mark.parametrize(("days", "refused"), [(6.99, False), (7.01, True)])
def test_a_table_is_read_as_of_the_last_seven_days(days: float, refused: bool) -> None:
    now = datetime.datetime.now(tz=datetime.UTC)
    time = (now - datetime.timedelta(days=days)).isoformat()
    if not refused:
        assert look(Cloud(), as_of=time)[0]["processed"] == 0
        return
    with pytest.raises(NotSubmittedError) as failed:
        look(Cloud(), as_of=time)
    assert str(failed.value) == (
        f"snapshot 'clicks': asOf {time} is more than seven days ago, and BigQuery has no older "
        "state of a table. Hint: a later time"
    )


def test_one_that_is_there_is_told_with_what_changed_since() -> None:
    cloud = Cloud()
    process = Process(cloud, request())
    take_snapshot(process.wanted, process.ports, environment=process.environment)
    summary = {
        "rows": 891, "bytes": 72, "queriedAt": "1970-01-01T00:16:40.000Z",
        "sources": ["acme.web.clicks"], "personal": [],
    }  # fmt: skip
    assert look(cloud)[0] == summary
    cloud.changed_at = 1_000.0
    assert look(cloud)[0] == summary
    cloud.changed_at = 1_000.001
    changed = {"changed": ["acme.web.clicks 1970-01-01T00:16:40.001Z"]}
    assert look(cloud)[0] == summary | changed


def test_a_snapshot_as_of_a_time_has_no_changes_since() -> None:
    time = (datetime.datetime.now(tz=datetime.UTC) - datetime.timedelta(days=1)).isoformat()
    cloud = Cloud()
    process = Process(cloud, request(as_of=time))
    take_snapshot(process.wanted, process.ports, environment=process.environment)
    cloud.changed_at = 10**9
    assert "changed" not in look(cloud, as_of=time)[0]


@pytest.mark.parametrize(
    ("name", "is_personal"),
    [
        *((name, True) for name in (
            "email", "mail", "home_phone", "mobile", "ssn", "passport", "iban", "birthday",
            "birthdate", "dob", "first_name", "lastname", "full_name", "surname", "given_name",
            "family_name", "street", "ADDRESS", "postcode", "zip", "ip", "credit_card",
            "creditcard", "gender", "religion", "latitude", "longitude", "user_email_hash",
        )),
        *((name, False) for name in ("emailed", "name", "shipping", "recipe", "", "zipcode2")),
    ],
)  # fmt: skip
def test_columns_about_people_are_known_by_their_names(name: str, is_personal: bool) -> None:
    assert estimate.personal_columns([{"name": name}]) == ([name] if is_personal else [])
    inside = [{"name": "r", "fields": [{"name": "s", "fields": [{"name": name}]}]}]
    assert estimate.personal_columns(inside) == ([f"r.s.{name}"] if is_personal else [])
