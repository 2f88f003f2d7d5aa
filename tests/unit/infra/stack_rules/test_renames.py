"""Each name in the cloud belongs to one entry of the stack file."""

from tests.unit.infra.stacks import H100, stack
from tests.unit.infra.stacks import refused as refused_by


def refused(**changes):
    return [(path, text.split(". Hint")[0]) for path, text in refused_by(**changes)]


def test_a_name_that_another_entry_has_is_refused():
    assert refused(buckets={"data": {}, "corpus": {"formerly": "data"}}) == [
        ("buckets.corpus.formerly", "is the name that data has in the cloud (got data)")
    ]


def test_two_that_were_the_same_are_refused_at_both():
    found = refused(secrets={"a": {"formerly": "key"}, "b": {"formerly": "key"}})
    assert [path for path, _ in found] == ["secrets.a.formerly", "secrets.b.formerly"]


def test_a_key_that_is_left_free_by_a_rename_keeps_its_name_in_the_cloud():
    """A new bucket under the old key would be the old one's name: it is refused, not replaced."""
    [(path, _)] = refused(buckets={"corpus": {"formerly": "data"}, "data": {"versioning": False}})
    assert path == "buckets.corpus.formerly"


def test_two_entries_may_change_names():
    stack(buckets={"a": {"formerly": "b"}, "b": {"formerly": "a"}})


def test_a_key_cannot_be_formerly_itself_or_what_the_stack_makes():
    found = refused(
        buckets={"a": {"formerly": "a"}, "b": {"formerly": "control"}},
        serviceAccounts={"trainer": {"formerly": "image-build"}},
    )
    assert found == [
        ("buckets.a.formerly", "is its name still (got a)"),
        ("buckets.b.formerly", "is what the stack makes itself (got control)"),
        ("serviceAccounts.trainer.formerly", "is what the stack makes itself (got image-build)"),
    ]


def test_what_exists_was_never_the_stacks_to_name():
    path = "projects/acme-ml-prod/zones/us-central1-a/reservations/x"
    found = refused(reservations={"h100": {**H100, "existing": path, "formerly": "gpus"}})
    assert [path for path, _ in found] == ["reservations.h100.formerly"]


def test_the_length_of_the_name_in_the_cloud_counts_and_not_that_of_the_new_key():
    stack(serviceAccounts={"a-name-that-would-be-too-long-for-iam": {"formerly": "trainer"}})
    [(path, _)] = refused(serviceAccounts={"ok": {"formerly": "a-name-that-is-too-long-for-iam"}})
    assert path == "serviceAccounts.ok"
