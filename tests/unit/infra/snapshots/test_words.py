"""What a review says of a snapshot, in whole lines, and what a dry run tells."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Process, request
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
        ({**READS, "capacity": True}, "US",
         f"{READ} (capacity: no price; at most 1,099,511,627,776 bytes)"),
        ({"processed": 0, "capacity": False, "atLeast": True}, "US",
         "its query reads at least 0 bytes (no price; at most 1,099,511,627,776 bytes, $6.25)"),
        ({"changed": ["a.b.c 2026"], "personal": ["email"], "sources": [],
          "unanswered": "no right"}, "US",
         "changed since, which `run` one higher would read: a.b.c 2026; columns that look like "
         "data about people: email; not asked: no right"),
        ({**THERE, "sources": ["a.b.c"]}, "US",
         "is there: 891 rows, 12,345 bytes, queried at 2026-11-20T00:00:00Z; from a.b.c"),
    ],
)  # fmt: skip
def test_estimate_is_one_line(found: Any, location: str, line: str) -> None:
    assert estimate.words(found, TIB, location) == line


def look(cloud: Cloud, statistics: Any = None, **changes: Any) -> tuple[Any, Any]:
    """What is told before a snapshot is made, and what BigQuery was asked."""
    process = Process(cloud, request(**changes))
    asked: list[Any] = []

    def dry_run(configuration: Any) -> Any:
        asked.append(configuration)
        return {"statistics": statistics} if statistics is not None else {}

    process.dry_run = dry_run
    return estimate.look(process.wanted, process.ports), asked


def test_existing_snapshot_is_reported_with_later_changes() -> None:
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
