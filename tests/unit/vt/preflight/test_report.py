"""The answers of a preflight as a person, a comment and a program read them."""

from __future__ import annotations

import json

import pytest

from vertex_training_cli.preflight import report
from vertex_training_cli.preflight.answers import Answer, Preflight, Verdict, question, summary

ANSWERS = (
    question("fine", "is it").ok("yes"),
    question("odd", "why").unknown("403", "x.get"),
    question("bad", "may it").refused("no | never", "403 at `x`", "ask"),
    question("late", "when").warning("soon", "a wait", "wait"),
    question("blind", "what").unknown("no route", mend="look"),
)
FOUND = Preflight("prod", "acme", "user:a@x.com", ANSWERS, calls=7)
SUMMARY = "5 asked, 1 refused, 1 warned, 2 unknown"


def test_a_terminal_has_what_is_not_in_order_with_what_mends_it() -> None:
    assert report.text(FOUND).splitlines() == [
        "Would be refused:",
        "  bad: may it: no | never",
        "    meets: 403 at `x`",
        "    mend: ask",
        "",
        "Would pass, and is probably not meant:",
        "  late: when: soon",
        "    meets: a wait",
        "    mend: wait",
        "",
        "Could not be asked:",
        "  odd: why: 403",
        "    missing: x.get",
        "  blind: what: no route",
        "    mend: look",
        "",
        SUMMARY,
    ]
    assert report.text(Preflight("prod", "acme", "", ANSWERS[:1])) == (
        "1 asked, 0 refused, 0 unknown\n"
    )


def test_a_comment_has_tables_of_the_columns_that_are_used_and_folds_what_is_fine() -> None:
    assert report.markdown(FOUND).splitlines() == [
        "## Preflight of stack `prod`",
        "",
        f"**{SUMMARY}**",
        "",
        "### Would be refused",
        "",
        "| subject | asked | answer | a deployment would meet | what mends it |",
        "| --- | --- | --- | --- | --- |",
        "| `bad` | `may it` | <code>no &#124; never</code> | <code>403 at &#96;x&#96;</code> "
        "| `ask` |",
        "",
        "### Would pass, and is probably not meant",
        "",
        "| subject | asked | answer | a deployment would meet | what mends it |",
        "| --- | --- | --- | --- | --- |",
        "| `late` | `when` | `soon` | `a wait` | `wait` |",
        "",
        "### Could not be asked",
        "",
        "| subject | asked | answer | what mends it |",
        "| --- | --- | --- | --- |",
        "| `odd` | `why` | `403` | `x.get` |",
        "| `blind` | `what` | `no route` | `look` |",
        "",
        "<details><summary>In order: 1</summary>",
        "",
        "| subject | asked | answer |",
        "| --- | --- | --- |",
        "| `fine` | `is it` | `yes` |",
        "",
        "</details>",
        "",
        "<sub>project `acme` as `user:a@x.com`; 7 calls</sub>",
    ]
    bare = report.markdown(Preflight("prod", "acme", "", ()))
    assert bare.splitlines()[3:] == ["", "<sub>project `acme`; 0 calls</sub>"]


def test_a_program_has_every_answer_and_no_secret() -> None:
    secret = Answer("s", "a", "token=ghp_" + "a1B2" * 9)
    text = report.as_json(Preflight("prod", "acme", "me", (secret, ANSWERS[2]), 3))
    assert text.startswith('{\n  "')
    assert text.endswith("\n}\n")
    document = json.loads(text)
    answers = document.pop("answers")
    assert document == {
        "version": 1,
        "summary": "2 asked, 1 refused, 0 unknown",
        "stack": "prod",
        "project": "acme",
        "caller": "me",
        "calls": 3,
    }
    assert "a1B2" not in answers[0]["answer"]
    assert answers[1] == {
        "subject": "bad",
        "asked": "may it",
        "answer": "no | never",
        "verdict": "refused",
        "meets": "403 at `x`",
        "mend": "ask",
        "permission": "",
        "part": "",
    }


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_what_others_named_is_no_secret_and_no_control_character(form: str) -> None:
    answer = Answer("a\x1b[2Jb", "q", "x", Verdict.REFUSED, mend="ghp_" + "a1B2" * 9)
    told = report.WRITERS[form](Preflight("prod", "acme", "", (answer,)))
    assert "\x1b" not in told
    assert "a1B2" not in told


def test_a_summary_counts_verdicts() -> None:
    assert summary([]) == "0 asked, 0 refused, 0 unknown"
    given = [Verdict.OK, Verdict.WARNING, Verdict.WARNING, Verdict.UNKNOWN, Verdict.REFUSED]
    assert summary(given) == "5 asked, 1 refused, 2 warned, 1 unknown"
    assert FOUND.of(Verdict.UNKNOWN) == [ANSWERS[1], ANSWERS[4]]
