"""What a preview is told, and what it refuses before anything is sent."""

import datetime

import pytest

from tests.unit.infra.snapshots.fakes import Cloud, Killed, Process, request
from vertex_training.errors import NotSubmittedError, OperatorError, PermissionDeniedError
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


def test_missing_permission_is_reported_and_fails_no_preview():
    def denied(_):
        raise PermissionDeniedError("BigQuery: Access Denied: Table acme:web.clicks")

    told = look(Cloud(), denied)["unanswered"]
    assert "Access Denied: Table acme:web.clicks" in told
    assert "GRANT `roles/bigquery.dataViewer` ON TABLE" in told


def test_existing_snapshot_is_reported_without_its_tables():
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
