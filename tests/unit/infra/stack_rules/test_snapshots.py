"""The section ``snapshots``: one query each, inside of the checkout, with its parameters."""

import pytest

from tests.unit.infra.stacks import BASE
from vertex_training.errors import ConfigError
from vertex_training.settings.limits import Limits
from vertex_training.stack import Stack, read_settings
from vertex_training.stack_rules import limits

SQL = "SELECT * FROM `acme.web.clicks` WHERE day = @day"
CLICKS = {"query": "clicks.sql", "parameters": {"day": "2026-11-20"}, "maxBytesBilled": 10**9}


@pytest.fixture
def planned(tmp_path):
    """A stack with the snapshot ``clicks``, with other keys and another query."""

    def make(sql=SQL, more=None, **changes):
        (tmp_path / "clicks.sql").write_text(sql)
        snapshots = {"clicks": CLICKS | changes, **(more or {})}
        raw = BASE | {"buckets": {"data": {}}, "snapshots": snapshots}
        return Stack(read_settings(raw, tmp_path), tmp_path, {})

    return make


@pytest.fixture
def refused(planned):
    def find(sql=SQL, **changes):
        with pytest.raises(ConfigError) as failed:
            planned(sql, **changes)
        return [(".".join(map(str, p.path[1:])), p.what) for p in failed.value.problems]

    return find


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"maxBytesBilled": 0}, "clicks.maxBytesBilled"),
        ({"asOf": "yesterday"}, "clicks.asOf"),
        ({"asOf": "2999-01-01T00:00:00Z"}, "clicks.asOf"),
        ({"parameters": {"day": float("nan")}}, "clicks.parameters"),
        ({"parameters": {"day": None}}, "clicks.parameters"),
        ({"query": "none.sql"}, "clicks.query"),
    ],
)
def test_values_that_bigquery_would_not_take_are_refused(refused, changes, path):
    assert refused(**changes)[0][0] == path


def test_a_query_outside_of_the_checkout_is_not_read_through_a_link(refused, tmp_path):
    (tmp_path / "link.sql").symlink_to("/etc/passwd")
    assert refused(query="link.sql") == [("clicks.query", "lies outside of the checkout")]


@pytest.mark.parametrize(
    ("allowed", "is_allowed"),
    [("clicks.sql", True), ("clicks.sql:1", True), ("clicks.sql:2", False), ("other.sql", False)],
)
def test_a_line_that_the_stack_file_calls_no_secret_is_none(tmp_path, allowed, is_allowed):
    (tmp_path / "clicks.sql").write_text(f"SELECT 'ghp_{'a1B2' * 9}' AS x, @day")
    (tmp_path / "other.sql").write_text("SELECT 1")
    raw = BASE | {"buckets": {"data": {}}, "snapshots": {"clicks": CLICKS}}
    raw |= {"allowedSecrets": {allowed: "a sample of the documentation"}}
    if is_allowed:
        read_settings(raw, tmp_path)
        return
    with pytest.raises(ConfigError, match="line 1 looks like a secret"):
        read_settings(raw, tmp_path)


def test_a_bound_of_a_snapshot_counts_for_the_environment_on_demand(planned):
    # 2 TiB at 6.25 USD are 12.50 USD
    stack = planned(maxBytesBilled=2 * 2**40)
    low, enough = (
        stack.settings.model_copy(
            update={"limits": Limits.model_validate({"maxUsdPerEnvironment": most})}
        )
        for most in (12.49, 12.5)
    )
    [found] = limits.exceeded(low, {})
    assert "queries of snapshots together may cost $12.50, the limit is $12.49" in found.what
    assert list(limits.exceeded(enough, {})) == []
    [dearer] = limits.exceeded(
        planned(maxBytesBilled=2 * 2**40, location="mars-north1").settings.model_copy(
            update={"limits": enough.limits}
        ),
        {},
    )
    assert "may cost $22.50" in dearer.what
    assert "prices of the region of snapshot clicks are unknown, another's were" in dearer.what
