"""Each name in the cloud belongs to one entry of the stack file."""

from tests.unit.infra.stacks import H100, stack
from tests.unit.infra.stacks import refused as refused_by


def refused(**changes):
    return [(path, text.split(". Hint")[0]) for path, text in refused_by(**changes)]


def test_two_entries_may_change_names():
    stack(buckets={"a": {"formerly": "b"}, "b": {"formerly": "a"}})


def test_what_exists_was_never_the_stacks_to_name():
    path = "projects/acme-ml-prod/zones/us-central1-a/reservations/x"
    found = refused(reservations={"h100": {**H100, "existing": path, "formerly": "gpus"}})
    assert [path for path, _ in found] == ["reservations.h100.formerly"]


def test_the_length_of_the_name_in_the_cloud_counts_and_not_that_of_the_new_key():
    stack(serviceAccounts={"a-name-that-would-be-too-long-for-iam": {"formerly": "trainer"}})
    [(path, _)] = refused(serviceAccounts={"ok": {"formerly": "a-name-that-is-too-long-for-iam"}})
    assert path == "serviceAccounts.ok"
