"""Keys that name what the stack does not have."""

import pytest

from tests.unit.infra.stacks import refused


@pytest.mark.parametrize(
    ("field", "kind"), [("reads", "bucket"), ("writes", "bucket"), ("secrets", "secret")]
)
def test_what_an_account_may_use_and_the_stack_has_not_is_told_by_its_kind(field, kind):
    given = {"buckets": {"data": {}}, "secrets": {"token": {}}}
    known = {"bucket": "data", "secret": "token"}[kind]
    account = {field: [known, f"{known}s"]}
    [(where, told)] = refused(**given, serviceAccounts={"trainer": account})
    assert where == f"serviceAccounts.trainer.{field}"
    assert f"no such {kind} (got {known}s)" in told
    assert f"did you mean '{known}'?" in told
