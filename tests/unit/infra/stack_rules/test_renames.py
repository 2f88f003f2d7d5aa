"""Each name in the cloud belongs to one entry of the stack file."""

from tests.unit.infra.stacks import refused as refused_by
from tests.unit.infra.stacks import stack


def refused(**changes):
    return [(path, text.split(". Hint")[0]) for path, text in refused_by(**changes)]


def test_the_length_of_the_name_in_the_cloud_counts_and_not_that_of_the_new_key():
    stack(serviceAccounts={"a-name-that-would-be-too-long-for-iam": {"formerly": "trainer"}})
    [(path, _)] = refused(serviceAccounts={"ok": {"formerly": "a-name-that-is-too-long-for-iam"}})
    assert path == "serviceAccounts.ok"
