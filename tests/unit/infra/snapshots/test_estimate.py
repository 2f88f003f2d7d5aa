"""What a preview is told, and what it refuses before anything is sent."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Killed, Process, request
from vertex_training.errors import NotSubmittedError, PermissionDeniedError
from vertex_training.snapshots import estimate
from vertex_training.snapshots.protocol import take_snapshot


def look(cloud, dry_run=None, **changes):
    process = Process(cloud, request(**changes))
    if dry_run:
        process.dry_run = dry_run
    return estimate.look(process.wanted, process.ports)


def test_a_time_that_bigquery_has_no_more_is_refused_and_one_that_was_kept_is_not():
    old = datetime.datetime.now(tz=datetime.UTC) - datetime.timedelta(days=8)
    cloud = Cloud()
    with pytest.raises(NotSubmittedError, match="more than seven days ago"):
        look(cloud, as_of=old.isoformat())
    process = Process(cloud, request(as_of=old.isoformat()))
    take_snapshot(process.wanted, process.ports, environment=process.environment)
    assert look(cloud, as_of=old.isoformat())["rows"] == 891


def test_finished_query_is_not_refused_by_a_later_preview():
    cloud = Cloud()
    process = Process(cloud, request(), dies_at=(4, "before"))
    with pytest.raises(Killed):
        take_snapshot(process.wanted, process.ports, environment=process.environment)
    cloud.tick(10)
    cloud.processed = 10**9 + 1
    told = look(cloud)
    assert told == {
        "unanswered": "an earlier command ran the query, so only the export remains, without a cost"
    }
    process = Process(cloud, request())

    def denied(job_id):
        raise PermissionDeniedError("BigQuery: Access Denied: Job")

    process.job = denied
    with pytest.raises(NotSubmittedError, match="but maxBytesB"):
        estimate.look(process.wanted, process.ports)
    cloud.tick(100_000)
    with pytest.raises(NotSubmittedError, match="but maxBytesB"):
        look(cloud)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"totalBytesProcessed": str(10**9 + 1)},
            "the query of snapshot 'clicks' reads 1,000,000,001 bytes, but maxBytesBilled is "
            "1,000,000,000. Hint: raise maxBytesBilled, or change the query to read fewer bytes.",
        ),
        (
            {"query": {"statementType": "SCRIPT"}},
            "snapshot 'clicks': the statement is SCRIPT, but must be a query (SELECT)",
        ),
    ],
)
def test_a_refusal_before_the_query_is_one_sentence(given, text):
    with pytest.raises(NotSubmittedError) as refused:
        look(Cloud(), lambda _: {"statistics": given})
    assert str(refused.value) == text


TIB = 2**40
THERE = {"rows": 891, "bytes": 12_345, "queriedAt": "2026-11-20T00:00:00Z"}
READS = {"processed": TIB // 2, "capacity": False}
READ = "the query would read 549,755,813,888 bytes"


@pytest.mark.parametrize(
    ("found", "location", "line"),
    [
        ({}, "US", ""),
        (THERE, "US", "exists: 891 rows, 12,345 bytes, queried at 2026-11-20T00:00:00Z"),
        ({**READS, "capacity": True}, "US",
         f"{READ} (included in capacity; limit 1,099,511,627,776 bytes)"),
        ({"processed": 0, "capacity": False, "atLeast": True}, "US",
         "the query would read at least 0 bytes (no price; limit 1,099,511,627,776 bytes, $6.25)"),
        ({"changed": ["a.b.c 2026"], "personal": ["email"], "sources": [],
          "unanswered": "no right"}, "US",
         "tables changed since the query (raise `run` to read them again): a.b.c 2026; columns "
         "that look like personal data: email; not checked: no right"),
        ({**THERE, "sources": ["a.b.c"]}, "US",
         "exists: 891 rows, 12,345 bytes, queried at 2026-11-20T00:00:00Z; from a.b.c"),
    ],
)  # fmt: skip
def test_estimate_is_one_line(found: Any, location: str, line: str) -> None:
    assert estimate.words(found, TIB, location) == line


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
