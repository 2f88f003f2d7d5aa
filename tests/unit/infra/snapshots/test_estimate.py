"""What a preview is told, and what it refuses before anything is sent."""

import datetime

import pytest

from tests.unit.infra.snapshots import fakes
from tests.unit.infra.snapshots.fakes import Cloud, Killed, Process, request
from vertex_training.errors import NotSubmittedError, OperatorError, PermissionDeniedError
from vertex_training.snapshots import estimate
from vertex_training.snapshots.protocol import take_snapshot


def look(cloud, dry_run=None, **changes):
    process = Process(cloud, request(**changes))
    if dry_run:
        process.dry_run = dry_run
    return estimate.look(process.wanted, process.ports)


def test_a_query_that_reads_more_than_its_bound_is_refused_before_it_is_sent():
    cloud = Cloud()
    cloud.processed = 10**9 + 1
    with pytest.raises(NotSubmittedError, match="reads 1,000,000,001 bytes, more than maxBytesB"):
        look(cloud)
    assert cloud.sent == []


def test_a_time_that_bigquery_has_no_more_is_refused_and_one_that_was_kept_is_not():
    old = datetime.datetime.now(tz=datetime.UTC) - datetime.timedelta(days=8)
    cloud = Cloud()
    with pytest.raises(NotSubmittedError, match="more than seven days ago"):
        look(cloud, as_of=old.isoformat())
    process = Process(cloud, request(as_of=old.isoformat()))
    take_snapshot(process.wanted, process.ports, environment=process.environment)
    assert look(cloud, as_of=old.isoformat())["rows"] == 891


def test_a_query_that_has_run_is_not_refused_in_the_preview_of_what_is_left():
    cloud = Cloud()
    process = Process(cloud, request(), dies_at=(4, "before"))
    with pytest.raises(Killed):
        take_snapshot(process.wanted, process.ports, environment=process.environment)
    cloud.tick(10)
    cloud.processed = 10**9 + 1
    told = look(cloud)
    assert told == {"unanswered": "its query has run, and is not paid for again: an export is left"}
    process = Process(cloud, request())

    def denied(job_id):
        raise PermissionDeniedError("BigQuery: Access Denied: Job")

    process.job = denied
    with pytest.raises(NotSubmittedError, match="more than maxBytesB"):
        estimate.look(process.wanted, process.ports)
    cloud.tick(100_000)
    with pytest.raises(NotSubmittedError, match="more than maxBytesB"):
        look(cloud)


def test_what_bigquery_says_is_no_query_is_refused():
    def script(_):
        return {"statistics": {"query": {"statementType": "SCRIPT"}}}

    with pytest.raises(NotSubmittedError, match="no query, but SCRIPT"):
        look(Cloud(), script)


def test_a_missing_right_is_told_with_who_grants_it_and_fails_no_preview():
    def denied(_):
        raise PermissionDeniedError("BigQuery: Access Denied: Table acme:web.clicks")

    told = look(Cloud(), denied)["unanswered"]
    assert "Access Denied: Table acme:web.clicks" in told
    assert "GRANT `roles/bigquery.dataViewer` ON TABLE" in told


def test_one_that_is_there_is_told_though_its_tables_are_gone_or_nothing_answers():
    cloud = Cloud()
    process = Process(cloud, request())
    take_snapshot(process.wanted, process.ports, environment=process.environment)
    process.table = lambda reference: None
    told = estimate.look(process.wanted, process.ports)
    assert (told["rows"], told["unanswered"]) == (891, "acme.web.clicks: gone, or not to be read")

    def silent(reference):
        raise OperatorError("no answer of BigQuery: Timeout")

    process.table = silent
    told = estimate.look(process.wanted, process.ports)
    assert (told["rows"], told["unanswered"]) == (891, "no answer of BigQuery: Timeout")


def test_columns_inside_of_records_are_looked_at():
    fields = [
        {"name": "user", "fields": [{"name": "Email"}, {"name": "emailed"}]},
        {"name": "ip_address"},
        {"name": "zipper"},
        {"name": "birthDate"},
    ]
    assert estimate.personal_columns(fields) == ["user.Email", "ip_address", "birthDate"]


def test_what_a_query_would_read_is_asked_without_its_bound():
    asked = []
    cloud = Cloud()
    cloud.processed = 10**9  # just its bound
    process = Process(cloud, request())
    dry_run = process.dry_run
    process.dry_run = lambda given: asked.append(given) or dry_run(given)
    assert estimate.look(process.wanted, process.ports) == {
        "processed": 10**9,
        "capacity": False,
        "sources": ["acme.web.clicks"],
        "personal": ["email"],
    }
    [configuration] = asked
    assert "maximumBytesBilled" not in configuration["query"]
    assert configuration["query"]["query"] == request().sql


@pytest.mark.parametrize(
    ("statistics", "more"),
    [
        ({}, {}),
        ({"reservation_id": "p:eu.r"}, {"capacity": True}),
        ({"edition": "ENTERPRISE"}, {"capacity": True}),
        *(
            ({"query": {"totalBytesProcessedAccuracy": accuracy}}, {"atLeast": True})
            for accuracy in ("LOWER_BOUND", "UNKNOWN")
        ),
        *(
            ({"query": {"totalBytesProcessedAccuracy": accuracy}}, {})
            for accuracy in ("PRECISE", "UPPER_BOUND")
        ),
        ({"totalBytesProcessed": "1000000000"}, {"processed": 10**9}),
        (
            {"query": {"referencedTables": [{"projectId": "p", "datasetId": "d", "tableId": table}
                                            for table in "ba"]}},
            {"sources": ["p.d.a", "p.d.b"]},
        ),
    ],
)  # fmt: skip
def test_the_answer_of_a_dry_run_is_read_field_by_field(statistics, more):
    nothing = {"processed": 0, "capacity": False, "sources": [], "personal": []}
    found = look(Cloud(), lambda _: {"statistics": statistics})
    assert found == nothing | more


def test_a_table_of_a_project_below_a_domain_is_looked_up_by_its_parts(monkeypatch):
    table = {"projectId": "example.com:acme", "datasetId": "web", "tableId": "clicks"}
    monkeypatch.setattr(fakes, "CLICKS", table)
    cloud = Cloud()
    process = Process(cloud, request())
    take_snapshot(process.wanted, process.ports, environment=process.environment)
    cloud.changed_at = 1_000.5
    changed = ["example.com:acme.web.clicks 1970-01-01T00:16:40.500Z"]
    assert look(cloud)["changed"] == changed


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"totalBytesProcessed": str(10**9 + 1)},
            "the query of snapshot 'clicks' reads 1,000,000,001 bytes, more than maxBytesBilled, "
            "1,000,000,000. Hint: raise it, or read less.",
        ),
        (
            {"query": {"statementType": "SCRIPT"}},
            "snapshot 'clicks': this is no query, but SCRIPT",
        ),
    ],
)
def test_a_refusal_before_the_query_is_one_sentence(given, text):
    with pytest.raises(NotSubmittedError) as refused:
        look(Cloud(), lambda _: {"statistics": given})
    assert str(refused.value) == text
