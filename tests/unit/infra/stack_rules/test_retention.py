"""A retention binds the stack itself: what it could no longer do is refused before."""

from tests.unit.infra.stacks import refused, stack
from vertex_training.stack_rules import advice

KEPT = {"retention": {"days": 30}}


def told(**changes):
    found = advice.warnings(stack(**changes), {}, {})
    return [(".".join(map(str, problem.path)), problem.what) for problem in found]


def test_what_would_have_to_be_deleted_within_a_retention_is_refused():
    bucket = KEPT | {"forceDestroy": True, "deleteAfterDays": 7}
    assert [path for path, _ in refused(buckets={"audit": bucket})] == [
        "buckets.audit.forceDestroy",
        "buckets.audit.deleteAfterDays",
    ]


def test_objects_of_the_stack_would_have_to_be_replaced():
    bucket = KEPT | {"objects": {"a": "b"}}
    [(path, text), *_] = refused(buckets={"audit": bucket})
    assert path == "buckets.audit.objects"
    assert "could not be replaced for 30 days" in text


def test_a_retention_of_no_days_or_of_centuries_is_refused():
    for days in (0, -1, 36501):
        [(path, _)] = refused(buckets={"audit": {"retention": {"days": days}}})
        assert path == "buckets.audit.retention.days"


def test_who_writes_where_nothing_is_overwritten_is_warned():
    account = {"trainer": {"writes": ["audit"]}}
    [(path, what)] = told(buckets={"audit": KEPT}, serviceAccounts=account)
    assert path == "buckets.audit.retention"
    assert "account trainer writes it, and can overwrite no file there" in what
    assert told(buckets={"audit": KEPT}) == []


def test_data_of_jobs_in_a_class_that_charges_for_reads_is_warned():
    account = {"trainer": {"reads": ["old"]}}
    [(path, what)] = told(buckets={"old": {"storageClass": "ARCHIVE"}}, serviceAccounts=account)
    assert path == "buckets.old.storageClass"
    assert "every read is paid for" in what
    assert told(buckets={"old": {"storageClass": "ARCHIVE"}}) == []
    [(path, _)] = refused(buckets={"old": {"storageClass": "COLD"}})
    assert path == "buckets.old.storageClass"
