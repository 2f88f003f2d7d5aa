"""Queries as text: what is a comment, a parameter, one query."""

import pytest

from vertex_training.snapshots import statement


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("", "is empty"),
        ("-- SELECT 1", "is empty"),
        ("DELETE FROM t WHERE true", "is no query"),
        ("SELECT 1 -- one\r; DROP TABLE t", "has several statements"),
        ("FROM t |> EXPORT DATA OPTIONS(uri='gs://x/*')", "is no query"),
        ("SELECT 1 /* never closed", "has a text or a comment without an end"),
    ],
)
def test_what_is_not_one_query_is_refused(sql, wrong):
    assert [what for what, _ in statement.form_problems(sql)] == [wrong]
