"""Queries as text: what is a comment, a parameter, one query."""

import time

import pytest

from vertex_training.snapshots import statement

#: With a quote in a comment, and a comment's beginning in a text, a name and a raw text.
HARD = """-- don't
SELECT "x -- no" AS c, r'/* no */', `p.d.a#b`.x, '''it's @no''' /* two
lines */
FROM `p.d.t` # tail @no
WHERE day = @Day AND b'\\'--' = c AND @@time_zone = 'x';
"""


def test_comments_and_white_space_are_no_part_of_a_querys_identity():
    plain = "SELECT a FROM t WHERE b = 'x  y'"
    commented = "-- for Kim\nSELECT a /* all\n of them */ FROM t\n\tWHERE b = 'x  y'; # end"
    assert statement.canonical(commented) == statement.canonical(plain) == plain
    assert statement.canonical(plain) != statement.canonical(plain.replace("x  y", "x y"))


def test_texts_and_names_are_no_comments():
    kept = statement.without_comments(HARD)
    assert '"x -- no"' in kept
    assert "r'/* no */'" in kept
    assert "`p.d.a#b`" in kept
    assert "b'\\'--' = c" in kept
    assert not any(word in kept for word in ("don't", "lines", "tail", ";"))


def test_lines_keep_their_numbers_for_the_services_messages():
    kept = statement.without_comments(HARD).splitlines()
    assert [kept.index(line) for line in kept if "WHERE" in line] == [4]


def test_parameters_are_found_outside_of_texts_and_are_no_system_variables():
    assert statement.parameters_in(HARD) == {"day"}


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("", "is empty"),
        ("-- SELECT 1", "is empty"),
        ("DELETE FROM t WHERE true", "is no query"),
        ("EXPORT DATA OPTIONS(uri='gs://x/*') AS SELECT 1", "is no query"),
        ("SELECT 1 -- one\r; DROP TABLE t", "has several statements"),
        ("SELECT 1 /* ; */; SELECT 2", "has several statements"),
        ("FROM t |> EXPORT DATA OPTIONS(uri='gs://x/*')", "is no query"),
        ("FROM t |> WHERE x | y > 1 |>\n-- no\ninsert INTO u", "is no query"),
        ("DECLARE x INT64", "is no query"),
        ("SELECT 1; DROP TABLE t", "has several statements"),
        ("SELECT 1 /* never closed", "has a text or a comment without an end"),
        ("SELECT 'never closed", "has a text or a comment without an end"),
        ("SELECT `never closed", "has a text or a comment without an end"),
    ],
)
def test_what_is_not_one_query_is_refused(sql, wrong):
    assert [what for what, _ in statement.form_problems(sql)] == [wrong]


DASHES = "SELECT a FROM my-project.web.t-1 WHERE b > insert_time"


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "(SELECT 1);",
        DASHES,
        "WITH a AS (SELECT ';') SELECT * FROM a",
        "FROM t |> WHERE x > 1",
    ],
)
def test_one_query_of_any_form_is_accepted(sql):
    assert list(statement.form_problems(sql)) == []


@pytest.mark.parametrize("part", ["/*", "'", "\\'", '"""', "a ", "rb'"])
def test_a_hostile_file_takes_no_more_time_than_its_length(part):
    def seconds(parts: int) -> float:
        """Of the processor, which other processes do not lengthen much."""
        began = time.process_time()
        list(statement.form_problems("SELECT " + part * parts))
        return time.process_time() - began

    shorter = min(seconds(4_000) for _ in range(3))
    assert seconds(80_000) < 100 * max(shorter, 0.01)  # 400 times, were it their square
