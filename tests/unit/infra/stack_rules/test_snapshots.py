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


def test_a_job_file_names_the_folder_before_anything_exists(planned):
    stack = planned()
    [request] = stack.snapshots.values()
    folder = f"acme-ml-prod-data-prod/snapshots/prod/clicks/{request.request_id}"
    assert stack.references["snapshots.clicks"] == f"gs://{folder}"
    assert stack.references["snapshots.clicks.mount"] == f"/gcs/{folder}"


def test_the_folder_changes_with_all_that_decides_what_it_holds(planned):
    def folder(*given, **changes):
        return planned(*given, **changes).references["snapshots.clicks"]

    as_of = SQL.replace("clicks`", "clicks` FOR SYSTEM_TIME AS OF @as_of")
    others = [
        folder(),
        folder(SQL + " AND true"),
        folder(parameters={"day": "2026-11-21"}),
        folder(parameters={"day": 1}),
        folder(parameters={"day": True}),
        folder(format="csv"),
        folder(location="EU"),
        folder(run=2),
        folder(as_of, asOf="2026-11-20T00:00:00Z"),
        folder(as_of, asOf="2026-11-20T00:00:01Z"),
    ]
    assert len(set(others)) == len(others)


def test_a_comment_a_higher_bound_and_another_spelling_of_a_time_are_no_other_snapshot(planned):
    sql = SQL.replace("clicks`", "clicks` FOR SYSTEM_TIME AS OF @as_of")
    first = planned(sql, asOf="2026-11-20T01:00:00+01:00")
    second = planned(f"-- edited\n{sql};", asOf="2026-11-20T00:00:00Z", maxBytesBilled=1)
    assert first.references["snapshots.clicks"] == second.references["snapshots.clicks"]


def test_a_renamed_snapshot_keeps_its_folder(planned, tmp_path):
    before = planned().references["snapshots.clicks"]
    snapshots = {"visits": CLICKS | {"formerly": "clicks"}}
    raw = BASE | {"buckets": {"data": {}}, "snapshots": snapshots}
    after = Stack(read_settings(raw, tmp_path), tmp_path, {})
    assert after.references["snapshots.visits"] == before


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"maxBytesBilled": 0}, "clicks.maxBytesBilled"),
        ({"asOf": "yesterday"}, "clicks.asOf"),
        ({"asOf": "2999-01-01T00:00:00Z"}, "clicks.asOf"),
        ({"parameters": {"day": "a", "Day": "b"}}, "clicks.parameters"),
        ({"parameters": {"day": float("nan")}}, "clicks.parameters"),
        ({"parameters": {"day": None}}, "clicks.parameters"),
        ({"asOf": "2026-11-20T00:00:00"}, "clicks.asOf"),
        ({"parameters": {"day": ["a"]}}, "clicks.parameters"),
        ({"parameters": {"day": 2**63}}, "clicks.parameters"),
        ({"parameters": {"AS_OF": "x", "day": "y"}}, "clicks.parameters"),
        ({"format": "xlsx"}, "clicks.format"),
        ({"query": "none.sql"}, "clicks.query"),
    ],
)
def test_values_that_bigquery_would_not_take_are_refused(refused, changes, path):
    assert refused(**changes)[0][0] == path


def test_a_query_outside_of_the_checkout_is_not_read_through_a_link(refused, tmp_path):
    (tmp_path / "link.sql").symlink_to("/etc/passwd")
    assert refused(query="link.sql") == [("clicks.query", "lies outside of the checkout")]


def test_a_secret_in_a_query_or_a_parameter_is_refused_without_being_shown(planned):
    token = "ghp_" + "a1B2" * 9
    with pytest.raises(ConfigError) as failed:
        planned(f"SELECT '{token}' AS x, @day", parameters={"day": "x", "api_token": token})
    text = str(failed.value)
    assert "clicks.query: line 1 looks like a secret" in text
    assert "clicks.parameters.api_token: looks like a secret" in text
    assert token not in text


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


@pytest.mark.parametrize("name", ["/dev/zero", "big.sql"])
def test_a_query_of_any_size_is_refused_at_once(refused, tmp_path, name):
    (tmp_path / "big.sql").write_text("SELECT " + "1 + " * 600_000 + "1")
    (tmp_path / "link.sql").symlink_to(name)
    [(path, what)] = refused(query="link.sql")
    assert path == "clicks.query"
    assert what in ("has more than 1 MB", "lies outside of the checkout")


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
