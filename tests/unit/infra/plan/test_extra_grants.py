"""Grants that the stack file asks for by name."""

from tests.unit.infra.stacks import refused


def test_no_basic_role_is_asked_for_on_a_dataset():
    account = {"trainer": {"datasets": {"acme-warehouse.clicks": ["roles/owner"]}}}
    [(path, text)] = refused(serviceAccounts=account)
    assert path == "serviceAccounts.trainer.datasets.acme-warehouse.clicks[0]"
    assert "is a basic role" in text
