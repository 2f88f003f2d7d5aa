"""The head of a difference: its name, its type, and its id if it has one."""

from vertex_training_cli.drift import report
from vertex_training_cli.drift.findings import Drift, DriftOutcome, ResourceDifference


def head(id_):
    found = ResourceDifference("update", "storage-data", "gcp:storage/bucket:Bucket", id_)
    return report.markdown(Drift("dev", DriftOutcome.DRIFTED, (found,)))


def test_the_id_follows_the_type_and_nothing_does_without_one():
    assert "\n\ngcp\\:storage/bucket\\:Bucket, acme\n" in head("acme")
    assert "\n\ngcp\\:storage/bucket\\:Bucket\n" in head("")
