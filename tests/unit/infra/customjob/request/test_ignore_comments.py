"""Comments that ignore a rule: which ones count, for which line, and what each hides."""

from __future__ import annotations

import pytest

from vertex_training.customjob import rules
from vertex_training.customjob.request import ignoring
from vertex_training.errors import Location, Problem

FORM = "# vt: ignore[image-pinned] rebuilt by hand each night"
REASON = "rebuilt each night"


@pytest.mark.parametrize(
    ("comment", "value", "what", "hint"),
    [
        ("# vt: ignore", "", "names no rule", FORM),
        ("# vt: ignore[] because it is so", "", "names no rule", FORM),
        ("# vt: ignore[image-pinned]", "image-pinned", "gives no reason", FORM),
        ("# vt: ignore[image-pinned] 1234567", "image-pinned", "gives no reason", FORM),
        ("# vt: ignore[image-pined] each night", "image-pined", "no such rule",
         "did you mean 'image-pinned'?"),
        *((f"# vt: ignore[{rule}] as it should be", rule,
           "this rule cannot be ignored in a job file", "correct what it reports")
          for rule in ("service-account", "label-reserved", "job-region", "output-shared",
                       "account-reads", "limit-job-cost", "network-owner", "reservation-count",
                       "unknown-field", "not-yaml")),
    ],
)  # fmt: skip
def test_a_comment_that_does_not_count_is_a_mistake(
    comment: str, value: str, what: str, hint: str
) -> None:
    found, problems = ignoring.comments_in(f"a: b\n{comment}\n", "x.yaml")
    place = Location("x.yaml", 2, 1)
    assert found == []
    assert problems == [Problem(what, value, hint, location=place, rule="ignore")]


def test_a_rule_of_the_stack_is_never_ignored() -> None:
    of_stack = {each.id for each in rules.RULES if each.subject in ignoring.OF_A_STACK}
    assert of_stack >= {"secret-granted", "limit-strategy", "interface-room", "reservation-any"}
    assert not ignoring.IGNORABLE & of_stack
    rest = {each.id for each in rules.RULES} - of_stack - ignoring.IGNORABLE
    assert rest == {"service-account", "label-reserved", "job-region"}


def problem(rule: str, line: int) -> Problem:
    return Problem("is wrong", "v", "h", ("a",), Location("x.yaml", line, 1), rule)


def test_what_is_ignored_is_a_note_with_the_reason_and_the_rest_stays() -> None:
    text = (
        f"a: b # vt: ignore[image-pinned] {REASON}\n# vt: ignore[disk-size] as large as needed\n"
        "c: d\n# vt: ignore\n"
    )
    hidden, twice, other = problem("image-pinned", 1), problem("image-pinned", 1), problem("x", 1)
    elsewhere = problem("image-pinned", 3)
    found, ignored = ignoring.apply([hidden, other, twice, elsewhere], text, "x.yaml")
    note = Problem(
        f"is wrong (ignored: {REASON})", "v", "", ("a",), Location("x.yaml", 1, 1), "image-pinned",
        "note",
    )  # fmt: skip
    assert ignored == (note, note)
    assert found == [
        other,
        elsewhere,
        Problem("names no rule", "", FORM, location=Location("x.yaml", 4, 1), rule="ignore"),
        Problem(
            "ignores nothing: the rule finds nothing here", "disk-size", "remove it",
            location=Location("x.yaml", 2, 1), rule="ignore", level="note",
        ),
        note,
        note,
    ]  # fmt: skip
    assert ignoring.apply([hidden], "a: b\n", "x.yaml") == ([hidden], ())
